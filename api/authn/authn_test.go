package authn_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/api/authn"
)

func TestClientAddress(t *testing.T) {
	t.Parallel()
	c := authn.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	for name, tc := range map[string]struct {
		peer      string
		forwarded []string
		want      string
	}{
		"no proxy":                      {"192.0.2.1:99", nil, "192.0.2.1"},
		"spoofed":                       {"192.0.2.1:99", []string{"198.51.100.1"}, "192.0.2.1"},
		"through a proxy":               {"10.0.0.1:99", []string{"198.51.100.1"}, "198.51.100.1"},
		"spoofed through a proxy":       {"10.0.0.1:99", []string{"203.0.113.9, 198.51.100.1"}, "198.51.100.1"},
		"spoofed in a line of its own":  {"10.0.0.1:99", []string{"203.0.113.9", "198.51.100.1"}, "198.51.100.1"},
		"through two proxies":           {"[::1]:99", []string{"203.0.113.9, 198.51.100.1, 10.1.1.1"}, "198.51.100.1"},
		"nonsense":                      {"10.0.0.1:99", []string{"unknown"}, "10.0.0.1"},
		"a proxy mapped into version 6": {"[::ffff:10.0.0.1]:99", []string{"2001:db8::1"}, "2001:db8::1"},
		"nothing known":                 {"@", []string{"198.51.100.1"}, ""},
	} {
		r := &http.Request{RemoteAddr: tc.peer, Header: http.Header{"X-Forwarded-For": tc.forwarded}}
		if got := c.Credential(r).Address; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestProxyUserOnlyFromTrustedProxies(t *testing.T) {
	t.Parallel()
	c := authn.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, ProxyRoleHeader: "X-Role", ProxyUserHeader: "X-User"}
	header := http.Header{"X-Role": {"admin"}, "X-User": {"ann"}, "X-Forwarded-For": {"10.0.0.1"}}
	for peer, want := range map[string]bool{"10.0.0.1:1": true, "192.0.2.1:1": false, "": false} {
		got := c.Credential(&http.Request{RemoteAddr: peer, Header: header}).Proxy
		if (got != nil) != want || want && (got.Role != "admin" || got.Name != "ann") {
			t.Errorf("from %q: %+v, want one = %v", peer, got, want)
		}
	}
	c.ProxyRoleHeader = ""
	if got := c.Credential(&http.Request{RemoteAddr: "10.0.0.1:1", Header: header}).Proxy; got != nil {
		t.Errorf("without the setting: %+v, want none", got)
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"abc-1": "abc-1", "a b": "", "\x1b[2J": "", strings.Repeat("x", 129): ""} {
		r := &http.Request{Header: http.Header{"X-Request-Id": {given}}}
		if got := (authn.Config{}).Credential(r).RequestID; got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}
