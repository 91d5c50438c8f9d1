package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/api/agentapi"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/graphconfig"
	"github.com/slipway-dev/slipway/keeper"
	"github.com/slipway-dev/slipway/schedule"
	"github.com/slipway-dev/slipway/worker/supervise"
)

func serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use: "serve", Short: "Run one deployment's agent server", Args: cobra.NoArgs,
		Long: "Run the agent server of one bundle. Settings come from environment variables (N_JOBS_PER_WORKER,\n" +
			"BG_JOB_TIMEOUT_SECS and the others of the documentation). SIGTERM drains: running runs may finish within\n" +
			"BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS. A second signal ends at once.",
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), o, os.Getenv) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.bundle, "bundle", "", "directory of the bundle to serve")
	flags.StringVar(&o.data, "data", "", "directory for the deployment's data")
	flags.StringVar(&o.listen, "listen", "", "address to listen on, such as 127.0.0.1:2024, which is the default; port 0 takes a free one")
	flags.StringVar(&o.readyFile, "ready-file", "", "file to write process id and endpoint to once the server listens")
	_ = cmd.MarkFlagRequired("bundle")
	_ = cmd.MarkFlagRequired("data")
	return cmd
}

type serveOptions struct{ bundle, data, listen, readyFile string }

// serve runs an agent server until ctx ends and it has drained.
func serve(ctx context.Context, o serveOptions, getenv func(string) string) error {
	bundle, err := readBundle(&o)
	if err != nil {
		return err
	}
	if o.listen, err = listenAddress(o.listen, getenv); err != nil {
		return err
	}
	getenv = withEnv(bundle, getenv)
	settings, err := readServeSettings(getenv)
	if err != nil {
		return err
	}
	log := newServeLog(os.Stdout, settings.level, settings.log.under(o.readyFile != ""))
	tellUnused(log, getenv)
	if err := overrideConfig(&bundle, getenv, log); err != nil {
		return err
	}
	config, err := readAppConfig(bundle.Config, getenv)
	if err != nil {
		return err
	}
	settings.mountPrefix = config.HTTP.prefix(settings.mountPrefix)
	parts, err := partsOf(bundle, getenv)
	if err != nil {
		return err
	}
	socket, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", o.listen, err)
	}
	door := openDoor(socket, log)
	if err := writeReady(o.readyFile, socket.Addr()); err != nil {
		return errors.Join(err, door.close())
	}
	s := agentServer{self: "http://" + reachable(socket.Addr()) + settings.mountPrefix, options: o, settings: settings, bundle: bundle, config: config, parts: parts, log: log, door: door}
	err = s.run(ctx, getenv)
	return errors.Join(err, door.close())
}

// overrideConfig lays the environment's configuration (LANGGRAPH_HTTP and the like) over the bundle's.
func overrideConfig(bundle *slipway.Bundle, getenv func(string) string, log *slog.Logger) error {
	changed, names, err := graphconfig.Override(bundle.Config, getenv)
	if err != nil || len(names) == 0 {
		return err
	}
	log.Info("configuration keys come from the environment", "names", names)
	bundle.Config = changed
	if slices.Contains(names, "LANGSERVE_GRAPHS") {
		bundle.Graphs, err = graphconfig.BundleGraphs(changed)
	}
	return err
}

// agentServer is one deployment's agent server.
type agentServer struct {
	options  serveOptions
	settings serveSettings
	bundle   slipway.Bundle
	config   appConfig
	parts    map[slipway.Language]agent.Parts
	self     string // base URL of this server, with its mount prefix
	log      *slog.Logger
	door     *door
}

// run opens the store, brings engine and workers up, and drains when ctx ends.
func (s agentServer) run(ctx context.Context, getenv func(string) string) error {
	if err := os.MkdirAll(s.options.data, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	instance := newID()
	store, bus, err := openAgent(ctx, s.options.data, instance, getenv, s.log)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	defer func() { _ = bus.Close() }()
	store.CountBy(s.settings.traceInterval)
	if err := s.sealStore(ctx, store, getenv); err != nil {
		return err
	}
	workers, err := s.workers(store, getenv)
	if err != nil {
		return err
	}
	e := engine.New(s.engineConfig(instance, getenv), store, bus, workers, now, newID, s.log)
	if err := e.Start(ctx); err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	api := agentapi.New(agentapi.Over(e), s.config.HTTP.lay(s.apiConfig(store, getenv)))
	e.AnswerLoopback(api.ServeExchange)
	s.door.open(api)
	s.log.Info("agent server started", "graphs", len(s.bundle.Graphs), "instance", instance)
	<-ctx.Done()
	s.log.Info("agent server drains", "grace", s.settings.drainGrace.String())
	err = e.Drain(context.WithoutCancel(ctx))
	s.log.Info("agent server drained")
	return errors.Join(err, s.door.close()) // before the store closes: requests may still be at it
}

func (s agentServer) engineConfig(instance string, getenv func(string) string) engine.Config {
	configs := graphConfigs(getenv("LANGGRAPH_CONFIG"))
	graphs := make(map[string]engine.Graph, len(s.bundle.Graphs))
	for id, g := range s.bundle.Graphs {
		graphs[id] = engine.Graph{
			Language: g.Language, Description: g.Description, Config: configs[id].config(), Context: configs[id].Context,
		}
	}
	parts := map[slipway.Language][]agent.PartName{}
	var savers []slipway.Language
	for language, p := range s.parts {
		parts[language] = p.Names()
		if p.Checkpointer != nil && p.Checkpointer.Path != "" {
			savers = append(savers, language)
		}
	}
	sweepEvery, sweepLimit := s.config.threadSweep()
	return engine.Config{
		ThreadTTL: s.config.threadTTL(), SweepEvery: sweepEvery, SweepLimit: sweepLimit,
		Webhooks: s.config.webhookSender(), WebhookPolicy: s.config.webhookPolicy(), ShowRun: agentapi.ShowRun, SelfURL: s.self,
		Feedback: feedbackOf(getenv),
		NextDate: schedule.Next, Items: s.config.items(), Index: s.config.index(), ItemsEvery: s.config.itemSweep(),
		Instance: instance, RevisionID: getenv("LANGSMITH_HOST_REVISION_ID"), Version: version, MaxAttempts: s.settings.maxAttempts,
		RunTimeout: s.settings.runTimeout, DrainGrace: s.settings.drainGrace, StreamTTL: s.settings.streamTTL, Graphs: graphs, Parts: parts, Savers: savers,
		Auth: s.config.Auth.engine(s.settings.studio),
	}
}

// graphConfig is what LANGGRAPH_CONFIG says of a graph's system assistant (reference 2).
type graphConfig struct {
	Configurable json.RawMessage `json:"configurable"`
	Context      json.RawMessage `json:"context"`
}

func (c graphConfig) config() []byte {
	if len(c.Configurable) == 0 {
		return nil
	}
	return append(append([]byte(`{"configurable":`), c.Configurable...), '}')
}

func graphConfigs(raw string) map[string]graphConfig {
	var all map[string]graphConfig
	_ = json.Unmarshal([]byte(raw), &all) // readServeSettings has refused what is not valid
	return all
}

// readBundle reads the bundle's description and makes the options' paths absolute.
func readBundle(o *serveOptions) (slipway.Bundle, error) {
	var b slipway.Bundle
	var err error
	if o.bundle, err = filepath.Abs(o.bundle); err != nil {
		return b, err
	}
	if o.data, err = filepath.Abs(o.data); err != nil {
		return b, err
	}
	raw, err := os.ReadFile(filepath.Join(o.bundle, slipway.BundleFile))
	if err != nil {
		return b, fmt.Errorf("%s is not a bundle: %w", o.bundle, err)
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return b, fmt.Errorf("read %s of %s: %w", slipway.BundleFile, o.bundle, err)
	}
	return b, nil
}

// writeReady tells whoever started this process where it listens; the file appears complete or not at all.
func writeReady(file string, addr net.Addr) error {
	if file == "" {
		return nil
	}
	raw, err := json.Marshal(map[string]any{"pid": os.Getpid(), "endpoint": "http://" + reachable(addr)})
	if err != nil {
		return err
	}
	tmp := file + ".new-" + strconv.Itoa(os.Getpid())
	if err := os.WriteFile(tmp, raw, 0o600); err != nil {
		return fmt.Errorf("write the ready file: %w", err)
	}
	return os.Rename(tmp, file)
}

// door is the listening server. It answers /ok from the first moment; everything else waits until the engine is there.
type door struct {
	server *http.Server
	ready  chan struct{}
	api    atomic.Pointer[agentapi.API]
	served chan error
	once   sync.Once
	err    error // of close

	mu     sync.Mutex
	silent map[net.Conn]struct{} // connections that have not sent a request yet
}

func openDoor(socket net.Listener, log *slog.Logger) *door {
	d := &door{ready: make(chan struct{}), served: make(chan error, 1), silent: map[net.Conn]struct{}{}}
	d.server = &http.Server{
		Handler: d, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 75 * time.Second,
		ConnState: d.note, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	go func() { d.served <- d.server.Serve(socket) }()
	return d
}

func (d *door) open(api *agentapi.API) {
	d.api.Store(api)
	close(d.ready)
}

// ServeHTTP answers a request, or holds it until the engine has started.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.api.Load() == nil && r.URL.Path == "/ok" {
		answerStarting(w, r)
		return
	}
	select {
	case <-d.ready:
		d.api.Load().ServeHTTP(w, r)
	case <-r.Context().Done():
	}
}

func answerStarting(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("check_db") == "" || r.URL.Query().Get("check_db") == "0" {
		_, _ = w.Write([]byte(`{"ok":true}`))
		return
	}
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = w.Write([]byte(`{"ok":false,"services":{"database":"starting","workers":"starting"}}`))
}

// note keeps track of silent connections: proxies open them ahead of need.
func (d *door) note(conn net.Conn, state http.ConnState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if state == http.StateNew {
		d.silent[conn] = struct{}{}
	} else {
		delete(d.silent, conn)
	}
}

// close ends the server; connections that are still busy after a moment are cut. It is idempotent.
func (d *door) close() error {
	d.once.Do(func() { d.err = d.shut() })
	return d.err
}

func (d *door) shut() error {
	d.mu.Lock()
	for conn := range d.silent { // Shutdown would wait for them
		_ = conn.Close()
	}
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if err := d.server.Shutdown(ctx); err != nil {
		_ = d.server.Close()
	}
	if err := <-d.served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// workers puts the worker programs on disk and makes the pool that runs them.
func (s agentServer) workers(store agent.Store, getenv func(string) string) (*supervise.Pool, error) {
	programs, err := s.programs(s.parts)
	if err != nil {
		return nil, err
	}
	supersteps, _ := strconv.Atoi(getenv("LANGGRAPH_DELTA_MAX_SUPERSTEPS_SINCE_SNAPSHOT"))
	return supervise.New(supervise.Config{Programs: programs, DeltaMaxSupersteps: supersteps, Keep: keeper.Self}, store, now, s.log, workerLines(s.log)), nil
}
