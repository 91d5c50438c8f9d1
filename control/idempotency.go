package control

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
)

// Bounds of what is kept for Idempotency-Key.
const (
	keptFor       = 24 * time.Hour
	maxKeptAnswer = 1 << 20 // bytes of a body; a larger answer is not repeated
	maxClaims     = 10_000  // of one tenant; those that end first give way
	attemptLease  = time.Minute
	expireBatch   = 500
)

// KeyedRequest is a request that bears an Idempotency-Key.
type KeyedRequest struct {
	Method, Path, Key string
	Query             string
	Body              []byte
}

// Answer is what a request was answered.
type Answer struct {
	Status int
	Header map[string]string
	Body   []byte
}

// Attempt is a keyed request that is being carried out. Exactly one of Answered and Abandoned ends it.
type Attempt struct {
	s     *Service
	claim slipway.IdempotencyClaim
	done  chan struct{}
}

// attempts are the keyed requests that run in this process.
type attempts struct {
	mu      sync.Mutex
	running map[string]chan struct{}
}

type attemptKey struct{}

// Context returns ctx for the use case: its first durable effect is marked in the same transaction, so that a repetition
// after a crash does not have it again.
func (a *Attempt) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

// BeginKeyed says what is to be done with a keyed request: carry it out as the attempt, or repeat the answer; one of them
// is nil. CodeInvalid: the key was used for another request; CodeConflict: the first request runs still, or was carried
// out but its answer is lost. An identical PATCH waits for the one that runs, as without a key (control-plane reference 6).
func (s *Service) BeginKeyed(ctx context.Context, who slipway.Principal, r KeyedRequest) (*Attempt, *Answer, error) {
	// The rights are part of it: what somebody was answered who might do more is not repeated to who may do less now.
	scope := s.keyed("scope", who.TenantID, who.ID, string(who.Role), strconv.FormatBool(who.Organisation), who.DeploymentID, r.Method, r.Path, r.Key)
	request := s.keyed("request", r.Query, string(r.Body))
	for {
		done, mine := s.attempts.enter(scope)
		if !mine {
			if r.Method != "PATCH" {
				return nil, nil, stillRunning()
			}
			select {
			case <-done:
				continue
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			}
		}
		a := &Attempt{s: s, done: done, claim: slipway.IdempotencyClaim{Scope: scope, TenantID: who.TenantID, Request: request, Owner: s.ids(), Running: true}}
		answer, err := s.claimKey(ctx, a)
		if err != nil || answer != nil {
			s.attempts.leave(scope, done)
			return nil, answer, wrap("claim idempotency key", err)
		}
		return a, nil, nil
	}
}

// keyed hashes the parts with a key of this installation, so that nobody finds out by trying what stands in a stored hash.
func (s *Service) keyed(parts ...string) string {
	mac := hmac.New(sha256.New, s.cfg.UploadKey)
	mac.Write([]byte("idempotency"))
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		mac.Write(sum[:])
	}
	return hex.EncodeToString(mac.Sum(nil))
}

func (a *attempts) enter(scope string) (done chan struct{}, mine bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if done, ok := a.running[scope]; ok {
		return done, false
	}
	if a.running == nil {
		a.running = map[string]chan struct{}{}
	}
	done = make(chan struct{})
	a.running[scope] = done
	return done, true
}

func (a *attempts) leave(scope string, done chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.running, scope)
	close(done)
}

// claimKey writes the claim, or returns the answer that the key has already.
func (s *Service) claimKey(ctx context.Context, a *Attempt) (answer *Answer, err error) {
	err = s.store.Update(ctx, func(tx slipway.Tx) error {
		answer = nil
		stored, err := tx.IdempotencyClaim(a.claim.Scope)
		now := s.clock()
		if err == nil && stored.EndsAt.After(now) {
			if answer, err = s.repeated(stored, a.claim.Request, now); answer != nil || err != nil {
				return err
			}
		} else if err != nil && slipway.ErrorCode(err) != slipway.CodeNotFound {
			return err
		}
		a.claim.LeaseEnds, a.claim.EndsAt = now.Add(attemptLease), now.Add(keptFor)
		if err := tx.PutIdempotencyClaim(a.claim); err != nil {
			return err
		}
		return tx.TrimIdempotencyClaims(a.claim.TenantID, maxClaims)
	})
	return answer, err
}

// repeated returns the stored answer; neither answer nor error means that the earlier attempt died without effect.
func (s *Service) repeated(stored slipway.IdempotencyClaim, request string, now time.Time) (*Answer, error) {
	switch {
	case stored.Request != request:
		var problems slipway.Problems
		problems.Add([]any{"header", "Idempotency-Key"}, "this Idempotency-Key was used for another request; use a new key for each request")
		return nil, problems.Err()
	case stored.Running && stored.LeaseEnds.After(now):
		return nil, stillRunning()
	case stored.Running && !stored.Committed:
		return nil, nil
	case stored.Sealed == nil:
		return nil, slipway.Errorf(slipway.CodeConflict, "the first request with this Idempotency-Key was carried out, but its answer was not kept; read the resource to see what it did, and use a new key for another change")
	}
	body, err := s.sealer.Open(stored.TenantID, "idempotency", stored.Scope, stored.Sealed)
	if err != nil {
		return nil, slipway.Errorf(slipway.CodeConflict, "the first request with this Idempotency-Key was carried out, but its answer cannot be opened with this installation's master key; read the resource to see what it did")
	}
	return &Answer{Status: stored.Status, Header: stored.Header, Body: []byte(body)}, nil
}

func stillRunning() error {
	return slipway.Errorf(slipway.CodeConflict, "the first request with this Idempotency-Key runs still; repeat it in a moment")
}

// attemptDone marks the effects of the attempt that ctx belongs to, in their own transaction. CodeStale: another attempt has
// taken over, so this one must have none.
func attemptDone(ctx context.Context, tx slipway.Tx) error {
	a, ok := ctx.Value(attemptKey{}).(*Attempt)
	if !ok {
		return nil
	}
	stored, err := tx.IdempotencyClaim(a.claim.Scope)
	if err != nil && slipway.ErrorCode(err) != slipway.CodeNotFound {
		return err
	}
	if err != nil || stored.Owner != a.claim.Owner {
		return slipway.Errorf(slipway.CodeStale, "another request with this Idempotency-Key took over; repeat it")
	}
	if stored.Committed {
		return nil
	}
	stored.Committed = true
	return tx.PutIdempotencyClaim(stored)
}

// Answered keeps the answer before it is sent. One that says nothing about the request itself is forgotten, so that a
// repetition is carried out.
func (a *Attempt) Answered(ctx context.Context, answer Answer) error {
	defer a.s.attempts.leave(a.claim.Scope, a.done)
	return wrap("keep answer", a.s.store.Update(context.WithoutCancel(ctx), func(tx slipway.Tx) error {
		stored, err := tx.IdempotencyClaim(a.claim.Scope)
		if slipway.ErrorCode(err) == slipway.CodeNotFound || err == nil && stored.Owner != a.claim.Owner {
			return nil
		}
		if err != nil {
			return err
		}
		if !keeps(answer.Status) && !stored.Committed {
			return tx.DropIdempotencyClaim(a.claim.Scope)
		}
		stored.Running, stored.Committed = false, true
		stored.EndsAt = a.s.clock().Add(keptFor)
		if keeps(answer.Status) && len(answer.Body) <= maxKeptAnswer {
			stored.Status, stored.Header = answer.Status, answer.Header
			if stored.Sealed, err = a.s.sealer.Seal(stored.TenantID, "idempotency", stored.Scope, string(answer.Body)); err != nil {
				return err
			}
		}
		return tx.PutIdempotencyClaim(stored)
	}))
}

// keeps says whether an answer of this status is one to the request, rather than to the moment or the caller.
func keeps(status int) bool {
	switch status {
	case 400, 404, 409, 422:
		return true
	}
	return status >= 200 && status < 300
}

// Abandoned ends an attempt that did not come to an answer: without effect it may be made again.
func (a *Attempt) Abandoned(ctx context.Context) {
	if err := a.Answered(ctx, Answer{Status: 500}); err != nil {
		a.s.log.Warn("idempotency key not freed", "error", err.Error())
	}
}

// sweepClaims forgets what was kept long enough, a batch a transaction.
func (s *Service) sweepClaims(ctx context.Context) (next time.Time, err error) {
	for {
		err = s.store.View(ctx, func(tx slipway.Tx) (err error) {
			next, err = tx.ExpireIdempotencyClaims(time.Time{}, 0)
			return err
		})
		if err != nil || next.IsZero() || next.After(s.clock()) {
			return next, err
		}
		if err = s.store.Update(ctx, func(tx slipway.Tx) (err error) {
			next, err = tx.ExpireIdempotencyClaims(s.clock(), expireBatch)
			return err
		}); err != nil {
			return next, err
		}
	}
}
