package slipway

import (
	"context"
	"time"
)

// GitHost is one integration's access to its git host. Implementations pass githost/githosttest, are safe for concurrent
// use, bound every call in time and size, and never put a credential into an error.
//
// Their errors: CodeNotFound, the host has no such repository or reference or does not show it to this integration;
// CodeBadRequest, the host refuses the integration's credentials; CodeUnavailable, it cannot be reached, fails, or asks to
// come back later.
type GitHost interface {
	// Repositories lists one page of the repositories that may be deployed. next is the cursor of the following page, ""
	// after the last; a cursor that is none of its own is CodeInvalid. Hosts without an API list none.
	Repositories(ctx context.Context, cursor string, limit int) (page []Repository, next string, err error)
	// Repository finds the repository that an address names.
	Repository(ctx context.Context, repoURL string) (Repository, error)
	// CloneCredentials returns what the repository is fetched with: short-lived where the host has such.
	CloneCredentials(ctx context.Context, repoURL string) (CloneCredentials, error)
	// Resolve returns the commit of a branch or, as refs/tags/NAME, of a tag; "" is the default branch.
	Resolve(ctx context.Context, repoURL, ref string) (commit string, err error)
	// SetStatus shows at the host what became of a commit. Setting the same again is no error.
	SetStatus(ctx context.Context, s CommitStatus) error
	// ReadHook checks that a delivery comes from the host and says what it tells; header returns a header's value by name.
	// CodeUnauthenticated without the right signature.
	ReadHook(header func(name string) string, body []byte) (Hook, error)
}

// GitHosts opens integrations.
type GitHosts interface {
	// Open returns the host of an integration; it calls nobody.
	Open(i Integration, secrets IntegrationSecrets) (GitHost, error)
	// ConvertManifest exchanges the code that GitHub gave for an app's manifest for the app.
	ConvertManifest(ctx context.Context, i Integration, code string) (App, error)
}

// App is a GitHub App as GitHub made it of a manifest.
type App struct {
	ID      int64
	Slug    string // its name in addresses
	Secrets IntegrationSecrets
}

// Repository is a repository at a git host (spec 2.6; control-plane reference 3, GithostRepository).
type Repository struct {
	ID            int64
	Name, Owner   string
	URL           string // that git clones
	DefaultBranch string
}

// CloneCredentials are what git fetches a repository with: a user name and password for exactly one host, or a key.
// Without both nothing is needed.
type CloneCredentials struct {
	Host       string    `json:"host,omitempty"`     // protocol and host they are for, such as https://git.example.com
	Username   string    `json:"username,omitempty"` // with Password
	Password   string    `json:"password,omitempty"`
	PrivateKey string    `json:"private_key,omitempty"` // in OpenSSH's form
	KnownHosts string    `json:"known_hosts,omitempty"` // with PrivateKey; no other host's key is accepted
	Expires    time.Time `json:"expires,omitzero"`      // zero = they last
}

// Hook is what a host delivered. What is no news for slipway has neither Push nor Installation and says so in About.
type Hook struct {
	// Keys identify the delivery; another one with any of them is a repetition.
	Keys         []string
	About        string // one sentence without a full stop, such as "pings make no revision"
	Push         *PushEvent
	Installation *InstallationEvent
}

// PushEvent tells that a reference moved.
type PushEvent struct {
	RepoURLs      []string // every address the host names of the repository
	DefaultBranch string
	Ref           string // full, such as refs/heads/main
	Commit        string // that the reference points to now; "" when it was deleted
	Created       bool   // the reference is new
	Deleted       bool   // the reference is gone
}

// InstallationEvent tells that a GitHub App was installed or removed.
type InstallationEvent struct {
	ID      int64
	Removed bool
}

// CommitState says how a commit does.
type CommitState string

// The states of a commit.
const (
	CommitPending  CommitState = "pending"
	CommitSuccess  CommitState = "success"
	CommitFailure  CommitState = "failure"
	CommitCanceled CommitState = "canceled" // neither: nobody wanted to know any more
)

// CommitStatus is what a host shows beside a commit.
type CommitStatus struct {
	RepoURL     string
	Commit      string
	State       CommitState
	Context     string // tells this status from those of others
	Description string // one line, at most 140 characters
	TargetURL   string
}
