package intake

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/beacon"
)

// LicenceRequest asks for a licence.
type LicenceRequest struct {
	Customer     string
	Kind         beacon.Kind
	Days         int // how long it is valid
	Entitlements []string
}

// Issue makes a licence, stores it and returns it with its key, which is shown this once.
func (s *Service) Issue(ctx context.Context, r LicenceRequest) (beacon.Licence, string, error) {
	now := s.cfg.Now().UTC().Truncate(time.Second)
	l := beacon.Licence{
		ID: s.cfg.IDs(), Customer: strings.TrimSpace(r.Customer), Kind: r.Kind, Entitlements: slices.Clone(r.Entitlements),
		IssuedAt: now, ExpiresAt: now.AddDate(0, 0, max(0, min(r.Days, beacon.MaxLicenceDays+1))),
	}
	if err := l.Validate(); err != nil {
		return beacon.Licence{}, "", err
	}
	ring, err := s.keys.Ring()
	if err != nil {
		return beacon.Licence{}, "", err
	}
	if err := s.store.Update(ctx, func(tx beacon.Tx) error { return tx.PutLicence(l) }); err != nil {
		return beacon.Licence{}, "", err
	}
	return l, ring.Current().Sign(l), nil
}

// Revoke ends a licence, named by its id or its key; a running collector refuses it from the next request on. Revoking one
// that is revoked changes nothing.
func (s *Service) Revoke(ctx context.Context, idOrKey string) (beacon.Licence, error) {
	id := idOrKey
	if l, err := s.identify(idOrKey); err == nil {
		id = l.ID
	}
	var l beacon.Licence
	err := s.store.Update(ctx, func(tx beacon.Tx) (err error) {
		if l, err = tx.Licence(id); err != nil || !l.RevokedAt.IsZero() {
			return err
		}
		l.RevokedAt = s.cfg.Now().UTC().Truncate(time.Second)
		return tx.PutLicence(l)
	})
	return l, err
}

// Licences lists all licences, oldest first.
func (s *Service) Licences(ctx context.Context) (list []beacon.Licence, err error) {
	err = s.store.View(ctx, func(tx beacon.Tx) error {
		list, err = tx.Licences()
		return err
	})
	return list, err
}

// Rotate puts a new signing key in use; licences and tokens of the old ones stay valid.
func (s *Service) Rotate() (beacon.SigningKey, error) { return s.keys.Rotate() }

// Caller is whom a credential was issued to, before the store was asked whether it still holds.
type Caller struct {
	licence beacon.Licence
}

// Identify checks a licence key or a token by signature and expiry, and how many requests its licence has made. It asks no
// store, so it may come before a body is read; what the caller then does asks whether the licence was revoked.
func (s *Service) Identify(credential string) (Caller, error) {
	if credential == "" {
		return Caller{}, slipway.Errorf(slipway.CodeUnauthenticated, "there is no licence; send its key as \"license\" in the body, or as the header X-License-Key or Authorization: Bearer")
	}
	l, err := s.identify(credential)
	if err != nil {
		return Caller{}, err
	}
	if err := l.Check(s.cfg.Now()); err != nil {
		return Caller{}, err
	}
	if err := s.licences.take(l.ID, "licence", s.cfg.Now()); err != nil {
		return Caller{}, err
	}
	return Caller{l}, nil
}

func (s *Service) identify(credential string) (beacon.Licence, error) {
	ring, err := s.keys.Ring()
	if err != nil {
		return beacon.Licence{}, err
	}
	l, err := ring.Public().VerifyKey(credential)
	if err == nil {
		return l, nil
	}
	if token, e := ring.Public().VerifyToken(credential, s.cfg.Now()); e == nil {
		return token.Licence, nil
	} else if strings.Count(credential, ".") == 2 && strings.HasPrefix(credential, "eyJ") {
		err = e // it looks like a token: say what is wrong with it as one
	}
	return beacon.Licence{}, err
}

// admit returns the caller's licence as it is stored, if it may still be used.
func (s *Service) admit(tx beacon.Tx, c Caller) (beacon.Licence, error) {
	l, err := tx.Licence(c.licence.ID)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return l, slipway.Errorf(slipway.CodeUnauthenticated, "the licence is unknown here; it was issued by another collector")
	}
	if err != nil {
		return l, err
	}
	return l, l.Check(s.cfg.Now())
}

// Verify answers /v1/beacon/verify: a short-lived token for the key of a licence that holds. A token is no key.
func (s *Service) Verify(ctx context.Context, key string) (token string, licence beacon.Licence, err error) {
	ring, err := s.keys.Ring()
	if err != nil {
		return "", licence, err
	}
	if _, err := ring.Public().VerifyKey(key); err != nil {
		return "", licence, err
	}
	c, err := s.Identify(key)
	if err != nil {
		return "", licence, err
	}
	if err := s.store.View(ctx, func(tx beacon.Tx) (err error) {
		licence, err = s.admit(tx, c)
		return err
	}); err != nil {
		return "", licence, err
	}
	return ring.Current().SignToken(licence, s.cfg.Now()), licence, nil
}
