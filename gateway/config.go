package gateway

import (
	"net/netip"
	"slices"
	"time"
)

// Config are the settings of a Gateway. Zero values mean the defaults named.
type Config struct {
	// Prefix is what every deployment's path starts with; "/d/".
	Prefix string
	// Wait is how long a request waits for a revision that serves; 10 s.
	Wait time.Duration
	// DialTimeout bounds connecting to an agent server; 2 s.
	DialTimeout time.Duration
	// IdlePerHost is how many idle connections to one agent server are kept; 256.
	IdlePerHost int
	// TrustedProxies are the networks of proxies in front: what they say in X-Forwarded-For, -Host and -Proto is passed on.
	// From anybody else these headers are replaced.
	TrustedProxies []netip.Prefix
}

// trusts says whether an address, with its port, is a trusted proxy's.
func (c Config) trusts(peer string) bool {
	from, err := netip.ParseAddrPort(peer)
	return err == nil && slices.ContainsFunc(c.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(from.Addr().Unmap()) })
}

func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = "/d/"
	}
	if c.Wait == 0 {
		c.Wait = 10 * time.Second
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = 2 * time.Second
	}
	if c.IdlePerHost == 0 {
		c.IdlePerHost = 256
	}
	return c
}
