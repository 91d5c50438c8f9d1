package telemetry

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/beacon"
)

const (
	licenceFile = "licence.json"
	// firstRetry is how soon a licence that was never verified is tried again; the pause doubles up to the refresh interval.
	firstRetry = 2 * time.Second
	// opaqueToken is how long a token that does not say its end is used.
	opaqueToken = 10 * time.Minute
)

// licence keeps the installation's licence verified (spec 4.5, rule 1; control-plane reference 9): a failed refresh changes
// nothing of what was verified before, until the licence's own expiry. It stops nobody.
type licence struct {
	key     string
	path    string
	every   time.Duration
	to      collector
	now     func() time.Time
	onError func(error)

	mu    sync.Mutex
	known verified
	err   error // of the last attempt
}

// verified is what the collector said last; it is kept on the disk.
type verified struct {
	Key       string    `json:"key"` // which key it is about: its hash
	At        time.Time `json:"verified_at"`
	ExpiresAt time.Time `json:"expires_at"` // of the licence; zero = it does not say
	Token     string    `json:"token"`
	TokenEnds time.Time `json:"token_expires_at"`
}

func openLicence(dir, key string, every time.Duration, to collector, now func() time.Time, onError func(error)) *licence {
	l := &licence{key: key, path: filepath.Join(dir, licenceFile), every: every, to: to, now: now, onError: onError}
	var stored verified
	if raw, err := os.ReadFile(l.path); err == nil && json.Unmarshal(raw, &stored) == nil && stored.Key == l.fingerprint() {
		l.known = stored
	}
	return l
}

func (l *licence) fingerprint() string { return beacon.NameID("licence", l.key) }

// run verifies at start and then at every interval, until ctx ends.
func (l *licence) run(ctx context.Context) {
	pause := firstRetry
	for {
		err := l.verify(ctx)
		wait := l.every
		if err != nil && ctx.Err() == nil && !l.holds() {
			wait = min(pause, l.every)
			pause *= 2
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// holds says whether a verification holds.
func (l *licence) holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known.holds(l.now())
}

func (v verified) holds(now time.Time) bool {
	return !v.At.IsZero() && (v.ExpiresAt.IsZero() || now.Before(v.ExpiresAt))
}

// verify asks the collector once.
func (l *licence) verify(ctx context.Context) error {
	fresh, err := l.ask(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.mu.Lock()
	said := l.err != nil && err != nil && l.err.Error() == err.Error()
	l.err = err
	if err == nil {
		l.known = fresh
		raw, _ := json.Marshal(fresh) // always marshals
		_ = writeFile(l.path, raw)    // without it the next start asks again
	}
	l.mu.Unlock()
	if err != nil && !said {
		l.onError(err)
	}
	return err
}

func (l *licence) ask(ctx context.Context) (verified, error) {
	body, err := json.Marshal(map[string]string{"license": l.key})
	if err != nil {
		return verified{}, err
	}
	text, err := l.to.post(ctx, "/v1/beacon/verify", body, "")
	if err != nil {
		return verified{}, err
	}
	var answer struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Token == "" || len(answer.Token) > beacon.MaxKeyLength {
		return verified{}, &failure{status: http.StatusOK, text: "the answer holds no token"}
	}
	v := verified{Key: l.fingerprint(), At: l.now(), Token: answer.Token, TokenEnds: l.now().Add(opaqueToken)}
	_, issued, ends, licenceEnds, ok := beacon.Claimed(answer.Token)
	if ok {
		v.ExpiresAt, v.TokenEnds = licenceEnds, ends
		if !issued.IsZero() { // by the clock here, whatever the collector's says
			v.TokenEnds = l.now().Add(ends.Sub(issued))
		}
	}
	return v, l.checked(ctx, answer.Token, ok)
}

// checked verifies a token of this house's collectors with the keys they publish. Tokens of others are taken as they are.
func (l *licence) checked(ctx context.Context, token string, readable bool) error {
	if !readable {
		return nil
	}
	text, err := l.to.get(ctx, "/.well-known/jwks.json")
	if status := statusOf(err); status == http.StatusNotFound || status == http.StatusUnauthorized {
		return nil
	}
	if err != nil {
		return err
	}
	keys, err := beacon.ParseJWKS(text)
	if err != nil {
		return err
	}
	_, issued, _, _, _ := beacon.Claimed(token)
	_, err = keys.VerifyToken(token, issued.Add(time.Second)) // the clock of its signer counts
	return err
}

// credential is what requests are made with: the token while it lasts, else the key itself.
func (l *licence) credential() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known.Token != "" && l.now().Add(beacon.Skew/4).Before(l.known.TokenEnds) {
		return l.known.Token
	}
	return l.key
}

// reject drops a token that the collector did not take; it reports whether there was one.
func (l *licence) reject(credential string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if credential == l.key {
		return false
	}
	if l.known.Token == credential {
		l.known.Token = ""
	}
	return true
}

func (l *licence) status() beacon.LicenceStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := beacon.LicenceStatus{Kind: beacon.KindOf(l.key), Status: "unverified"}
	if l.err != nil {
		s.LastError = l.err.Error()
	}
	s.VerifiedAt, s.ExpiresAt = moment(l.known.At), moment(l.known.ExpiresAt)
	if _, _, ends, _, ok := beacon.Claimed(l.key); ok && s.ExpiresAt == nil {
		s.ExpiresAt = moment(ends)
	}
	switch code := statusOf(l.err); {
	case l.known.holds(l.now()):
		s.Status = "valid"
	case !l.known.At.IsZero():
		s.Status = "expired"
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		s.Status = "refused"
	}
	return s
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
