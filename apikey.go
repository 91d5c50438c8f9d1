package slipway

import "time"

// APIKey is the record of a key; the key itself is shown once and only its SHA-256 is kept (architecture 6).
type APIKey struct {
	ID   string
	Name string // for people; "" = none
	// TenantID owns the key; "" = the organisation, and X-Tenant-Id selects the tenant of each request.
	TenantID string
	// DefaultTenantID is the tenant an organisation-wide key acts in when a request names none; "" = it must name one.
	DefaultTenantID string
	// DeploymentID makes it a deploy key, which reads and updates that one deployment; "" = no such bound.
	DeploymentID string
	// ListenerID makes it the key of a listener, which does nothing but that listener's protocol calls; "" = no such bound.
	ListenerID string
	Hash       string // hex SHA-256 of the key
	Prefix     string // the visible beginning
	Role       Role
	CreatedAt  time.Time
	CreatedBy  string    // principal; "" = made by the installation itself
	ExpiresAt  time.Time // zero = never
	RevokedAt  time.Time // zero = valid
	LastUsedAt time.Time // zero = never; may lag behind by a minute
	ReplacedBy string    // id of the key that a rotation made; "" = none
}

// Organisation says whether the key is valid in every tenant.
func (k APIKey) Organisation() bool { return k.TenantID == "" }

// Expired says whether the key's time is over.
func (k APIKey) Expired(now time.Time) bool { return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) }

// Revoked returns the key as revocation leaves it; revoking twice keeps the first time.
func (k APIKey) Revoked(now time.Time) APIKey {
	if k.RevokedAt.IsZero() {
		k.RevokedAt = now
	}
	return k
}

// APIKeyCreate is what a new key is asked for with.
type APIKeyCreate struct {
	Name         string
	Role         Role   // "" = editor for a deploy key, else it must be given
	Organisation bool   // valid in every tenant
	DeploymentID string // a deploy key of this deployment; "" = none
	ListenerID   string // goes with RoleListener: the listener that the key is for
	ExpiresAt    time.Time
}

// RotationLimit bounds how long a rotated key may go on being valid.
const RotationLimit = 30 * 24 * time.Hour

// APIKeyNameLimit bounds a key's name, in characters.
const APIKeyNameLimit = 100

// Valid checks what can be checked without the store.
func (c APIKeyCreate) Valid(now time.Time) (APIKeyCreate, error) {
	var problems Problems
	if c.Role == "" && c.DeploymentID != "" {
		c.Role = RoleEditor
	}
	switch {
	case c.Role == "":
		problems.Missing([]any{"body", "role"})
	case !c.Role.Valid() && c.Role != RoleListener && c.Role != RoleBuilder:
		problems.Add([]any{"body", "role"}, "%q is no role; use admin, editor, viewer, listener or builder", c.Role)
	case (c.Role == RoleAdmin || c.Role == RoleBuilder) && c.DeploymentID != "":
		problems.Add([]any{"body", "role"}, "a deploy key cannot be %s; use editor or viewer", c.Role)
	}
	if c.Organisation && c.DeploymentID != "" {
		problems.Add([]any{"body", "organisation"}, "a deploy key belongs to the tenant of its deployment; leave organisation or deployment_id out")
	}
	c.validListener(&problems)
	if !printable(c.Name) || len([]rune(c.Name)) > APIKeyNameLimit {
		problems.Add([]any{"body", "name"}, "%q is no name: use up to %d printable characters without a space at either end", c.Name, APIKeyNameLimit)
	}
	validExpiry(&problems, c.ExpiresAt, now)
	return c, problems.Err()
}

// validListener checks that a key is for a listener by its role and by naming it, or by neither.
func (c APIKeyCreate) validListener(problems *Problems) {
	if (c.Role == RoleListener) != (c.ListenerID != "") {
		problems.Add([]any{"body", "listener_id"}, "the role %q goes with listener_id %q; give role listener and the listener's id, or neither", c.Role, c.ListenerID)
		return
	}
	if c.ListenerID == "" {
		return
	}
	if c.DeploymentID != "" {
		problems.Add([]any{"body", "deployment_id"}, "the key of a listener is for no deployment; leave deployment_id or listener_id out")
	}
	if c.Organisation {
		problems.Add([]any{"body", "organisation"}, "the key of a listener belongs to the listener's tenant; leave organisation or listener_id out")
	}
}

func validExpiry(problems *Problems, at, now time.Time) {
	if !at.IsZero() && !at.After(now) {
		problems.Add([]any{"body", "expires_at"}, "%s is not in the future; give a later time or leave it out", at.UTC().Format(time.RFC3339))
	}
}

// Rotation says how a key is replaced.
type Rotation struct {
	Grace     time.Duration // how long the old key goes on being valid; 0 = not at all
	ExpiresAt time.Time     // of the new key; zero = after the same time as the old one had, if it had one
}

// Rotated returns the old key as its rotation leaves it and what the new one is made from. CodeBadRequest if the key is not
// valid any more.
func (k APIKey) Rotated(r Rotation, replacement string, now time.Time) (old APIKey, expires time.Time, err error) {
	if !k.RevokedAt.IsZero() || k.Expired(now) || k.ReplacedBy != "" {
		return k, expires, Errorf(CodeBadRequest, "the API key %s was revoked, rotated or has expired; create a new one instead", k.Prefix)
	}
	var problems Problems
	if r.Grace < 0 || r.Grace > RotationLimit {
		problems.Add([]any{"body", "grace_seconds"}, "%d is out of bounds; give 0 to %d", int64(r.Grace/time.Second), int64(RotationLimit/time.Second))
	}
	validExpiry(&problems, r.ExpiresAt, now)
	if err := problems.Err(); err != nil {
		return k, expires, err
	}
	expires = r.ExpiresAt
	if expires.IsZero() && !k.ExpiresAt.IsZero() {
		expires = now.Add(k.ExpiresAt.Sub(k.CreatedAt))
	}
	old, end := k, now.Add(r.Grace)
	old.ReplacedBy = replacement
	switch {
	case r.Grace == 0:
		old = old.Revoked(now)
	case old.ExpiresAt.IsZero() || end.Before(old.ExpiresAt):
		old.ExpiresAt = end
	}
	return old, expires, nil
}
