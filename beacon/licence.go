package beacon

import (
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// Kind says whether an installation with a licence talks to a collector.
type Kind string

// The kinds of a licence (control-plane reference 9).
const (
	Online  Kind = "online"  // verified by a collector, telemetry is sent
	Offline Kind = "offline" // verified by its signature alone, nothing is ever sent
)

// OnlinePrefix begins the key of every online licence; a key with any other beginning is an offline one (control-plane
// reference 9). OfflinePrefix is the beginning that this house gives to those.
const (
	OnlinePrefix  = "lcl_"
	OfflinePrefix = "lof_"
)

// Bounds of a licence.
const (
	MaxCustomer     = 200             // characters of a customer's name
	MaxEntitlements = 50              // entitlements of one licence
	MaxLicenceDays  = 3660            // days a licence may be valid
	MaxKeyLength    = 16 << 10        // bytes of a licence key or token that is looked at at all
	maxEntitlement  = 64              // characters of an entitlement
	Skew            = 2 * time.Minute // how far clocks of two machines may be apart
)

// Licence is what a collector knows of one licence. The key itself is not kept: the signature proves it.
type Licence struct {
	ID           string // UUID
	Customer     string
	Kind         Kind
	Entitlements []string
	IssuedAt     time.Time
	ExpiresAt    time.Time
	RevokedAt    time.Time // zero = not revoked
}

// KindOf tells the kind of a key by its prefix, without verifying it.
func KindOf(key string) Kind {
	if strings.HasPrefix(key, OnlinePrefix) {
		return Online
	}
	return Offline
}

// Prefix is how keys of the kind begin.
func (k Kind) Prefix() string {
	if k == Online {
		return OnlinePrefix
	}
	return OfflinePrefix
}

// Validate collects what is wrong with a licence that is about to be issued.
func (l Licence) Validate() error {
	var problems slipway.Problems
	if l.Customer != strings.TrimSpace(l.Customer) || l.Customer == "" || len(l.Customer) > MaxCustomer {
		problems.Add([]any{"customer"}, "%q is no name of a customer; give 1 to %d characters without space around them", clip(l.Customer), MaxCustomer)
	}
	if l.Kind != Online && l.Kind != Offline {
		problems.Add([]any{"kind"}, "%q is no kind of licence; use online or offline", clip(string(l.Kind)))
	}
	if days := l.ExpiresAt.Sub(l.IssuedAt).Hours() / 24; days <= 0 || days > MaxLicenceDays {
		problems.Add([]any{"days"}, "a licence may be valid for 1 to %d days, not %.0f", MaxLicenceDays, days)
	}
	if len(l.Entitlements) > MaxEntitlements {
		problems.Add([]any{"entitlements"}, "there are %d entitlements; give at most %d", len(l.Entitlements), MaxEntitlements)
	}
	for i, e := range l.Entitlements {
		if len(e) > maxEntitlement || !wordForm.MatchString(e) {
			problems.Add([]any{"entitlements", i}, "%q is no entitlement; use letters, digits, '.', '_' and '-', at most %d", clip(e), maxEntitlement)
		}
	}
	return problems.Err()
}

// Check says whether the licence may be used at a time: nil, or CodeForbidden with the reason.
func (l Licence) Check(now time.Time) error {
	switch {
	case !l.RevokedAt.IsZero():
		return slipway.Errorf(slipway.CodeForbidden, "the licence was revoked on %s; ask its issuer for another", day(l.RevokedAt))
	case !now.Before(l.ExpiresAt):
		return slipway.Errorf(slipway.CodeForbidden, "the licence expired on %s; ask its issuer for another", day(l.ExpiresAt))
	}
	return nil
}

// Entitled says whether the licence has an entitlement.
func (l Licence) Entitled(to string) bool { return slices.Contains(l.Entitlements, to) }

// Status is the licence's state at a time in one word: active, revoked or expired.
func (l Licence) Status(now time.Time) string {
	switch {
	case !l.RevokedAt.IsZero():
		return "revoked"
	case !now.Before(l.ExpiresAt):
		return "expired"
	}
	return "active"
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// clip keeps a value that is shown in an error short.
func clip(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}
