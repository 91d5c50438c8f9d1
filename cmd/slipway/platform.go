package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/controlapi"
	"github.com/slipway-dev/slipway/api/dialect"
	"github.com/slipway-dev/slipway/blob/dir"
	"github.com/slipway-dev/slipway/builder"
	"github.com/slipway-dev/slipway/cli"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/gateway"
	"github.com/slipway-dev/slipway/githost"
	"github.com/slipway-dev/slipway/image/registry"
	"github.com/slipway-dev/slipway/listener"
	"github.com/slipway-dev/slipway/runtime/process"
	"github.com/slipway-dev/slipway/seal"
	"github.com/slipway-dev/slipway/shelf"
	"github.com/slipway-dev/slipway/telemetry"
	"github.com/slipway-dev/slipway/templates"
)

const (
	// stopLimit is how long running runs may take to end when everything is stopped; what is not done then is resumed
	// at the next start.
	stopLimit = 5 * time.Second
	// closeLimit bounds the closing of open connections.
	closeLimit = 2 * time.Second
)

// platform is everything `slipway up` runs in one process.
type platform struct {
	url         string
	credentials cli.Credentials
	log         *slog.Logger

	store    controlStore
	control  *control.Service
	builder  *builder.Builder // nil = builds are those of builders elsewhere
	shelf    *shelf.Shelf
	listener *listener.Listener
	runtime  *process.Runtime
	gateway  *gateway.Gateway
	registry *registry.Registry // nil = no images are pushed here
	sender   *telemetry.Sender
	meter    *control.Meter // nil = no telemetry is sent
	builds   *countedBuilds
	server   *http.Server
	socket   net.Listener
}

// openPlatform puts the parts together; nothing runs yet.
func openPlatform(ctx context.Context, where installation, s upSettings, l net.Listener) (*platform, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	p := &platform{url: "http://" + reachable(l.Addr()), socket: l}
	key, err := seal.OpenFile(where.path("master.key"))
	if err != nil {
		return nil, err
	}
	if err := p.openSender(where, s, key.Derive("telemetry identifiers"), log); err != nil {
		return nil, err
	}
	if p.store, err = openControlStore(ctx, where, s.databaseURL); err != nil {
		return nil, err
	}
	blobs, err := dir.Open(where.path("blobs"))
	if err != nil {
		return nil, errors.Join(err, p.store.Close())
	}
	if err := p.openControl(where, s, key, blobs); err != nil {
		return nil, errors.Join(err, p.store.Close())
	}
	if err := p.bootstrap(ctx, where); err != nil {
		return nil, errors.Join(err, p.store.Close())
	}
	if err := p.openMeter(ctx, where, s); err != nil {
		return nil, errors.Join(err, p.store.Close())
	}
	if err := p.wire(where, s, blobs); err != nil {
		return nil, errors.Join(err, p.store.Close())
	}
	return p, nil
}

// openControl makes the control service and the registry that goes with it.
func (p *platform) openControl(where installation, s upSettings, key *seal.Key, blobs slipway.Blob) error {
	sources, err := s.served()
	if err != nil {
		return err
	}
	if err := p.openRegistry(where, s); err != nil {
		return err
	}
	if p.shelf, err = shelf.Open(where.dir); err != nil {
		return err
	}
	p.shelf.Step = s.failAt.removal()
	tokens, err := s.oidc.verifier(p.log)
	if err != nil {
		return err
	}
	p.control = control.New(s.access.apply(control.Config{
		BaseURL: s.base(p.url), Sources: sources, ListenerPatience: s.remote.patience, Templates: templates.All(), LiftResourceCaps: s.liftCaps,
		UploadKey: key.Derive("upload urls"), PushKey: key.Derive("push tokens"),
		PlainHosts: s.allowHTTPGit, Deletion: s.keep.deletion, LogRetention: s.keep.logRetention, LogLimit: int64(s.keep.logMegabytes) << 20,
		KeepRevisions: s.keep.revisions, DiskLimit: int64(s.build.diskGigabytes) << 30, UploadRetention: s.keep.uploadRetention,
	}), control.Deps{
		Store: p.store, Blob: blobs, Sealer: key, Clock: now, IDs: newID, Random: rand.Reader, Log: p.log, Images: p.resolver(s),
		Hosts: githost.New(now), Webhooks: s.remote.sender(), Verifier: tokens,
		Shelf: s.failAt.shelf(p.shelf), Packages: p.shelf.Packages, Busy: p.busy,
		Running: func() ([]string, error) { return p.runtime.Revisions() },
	})
	return nil
}

// busy tells since when the oldest build of this machine runs.
func (p *platform) busy() time.Time {
	if p.builder == nil {
		return time.Time{}
	}
	return p.builder.Busy()
}

// fetchArtifact brings an artifact that a builder elsewhere made to this machine.
func (p *platform) fetchArtifact(blobs slipway.Blob) func(ctx context.Context, digest string) error {
	return func(ctx context.Context, digest string) error {
		return p.control.FetchArtifact(ctx, digest, func(part slipway.ArtifactPart) error {
			if p.shelf.Has(part.Path) {
				return nil
			}
			body, err := blobs.Open(ctx, part.Blob)
			if err != nil {
				return err
			}
			defer body.Close()
			return p.shelf.Unpack(ctx, part.Path, part.Blob, body)
		})
	}
}

// wire makes the data plane and the doors.
func (p *platform) wire(where installation, s upSettings, blobs slipway.Blob) error {
	var err error
	if p.runtime, err = openRuntime(where, s.databaseURL, p.counting(s), p.control.AppendLogs, p.fetchArtifact(blobs), p.log); err != nil {
		return err
	}
	p.builds = newCountedBuilds(p.control)
	if s.build.builds > 0 {
		p.builder = openBuilder(where, s, p.builds, blobs, p.log)
	}
	proxies, err := s.access.authn()
	if err != nil {
		return err
	}
	p.gateway = gateway.New(gateway.Config{TrustedProxies: proxies.TrustedProxies}, p.log)
	p.listener = listener.New(s.failAt.feed(p.control), s.failAt.runtime(p.runtime), s.failAt.router(p.gateway), listener.Config{}, now, p.log)
	mux := http.NewServeMux()
	mux.Handle("/d/", p.sender.Watch("gateway", p.whenSynced(p.gateway)))
	p.handleImages(mux)
	api := controlapi.New(p.control, controlapi.Config{BaseURL: s.base(p.url), Version: version, Log: p.log, Authn: proxies, Telemetry: p.sender})
	mux.Handle("/webhooks/", p.sender.Watch("control", s.failAt.handler(api))) // in no dialect: what a host signed must stay as it is
	mux.Handle("/", p.sender.Watch("control", s.failAt.handler(dialect.New(api, controlapi.DocsPage))))
	p.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 75 * time.Second,
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
	}
	return nil
}

// whenSynced lets requests wait until the gateway knows which deployments there are; that is at once but for the first
// moment after a start.
func (p *platform) whenSynced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-p.listener.Synced():
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// bootstrap makes the first tenant and key, and keeps the credentials file true.
func (p *platform) bootstrap(ctx context.Context, where installation) error {
	first, err := p.control.Bootstrap(ctx)
	if err != nil {
		return err
	}
	c, err := cli.ReadCredentials(where.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if first.Key != "" {
		c.APIKey, c.TenantID = first.Key, ""
	}
	// The file belongs to whoever runs the installation: its key manages all of it, also after a restore of older data.
	if who, _ := p.control.Authenticate(ctx, control.Credential{Key: c.APIKey}); !who.Organisation || who.Role != slipway.RoleAdmin {
		if c.APIKey, err = p.control.IssueOrganisationKey(ctx, first.TenantID); err != nil {
			return err
		}
	}
	if _, err := p.control.Authenticate(ctx, control.Credential{Key: c.APIKey, TenantID: c.TenantID}); slipway.ErrorCode(err) == slipway.CodeForbidden {
		c.TenantID = "" // the tenant that was chosen is gone
	}
	if c.URL = p.url; c.TenantID == "" {
		c.TenantID = first.TenantID
	}
	p.credentials = c
	return where.saveCredentials(c)
}

// run serves until ctx ends. Ctrl-C stops the agent servers too; after SIGTERM they go on.
func (p *platform) run(ctx context.Context) error {
	if err := p.control.Recover(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(p.serve)
	group.Go(func() error {
		err := p.work(ctx)
		if by := (stopped{}); errors.As(context.Cause(ctx), &by) && by.signal == os.Interrupt {
			p.stopWorkloads()
		}
		return errors.Join(err, p.shutdown())
	})
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// work runs the loops until ctx ends; when it returns nobody starts anything any more.
func (p *platform) work(ctx context.Context) error {
	loops, ctx := errgroup.WithContext(ctx)
	loops.Go(func() error { return p.listener.Run(ctx) })
	if p.builder != nil {
		loops.Go(func() error { return p.builder.Run(ctx) })
	}
	loops.Go(func() error { return p.control.KeepTidy(ctx) })
	loops.Go(func() error { return p.control.RunListeners(ctx) })
	loops.Go(func() error { return p.control.RunWebhooks(ctx) })
	loops.Go(func() error { return p.control.Run(ctx) })
	loops.Go(func() error { return p.control.PostStatuses(ctx) })
	loops.Go(func() error { return p.store.Follow(ctx, p.control.Hear) })
	loops.Go(func() error { return p.control.Upkeep(ctx) })
	loops.Go(func() error { return p.sender.Run(ctx) })
	if p.meter != nil {
		loops.Go(func() error { return p.meter.Run(ctx) })
	}
	return loops.Wait()
}

func (p *platform) serve() error {
	if err := p.server.Serve(p.socket); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func (p *platform) stopWorkloads() {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	if err := p.runtime.Stop(ctx); err != nil {
		p.log.Warn("an agent server did not stop cleanly", "error", err)
	}
}

// shutdown closes the door; streams that are still open are cut.
func (p *platform) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if err := p.server.Shutdown(ctx); err != nil {
		return p.server.Close()
	}
	return nil
}

func (p *platform) close() {
	p.runtime.Close()
	p.gateway.Close()
	if err := p.sender.Close(); err != nil {
		p.log.Warn("the outbox of telemetry was not closed cleanly", "error", err)
	}
	if err := p.store.Close(); err != nil {
		p.log.Warn("the database was not closed cleanly", "error", err)
	}
}

// reachable turns the address of a listener into one that a client on this machine can use.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
}

// now is the clock of this process, in microseconds: what is stored is what was answered, and every client's parser of
// ISO 8601 takes it.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// newID makes a UUIDv7.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
