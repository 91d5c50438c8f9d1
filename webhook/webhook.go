// Package webhook sends deliveries over HTTP. It is a slipway.WebhookSender that follows no redirects, bounds time and size,
// and can be kept from private networks.
package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway"
)

// Config are the settings of a Sender.
type Config struct {
	// Timeout bounds a whole delivery; 0 = 15 s.
	Timeout time.Duration
	// Refuse says which addresses must not be called, and why; nil = none. It is asked when dialling, about the address
	// itself, so that no name can lead there. See PublicOnly and NotHere.
	Refuse func(netip.Addr) error
	Clock  slipway.Clock
}

// Sender sends deliveries. It is safe for concurrent use.
type Sender struct {
	http  *http.Client
	clock slipway.Clock
}

var _ slipway.WebhookSender = (*Sender)(nil)

// New returns a sender.
func New(cfg Config) *Sender {
	if cfg.Timeout == 0 {
		cfg.Timeout = 15 * time.Second
	}
	dialer := &net.Dialer{Timeout: cfg.Timeout}
	if cfg.Refuse != nil {
		dialer.Control = refuse(cfg.Refuse)
	}
	return &Sender{clock: cfg.Clock, http: &http.Client{
		Timeout: cfg.Timeout,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: cfg.Timeout, MaxIdleConnsPerHost: 2, MaxIdleConns: 100,
			IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

var errPrivate = errors.New("the address is not public, and this installation delivers to public addresses only")

var errHere = errors.New("the address is this machine or its link, where webhooks are not delivered")

// metadata is where cloud machines ask about themselves beside the link-local 169.254.169.254.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"), netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("192.0.0.192"),
}

// translated are ranges of IPv6 that stand for addresses of IPv4, which begin at a byte of theirs.
var translated = []struct {
	prefix netip.Prefix
	at     int
}{{netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("2002::/16"), 2}}

// reserved are ranges that net/netip does not call private and that are not public either.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("2002::/16"),
}

func refuse(rule func(netip.Addr) error) func(string, string, syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return rule(at.Addr().Unmap())
	}
}

// PublicOnly refuses what is not public: loopback, private, link-local and the like.
func PublicOnly(ip netip.Addr) error {
	if !Public(ip) {
		return errPrivate
	}
	return nil
}

// NotHere refuses this machine and what only it can see, cloud metadata above all; private networks are fine.
func NotHere(ip netip.Addr) error {
	ip = inner(ip)
	if ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || slices.Contains(metadata, ip.WithZone("")) {
		return errHere
	}
	return nil
}

// inner is the IPv4 address that an address of IPv6 stands for; any other as it is.
func inner(ip netip.Addr) netip.Addr {
	for _, t := range translated {
		if t.prefix.Contains(ip) {
			raw := ip.As16()
			return netip.AddrFrom4([4]byte(raw[t.at : t.at+4]))
		}
	}
	return ip.Unmap()
}

// NotMetadata is NotHere for those who may call this machine.
func NotMetadata(ip netip.Addr) error {
	if ip.IsLoopback() {
		return nil
	}
	return NotHere(ip)
}

// Public says whether an address is one of the public network.
func Public(ip netip.Addr) bool {
	ip = ip.Unmap()
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	for _, p := range reserved {
		if p.Contains(ip) {
			return false
		}
	}
	return true
}

// Send implements slipway.WebhookSender.
func (s *Sender) Send(ctx context.Context, r slipway.WebhookRequest) (slipway.WebhookAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return slipway.WebhookAnswer{}, fmt.Errorf("the address cannot be used: %w", err)
	}
	req.Header.Set("User-Agent", "slipway-webhook")
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	res, err := s.http.Do(req)
	if err != nil {
		return slipway.WebhookAnswer{}, noAnswer(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(res.Body, slipway.MaxWebhookResponse)) // what there is of it; the status has come
	return slipway.WebhookAnswer{
		Status: res.StatusCode, Body: strings.ReplaceAll(strings.ToValidUTF8(string(body), "\ufffd"), "\x00", "\ufffd"),
		RetryAfter: s.retryAfter(res.Header.Get("Retry-After")),
	}, nil
}

// noAnswer leaves out the address, which its owner knows and which may hold a token.
func noAnswer(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		if failed.Timeout() {
			return errors.New("no answer in time")
		}
		err = failed.Err
	}
	return fmt.Errorf("no answer: %w", err)
}

// retryAfter reads seconds or a date; 0 = nothing sensible.
func (s *Sender) retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 24*60*60)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(s.clock()), 0), 24*time.Hour)
	}
	return 0
}
