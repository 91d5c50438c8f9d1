package engine

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway"
)

// WebhookPolicy says which addresses runs may name as their webhook, and what is sent there (the key `webhooks` of the graph
// configuration, agent-server reference 4.4). The zero policy allows http and https to any host but this one.
type WebhookPolicy struct {
	Disabled       bool // http.disable_webhooks
	RequireHTTPS   bool
	AllowedDomains []string // exact, or *.example.com for what is below it; empty = any
	AllowedPorts   []int    // empty = any
	MaxURLLength   int      // 0 = 65536
	AllowLoopback  bool     // disable_loopback is false: relative addresses and localhost
	Headers        map[string]string
	Payload        []string // the members that are sent; empty = all
}

// maxWebhook is the longest address a run may name (reference 4.1).
const maxWebhook = 65536

// check refuses what the policy does not allow, naming the setting that would; "" is no webhook.
func (p WebhookPolicy) check(address string) error {
	if address == "" {
		return nil
	}
	refuse := func(format string, args ...any) error {
		return slipway.Errorf(slipway.CodeInvalid, "webhook: "+format, args...)
	}
	u, err := url.Parse(address)
	switch limit := or(p.MaxURLLength, maxWebhook); {
	case p.Disabled:
		return refuse("webhooks are disabled here (http.disable_webhooks)")
	case len(address) > limit:
		return refuse("the address has %d characters; webhooks.url.max_url_length allows %d", len(address), limit)
	case err != nil:
		return refuse("%q is no address; give one such as https://example.com/hook", address)
	case !p.AllowLoopback && (u.Host == "" || local(u.Hostname())):
		return slipway.Errorf(slipway.CodeInvalid, "Loopback webhooks (relative URLs and localhost) are disabled by default; set webhooks.url.disable_loopback to false in the graph configuration to allow them")
	case u.Host == "" && u.Scheme == "" && strings.HasPrefix(u.Path, "/"):
		return nil // this server itself
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return refuse("%q is no http or https address", address)
	case p.RequireHTTPS && u.Scheme != "https":
		return refuse("%q is not https, which webhooks.url.require_https asks for", address)
	case len(p.AllowedDomains) > 0 && !slices.ContainsFunc(p.AllowedDomains, func(d string) bool { return within(u.Hostname(), d) }):
		return refuse("the host %q is not among webhooks.url.allowed_domains", u.Hostname())
	case len(p.AllowedPorts) > 0 && !slices.Contains(p.AllowedPorts, port(u)):
		return refuse("the port %d is not among webhooks.url.allowed_ports", port(u))
	}
	return nil
}

// local says whether a host names this machine by its very name; what names resolve to is checked when they are called.
func local(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback() || ip.IsUnspecified()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// within says whether a host is an allowed domain, or below one written *.domain; that does not hold the domain itself.
func within(host, domain string) bool {
	host, domain = strings.ToLower(host), strings.ToLower(domain)
	if below, ok := strings.CutPrefix(domain, "*"); ok {
		return strings.HasSuffix(host, below) && len(host) > len(below)
	}
	return host == domain
}

func port(u *url.URL) int {
	if n, err := strconv.Atoi(u.Port()); err == nil {
		return n
	}
	if u.Scheme == "https" {
		return 443
	}
	return 80
}
