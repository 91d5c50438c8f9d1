// Package control is the control service: the use cases behind the control API, and the line to builders and listeners.
// It records desired state and answers reads; it starts nothing itself. Whoever waits for work is woken by every change.
package control

import (
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/slipway-dev/slipway"
)

// Config holds the settings of the control service.
type Config struct {
	// BaseURL is the address clients reach the control service at, without a trailing slash; signed upload URLs begin
	// with it.
	BaseURL string
	// Sources that deployments may use; empty = githost, internal_source and internal_template.
	Sources []slipway.Source
	// Templates that internal_template deployments start from.
	Templates []slipway.Template
	// LiftResourceCaps takes the upper bounds off the CPU fields of resource specs (spec 8).
	LiftResourceCaps bool
	// UploadKey signs upload URLs; it must outlive restarts, or issued URLs die with the process.
	UploadKey []byte
	// UploadTTL is how long an upload URL is good for; 0 = one hour.
	UploadTTL time.Duration
	// UploadLimit bounds a source archive in bytes; 0 = 209715200 (control-plane reference 5).
	UploadLimit int64
	// PushKey signs push tokens; it must outlive restarts, or issued tokens die with the process.
	PushKey []byte
	// PushTTL is how long a push token is good for; 0 = one hour.
	PushTTL time.Duration
	// Deletion says how long what of a deleted deployment is kept; the zero Retention purges it as soon as it is torn down.
	Deletion slipway.DeletionTerms
	// LogRetention is how long deploy log lines are kept; 0 = 168 h.
	LogRetention time.Duration
	// LogLimit bounds the log lines kept of one deployment, in bytes; the oldest go first. 0 = 64 MiB.
	LogLimit int64
	// DeploymentsOff switches deployments off for the organisation: whatever is about them answers 403 (control-plane
	// reference 1); access goes on being managed.
	DeploymentsOff bool
	// SecretReaders are the roles to which answers show the values of secrets; empty = nobody sees them.
	SecretReaders []slipway.Role
	// AuditRetention is how long audit entries are kept; 0 = 400 days, negative = forever.
	AuditRetention time.Duration
	// PlainHosts are the git hosts, as host:port, that may be spoken to without TLS.
	PlainHosts []string
	// BuildLease is how long a builder holds a revision without renewing; 0 = 30 s.
	BuildLease time.Duration
	// KeepRevisions is how many of the newest revisions of each deployment stay redeployable whatever happens to their source;
	// 0 = 5.
	KeepRevisions int
	// DiskLimit bounds what builds leave on this machine, in bytes; 0 = no bound.
	DiskLimit int64
	// UploadRetention is how long an uploaded archive stays that no revision needs, from its upload or its last build on;
	// 0 = 168 h.
	UploadRetention time.Duration
	// ListenerPatience is how long a listener may be silent before it counts as offline; 0 = 60 s.
	ListenerPatience time.Duration
	// Deliveries says how long webhooks are tried; zero = slipway.DefaultDeliveryPolicy.
	Deliveries slipway.DeliveryPolicy
}

// Deps are what the service works with.
type Deps struct {
	Store  slipway.Store
	Blob   slipway.Blob
	Sealer slipway.Sealer
	Shelf  slipway.Shelf // nil = nothing is collected but blobs
	// Packages lists the installed packages of an artifact; nil, or an answer of nil = they are not known.
	Packages func(digest string) map[string]string
	// Busy tells since when the oldest running build of this machine runs; zero = none runs. nil = none ever does.
	Busy func() time.Time
	// Running lists the ids of the revisions that have processes on this machine; nil = none ever has.
	Running func() ([]string, error)
	Hosts   slipway.GitHosts // nil = no integrations
	Clock   slipway.Clock
	IDs     slipway.IDs
	Random  io.Reader // cryptographic randomness, for API keys
	Log     *slog.Logger
	// Webhooks sends deliveries; nil = they wait.
	Webhooks slipway.WebhookSender
	// Images resolves the images of internal_container; nil = names are taken as they are.
	Images slipway.ImageResolver
	// Verifier checks bearer tokens that are no API keys; nil = none are valid.
	Verifier slipway.TokenVerifier
}

// Service offers the use cases to the API, and is the slipway.BuildQueue of the builders and the slipway.Feed of the
// embedded listener. It is safe for concurrent use.
type Service struct {
	cfg      Config
	inst     slipway.Installation
	store    slipway.Store
	blob     slipway.Blob
	sealer   slipway.Sealer
	clock    slipway.Clock
	ids      slipway.IDs
	random   io.Reader
	log      *slog.Logger
	images   slipway.ImageResolver
	tokens   slipway.TokenVerifier
	access   *access
	refused  *refusals
	changed  *broadcast
	topics   *topics
	beats    *beats
	outbox   *outbox
	sender   slipway.WebhookSender
	patches  singleflight.Group
	logged   logSizes
	attempts attempts
	first    atomic.Value // string, the id of the first tenant, once bootstrapped
	hosts    openHosts
	shelf    slipway.Shelf
	busy     func() time.Time
	running  func() ([]string, error)
	packages func(string) map[string]string
	collect  collecting
}

// New returns a service with its defaults filled in.
func New(cfg Config, deps Deps) *Service {
	if len(cfg.Sources) == 0 {
		cfg.Sources = []slipway.Source{slipway.SourceGithost, slipway.SourceInternalSource, slipway.SourceInternalTemplate}
	}
	if cfg.UploadTTL == 0 {
		cfg.UploadTTL = time.Hour
	}
	if cfg.PushTTL == 0 {
		cfg.PushTTL = time.Hour
	}
	if cfg.UploadLimit == 0 {
		cfg.UploadLimit = 209715200
	}
	if cfg.LogRetention == 0 {
		cfg.LogRetention = 168 * time.Hour
	}
	if cfg.LogLimit == 0 {
		cfg.LogLimit = 64 << 20
	}
	if cfg.AuditRetention == 0 {
		cfg.AuditRetention = slipway.AuditRetention
	}
	if cfg.KeepRevisions == 0 {
		cfg.KeepRevisions = 5
	}
	if cfg.UploadRetention == 0 {
		cfg.UploadRetention = 168 * time.Hour
	}
	if cfg.BuildLease == 0 {
		cfg.BuildLease = 30 * time.Second
	}
	if cfg.Deliveries == (slipway.DeliveryPolicy{}) {
		cfg.Deliveries = slipway.DefaultDeliveryPolicy()
	}
	if cfg.ListenerPatience == 0 {
		cfg.ListenerPatience = time.Minute
	}
	return &Service{
		cfg: cfg, inst: slipway.Installation{Sources: cfg.Sources, Templates: cfg.Templates, LiftResourceCaps: cfg.LiftResourceCaps}, store: deps.Store, blob: deps.Blob, sealer: deps.Sealer,
		clock: deps.Clock, ids: deps.IDs, random: deps.Random, log: deps.Log, images: deps.Images, changed: newBroadcast(deps.IDs()),
		topics: newTopics(deps.IDs()), beats: newBeats(deps.Clock()), outbox: newOutbox(), sender: deps.Webhooks,
		tokens: deps.Verifier, access: newAccess(deps.Store, deps.Clock), refused: newRefusals(),
		hosts: openHosts{hosts: deps.Hosts}, shelf: deps.Shelf, busy: deps.Busy, running: deps.Running, packages: deps.Packages,
	}
}
