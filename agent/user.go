package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/slipway-dev/slipway"
)

// User is whoever the application's authenticate handler says a request comes from (reference 12).
type User struct {
	Identity    string
	Permissions json.RawMessage // list of texts
	Document    json.RawMessage // the whole object, as graphs and handlers see it
}

// StudioIdentity is the identity of a debugging UI that was let in without the application's own authentication.
const StudioIdentity = "langgraph-studio-user"

// StudioUser returns the user that stands for a debugging UI (reference 12).
func StudioUser() *User {
	return &User{
		Identity: StudioIdentity, Permissions: json.RawMessage(`[]`),
		Document: json.RawMessage(`{"kind":"StudioUser","identity":"` + StudioIdentity + `","username":"` + StudioIdentity +
			`","display_name":"` + StudioIdentity + `","is_authenticated":true,"permissions":[]}`),
	}
}

// ParseUser reads the object that an authenticate handler's answer became; it must have a text `identity`.
func ParseUser(document json.RawMessage) (*User, error) {
	var u struct {
		Identity    *string         `json:"identity"`
		Permissions json.RawMessage `json:"permissions"`
	}
	if err := json.Unmarshal(document, &u); err != nil {
		return nil, fmt.Errorf("read the authenticated user: %w", err)
	}
	if u.Identity == nil {
		return nil, slipway.Errorf(slipway.CodeInternal, "the authenticated user has no identity")
	}
	if len(u.Permissions) == 0 || string(u.Permissions) == "null" {
		u.Permissions = json.RawMessage(`[]`)
	}
	return &User{Identity: *u.Identity, Permissions: u.Permissions, Document: document}, nil
}

// MarshalJSON writes the user's document.
func (u User) MarshalJSON() ([]byte, error) { return u.Document, nil }

// UnmarshalJSON reads a document.
func (u *User) UnmarshalJSON(document []byte) error {
	read, err := ParseUser(append(json.RawMessage(nil), document...))
	if err == nil {
		*u = *read
	}
	return err
}

type userKey struct{}

// WithUser returns a context of what is done for a user. The server sets it once it knows who asks; whatever lies behind
// the door trusts it.
func WithUser(ctx context.Context, u *User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserFrom returns the user that something is done for, nil if nobody is known.
func UserFrom(ctx context.Context) *User {
	u, _ := ctx.Value(userKey{}).(*User)
	return u
}
