package control

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/slipway-dev/slipway"
)

// keyMark begins every API key, so that scanners find leaked ones; prefixLength of it is kept and shown.
const (
	keyMark      = "slw_"
	keyBytes     = 32
	prefixLength = 12
)

// Credential is what a request brought to prove who it is (control-plane reference 1).
type Credential struct {
	Key      string // X-Api-Key, or the opaque bearer token; "" = none
	TenantID string // X-Tenant-Id; "" = none
}

// Bootstrapped is what the first start made.
type Bootstrapped struct {
	TenantID string
	Key      string // of an admin, in clear; "" = the installation was bootstrapped before
}

// Bootstrap makes the default tenant and an admin key on the first start. The key is returned this one time only; if it
// was lost, IssueKey makes another.
func (s *Service) Bootstrap(ctx context.Context) (Bootstrapped, error) {
	key, record, err := s.newKey("", slipway.RoleAdmin)
	if err != nil {
		return Bootstrapped{}, err
	}
	var out Bootstrapped
	err = s.store.Update(ctx, func(tx slipway.Tx) error {
		tenants, err := tx.Tenants()
		if err != nil {
			return err
		}
		if len(tenants) > 0 {
			out = Bootstrapped{TenantID: tenants[0].ID}
			return nil
		}
		out = Bootstrapped{TenantID: s.ids(), Key: key}
		if err := tx.PutTenant(slipway.Tenant{ID: out.TenantID, Name: "default", CreatedAt: s.clock()}); err != nil {
			return err
		}
		record.TenantID = out.TenantID
		return tx.PutAPIKey(record)
	})
	if err != nil {
		return Bootstrapped{}, fmt.Errorf("bootstrap: %w", err)
	}
	return out, nil
}

// IssueKey makes a key of a tenant and returns it in clear, once. It is for operators, not behind the API.
func (s *Service) IssueKey(ctx context.Context, tenantID string, role slipway.Role) (string, error) {
	key, record, err := s.newKey(tenantID, role)
	if err != nil {
		return "", err
	}
	err = s.store.Update(ctx, func(tx slipway.Tx) error { return tx.PutAPIKey(record) })
	if err != nil {
		return "", fmt.Errorf("issue key: %w", err)
	}
	return key, nil
}

func (s *Service) newKey(tenantID string, role slipway.Role) (string, slipway.APIKey, error) {
	raw := make([]byte, keyBytes)
	if _, err := io.ReadFull(s.random, raw); err != nil {
		return "", slipway.APIKey{}, fmt.Errorf("draw an api key: %w", err)
	}
	key := keyMark + base64.RawURLEncoding.EncodeToString(raw)
	return key, slipway.APIKey{
		ID: s.ids(), TenantID: tenantID, Hash: hashKey(key), Prefix: key[:prefixLength], Role: role, CreatedAt: s.clock(),
	}, nil
}

// hashKey needs no salt or stretching: keys are 256 random bits.
func hashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Authenticate finds out who makes a request: CodeUnauthenticated without a valid key, CodeForbidden if the key and the
// tenant header do not go together. A tenant header alone proves nothing here.
func (s *Service) Authenticate(ctx context.Context, c Credential) (slipway.Principal, error) {
	if c.Key == "" {
		return slipway.Principal{}, slipway.Errorf(slipway.CodeUnauthenticated, "no credential: send an API key as X-Api-Key, or as Authorization: Bearer")
	}
	var key slipway.APIKey
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		key, err = tx.APIKeyByHash(hashKey(c.Key))
		return err
	})
	if slipway.ErrorCode(err) == slipway.CodeNotFound || err == nil && !key.RevokedAt.IsZero() {
		return slipway.Principal{}, slipway.Errorf(slipway.CodeUnauthenticated, "the API key is not known here or was revoked; check the key and the address")
	}
	if err != nil {
		return slipway.Principal{}, fmt.Errorf("authenticate: %w", err)
	}
	tenant, err := s.selectTenant(ctx, key, c.TenantID)
	if err != nil {
		return slipway.Principal{}, err
	}
	return slipway.Principal{ID: "key:" + key.Prefix, TenantID: tenant, Role: key.Role}, nil
}

// selectTenant applies the X-Tenant-Id rule: it selects the tenant of an organisation-wide key, and must not contradict
// the key of one tenant. The words "requires workspace specification" are what clients look for.
func (s *Service) selectTenant(ctx context.Context, key slipway.APIKey, asked string) (string, error) {
	switch {
	case key.TenantID != "" && (asked == "" || asked == key.TenantID):
		return key.TenantID, nil
	case key.TenantID != "":
		return "", slipway.Errorf(slipway.CodeForbidden, "the API key does not belong to the tenant of X-Tenant-Id; leave the header out")
	case asked == "":
		return "", slipway.Errorf(slipway.CodeForbidden, "this organisation-wide key requires workspace specification: send X-Tenant-Id")
	}
	err := s.store.View(ctx, func(tx slipway.Tx) error {
		tenants, err := tx.Tenants()
		if err != nil {
			return err
		}
		for _, t := range tenants {
			if t.ID == asked {
				return nil
			}
		}
		return slipway.Errorf(slipway.CodeForbidden, "the organisation has no tenant with the id of X-Tenant-Id; check it")
	})
	return asked, err
}
