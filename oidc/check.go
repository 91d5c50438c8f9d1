package oidc

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// SkewLimit bounds Config.Skew: a wider one would hardly let tokens expire.
const SkewLimit = 10 * time.Minute

// Safe says whether an address may be asked for keys: others must not be able to change the answer on its way.
func Safe(u *url.URL) bool {
	if u.Scheme == "https" {
		return u.Host != ""
	}
	host := u.Hostname()
	address, err := netip.ParseAddr(host)
	return u.Scheme == "http" && (host == "localhost" || err == nil && address.IsLoopback())
}

// Address reads an address that may be asked for keys.
func Address(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.Fragment != "" {
		return nil, fmt.Errorf("%q is no address; give one such as https://login.example.com", text)
	}
	if !Safe(u) {
		return nil, fmt.Errorf("%q does not begin with https://, which all but an issuer on this machine must", text)
	}
	return u, nil
}

// Check refuses settings that cannot be meant, by the names of Config's members.
func (c Config) Check() error {
	if _, err := Address(c.Issuer); err != nil {
		return fmt.Errorf("issuer %w", err)
	}
	if len(c.Audiences) == 0 || slices.Contains(c.Audiences, "") {
		return errors.New("audience is missing; name that of the tokens which are meant for this installation, or tokens for others would be let in")
	}
	for _, alg := range c.Algorithms {
		if !slices.Contains(Algorithms(), alg) {
			return fmt.Errorf("algorithm %q is none that may be accepted; name some of %s", alg, strings.Join(Algorithms(), ", "))
		}
	}
	if c.Skew < 0 || c.Skew > SkewLimit {
		return fmt.Errorf("clock skew is %s; give a time from 0s to %s", c.Skew, SkewLimit)
	}
	return c.Claims.check()
}

func (c Claims) check() error {
	if c.Role == "" {
		return errors.New("role claim is missing; name the claim that holds the users' roles")
	}
	for value, role := range c.Roles {
		if !role.Valid() || value == "" {
			return fmt.Errorf("role map %q=%q names no role; map a value of the claim to one of %v", value, role, slipway.Roles())
		}
	}
	if (c.Tenant == "") == (c.All == "") {
		return errors.New("tenant claim or tenant: give one of both, the claim that holds the users' tenants or the tenant of all users (* = every tenant)")
	}
	if c.Tenant == "" && c.Tenants != nil {
		return errors.New("tenant map needs the tenant claim whose values it maps")
	}
	for value, id := range c.Tenants {
		if value == "" || id == "" {
			return fmt.Errorf("tenant map %q=%q lacks a side; map a value of the claim to a tenant's id, or to %s", value, id, EveryTenant)
		}
	}
	return nil
}
