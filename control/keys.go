package control

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/slipway-dev/slipway"
)

// keyMark begins every API key, so that scanners find leaked ones; prefixLength of it is kept and shown.
const (
	keyMark      = "slw_"
	keyBytes     = 32
	prefixLength = 12
)

// Bootstrapped is what the first start made.
type Bootstrapped struct {
	TenantID string
	Key      string // organisation-wide, of an admin, in clear; "" = the installation was bootstrapped before
}

// Bootstrap makes the default tenant and, on the first start, an organisation-wide admin key that acts in it. The key is returned this one time only; if it
// was lost, IssueKey makes another.
func (s *Service) Bootstrap(ctx context.Context) (Bootstrapped, error) {
	key, record, err := s.newKey("", slipway.RoleAdmin)
	if err != nil {
		return Bootstrapped{}, err
	}
	var out Bootstrapped
	err = s.store.Update(ctx, func(tx slipway.Tx) error {
		tenants, err := tx.Tenants(slipway.TenantQuery{Limit: 1})
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
		record.DefaultTenantID = out.TenantID
		return tx.PutAPIKey(record)
	})
	if err != nil {
		return Bootstrapped{}, fmt.Errorf("bootstrap: %w", err)
	}
	s.access.forget()
	s.first.Store(out.TenantID)
	return out, nil
}

// Slug is the last part of a deployment's address.
func (s *Service) Slug(d slipway.Deployment) string {
	first, _ := s.first.Load().(string)
	return slipway.Slug(d.Name, d.TenantID, first)
}

// IssueKey makes a key of a tenant, organisation-wide for "", and returns it in clear, once. It is for operators, not behind
// the API.
func (s *Service) IssueKey(ctx context.Context, tenantID string, role slipway.Role) (string, error) {
	return s.issue(ctx, tenantID, "", role)
}

// IssueOrganisationKey makes an organisation-wide admin key that acts in a tenant unless a request names another. It is for
// operators, not behind the API.
func (s *Service) IssueOrganisationKey(ctx context.Context, defaultTenantID string) (string, error) {
	return s.issue(ctx, "", defaultTenantID, slipway.RoleAdmin)
}

func (s *Service) issue(ctx context.Context, tenantID, defaultTenantID string, role slipway.Role) (string, error) {
	key, record, err := s.newKey(tenantID, role)
	if err != nil {
		return "", err
	}
	record.DefaultTenantID = defaultTenantID
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

// IssuedKey is a new key, in clear this one time only.
type IssuedKey struct {
	slipway.APIKey
	Key string
}

// keyOwner is the tenant whose keys a call is about, "" for the organisation's, which only its own admins may see.
func keyOwner(who slipway.Principal, organisation bool) (string, error) {
	if !organisation {
		return who.TenantID, authorize(who, mayManageKeys)
	}
	return "", authorizeOrganisation(who, mayManageKeys)
}

// CreateKey makes a key of the caller's tenant or, for an organisation-wide admin, of the organisation.
func (s *Service) CreateKey(ctx context.Context, who slipway.Principal, in slipway.APIKeyCreate) (IssuedKey, error) {
	owner, err := keyOwner(who, in.Organisation)
	if err != nil {
		return IssuedKey{}, err
	}
	if in, err = in.Valid(s.clock()); err != nil {
		return IssuedKey{}, err
	}
	key, record, err := s.newKey(owner, in.Role)
	if err != nil {
		return IssuedKey{}, err
	}
	record.Name, record.CreatedBy, record.DeploymentID, record.ListenerID, record.ExpiresAt = in.Name, who.ID, in.DeploymentID, in.ListenerID, in.ExpiresAt
	err = s.changeAccess(ctx, func(tx slipway.Tx) error {
		if err := deployKeyFits(tx, record); err != nil {
			return err
		}
		if err := listenerKeyFits(tx, record); err != nil {
			return err
		}
		return s.putKey(tx, who, "create_api_key", slipway.APIKey{}, record)
	})
	return IssuedKey{record, key}, wrap("create api key", err)
}

func deployKeyFits(tx slipway.Tx, k slipway.APIKey) error {
	if k.DeploymentID == "" {
		return nil
	}
	_, err := visible(tx, k.TenantID, k.DeploymentID)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		var problems slipway.Problems
		problems.Add([]any{"body", "deployment_id"}, "there is no deployment %q in this tenant; give the id of one", k.DeploymentID)
		return problems.Err()
	}
	return err
}

func listenerKeyFits(tx slipway.Tx, k slipway.APIKey) error {
	if k.ListenerID == "" {
		return nil
	}
	_, err := visibleListener(tx, k.TenantID, k.ListenerID)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		var problems slipway.Problems
		problems.Add([]any{"body", "listener_id"}, "there is no listener %q in this tenant; give the id of one", k.ListenerID)
		return problems.Err()
	}
	return err
}

// changeAccess runs one write transaction about who may do what; once it is durable, nothing older lets anybody in.
func (s *Service) changeAccess(ctx context.Context, fn func(tx slipway.Tx) error) error {
	err := s.update(ctx, fn)
	s.access.forget() // also after an error: whether a commit whose answer was lost took place is not known
	return err
}

// putKey stores a key with its audit entry; before is zero for a new one.
func (s *Service) putKey(tx slipway.Tx, who slipway.Principal, operation string, before, after slipway.APIKey) error {
	if err := tx.PutAPIKey(after); err != nil {
		return err
	}
	changes, err := slipway.AuditDiff(keyView(before), keyView(after))
	if err != nil {
		return err
	}
	return s.audit(tx, who, operation, after.ID, map[string]any{"prefix": after.Prefix, "organisation": after.Organisation()}, changes...)
}

// keyView is what the audit log compares of a key.
func keyView(k slipway.APIKey) map[string]any {
	view := map[string]any{"name": k.Name, "role": k.Role, "deployment_id": k.DeploymentID, "listener_id": k.ListenerID, "replaced_by": k.ReplacedBy}
	for name, value := range view {
		if fmt.Sprint(value) == "" {
			delete(view, name)
		}
	}
	for name, at := range map[string]time.Time{"expires_at": k.ExpiresAt, "revoked_at": k.RevokedAt} {
		if !at.IsZero() {
			view[name] = at.UTC()
		}
	}
	return view
}

// Keys returns one page of the keys of the caller's tenant or of the organisation, newest first, also of those that are not
// valid any more.
func (s *Service) Keys(ctx context.Context, who slipway.Principal, organisation bool, q slipway.APIKeyQuery) ([]slipway.APIKey, error) {
	owner, err := keyOwner(who, organisation)
	if err != nil {
		return nil, err
	}
	q.TenantID = owner
	var out []slipway.APIKey
	err = s.store.View(ctx, func(tx slipway.Tx) (err error) {
		out, err = tx.APIKeys(q)
		return err
	})
	return out, wrap("list api keys", err)
}

// RevokeKey ends a key at once. Revoking twice is no error.
func (s *Service) RevokeKey(ctx context.Context, who slipway.Principal, id string) error {
	if err := authorize(who, mayManageKeys); err != nil {
		return err
	}
	return wrap("revoke api key", s.changeAccess(ctx, func(tx slipway.Tx) error {
		k, err := ownKey(tx, who, id)
		if err != nil || !k.RevokedAt.IsZero() {
			return err
		}
		return s.putKey(tx, who, "revoke_api_key", k, k.Revoked(s.clock()))
	}))
}

// RotateKey makes a new key with the rights of an old one, which goes on being valid for the grace asked for.
func (s *Service) RotateKey(ctx context.Context, who slipway.Principal, id string, how slipway.Rotation) (IssuedKey, error) {
	if err := authorize(who, mayManageKeys); err != nil {
		return IssuedKey{}, err
	}
	key, fresh, err := s.newKey("", "")
	if err != nil {
		return IssuedKey{}, err
	}
	var out slipway.APIKey
	err = s.changeAccess(ctx, func(tx slipway.Tx) error {
		before, err := ownKey(tx, who, id)
		if err != nil {
			return err
		}
		old, expires, err := before.Rotated(how, fresh.ID, s.clock())
		if err != nil {
			return err
		}
		out = before
		out.ID, out.Hash, out.Prefix, out.CreatedAt = fresh.ID, fresh.Hash, fresh.Prefix, fresh.CreatedAt
		out.CreatedBy, out.ExpiresAt, out.LastUsedAt = who.ID, expires, time.Time{}
		if err := s.putKey(tx, who, "rotate_api_key", before, old); err != nil {
			return err
		}
		return s.putKey(tx, who, "create_api_key", slipway.APIKey{}, out)
	})
	return IssuedKey{out, key}, wrap("rotate api key", err)
}

// ownKey returns a key that the caller may manage: of its tenant or, for the organisation's admins, of the organisation.
func ownKey(tx slipway.Tx, who slipway.Principal, id string) (slipway.APIKey, error) {
	k, err := tx.APIKey(who.TenantID, id)
	if slipway.ErrorCode(err) == slipway.CodeNotFound && who.Organisation {
		k, err = tx.APIKey("", id)
	}
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return k, slipway.Errorf(slipway.CodeNotFound, "API key ID %s not found.", id)
	}
	return k, err
}
