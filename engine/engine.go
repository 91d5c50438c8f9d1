package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// Config holds the settings of an engine; zero durations and counts take the defaults of agent-server reference 18.
type Config struct {
	Instance    string // unique per server process
	RevisionID  string
	Version     string        // of slipway
	MaxAttempts int           // BG_JOB_MAX_RETRIES (3)
	RunTimeout  time.Duration // BG_JOB_TIMEOUT_SECS (24 h)
	DrainGrace  time.Duration // BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS (180 s)
	CancelGrace time.Duration // how long a cancelled run may take to stop before its worker is killed (30 s)
	StreamTTL   time.Duration // RESUMABLE_STREAM_TTL_SECONDS (120 s)
	RescueEvery time.Duration // how often runs of dead instances and expired frames are looked for (15 s)
	ThreadTTL   *agent.TTL    // checkpointer.ttl of the configuration: what a thread without one of its own gets; nil = none
	Items       agent.ItemRules
	Index       *agent.Index // store.index; nil = items have no vectors
	NextDate    NextDate     // evaluates cron schedules
	Feedback    Feedback     // makes feedback addresses; nil = there is no feedback service
	// Webhooks calls the addresses that runs name; nil = no run may name one.
	Webhooks      slipway.WebhookSender
	WebhookPolicy WebhookPolicy
	ShowRun       func(agent.Run) json.RawMessage // a run as clients see it
	SelfURL       string                          // base URL of this server, for webhooks with a relative address
	SweepEvery    time.Duration                   // checkpointer.ttl.sweep_interval_minutes: how often expired threads are removed (5 min)
	ItemsEvery    time.Duration                   // store.ttl.sweep_interval_minutes: how often expired items are removed (5 min)
	SweepLimit    int                             // checkpointer.ttl.sweep_limit: how many at most each time (10 000)
	Buffer        int                             // frames kept for one slow reader before its subscription is closed (4096)
	Graphs        map[string]Graph
	Auth          AuthConfig
	// Savers are the languages whose graphs keep their checkpoints in a checkpointer of the application.
	Savers []slipway.Language
	// Parts names what else of the application the workers of each language load; the deployment is not ready before they have.
	Parts map[slipway.Language][]agent.PartName
}

// Graph is a graph of the deployment.
type Graph struct {
	Language    slipway.Language
	Description string
	// Config and Context of the graph's system assistant (LANGGRAPH_CONFIG); nil = empty.
	Config, Context []byte
}

// Engine is the heart of one agent server process. Its methods may be called concurrently once Start has returned.
type Engine struct {
	cfg     Config
	store   agent.Store
	bus     agent.Bus
	workers agent.Workers
	clock   slipway.Clock
	ids     slipway.IDs
	log     *slog.Logger

	system    assistantCache
	described descriptions
	meter     *meter
	users     *userCache
	authNoted sync.Once
	app       atomic.Pointer[agent.PartInfo] // once a worker has loaded it

	loopback      Loopback // once loopbackReady is closed
	loopbackReady chan struct{}

	mu        sync.Mutex
	pool      map[string]*seat      // live workers by id
	failures  map[string]string     // graph id -> why it cannot be loaded
	faults    map[place]string      // part of a language -> why it cannot be loaded
	broken    map[string]string     // language -> why no worker of it comes up
	arrival   chan struct{}         // closed and replaced when a worker arrives
	tracks    map[string]*track     // runs somebody here executes or watches
	latest    map[string]*execution // thread id -> its newest attempt here, until that has told its end
	hubs      map[string]*threadHub // threads that somebody follows
	peers     map[string][]string   // other instances whose end is awaited, with the graphs they serve; nil = not known yet
	stillborn map[string]int        // language -> how many workers failed to start in a row before any came up; -1 = one did
	indexes   map[string]struct{}   // other instances whose items are indexed otherwise
	wanted    map[string]struct{}   // runs other instances watch and nobody here executes yet
	starved   bool                  // pending runs may be waiting for a slot
	draining  bool
	left      bool // drained: nobody can be told anything here any more

	kick         chan struct{}   // wakes the dispatcher
	hopelessKick chan struct{}   // wakes the loop that ends runs nobody can take
	missedKick   chan struct{}   // wakes the loop that catches up after lost messages
	cronKick     chan struct{}   // wakes the loop of the crons
	indexKick    chan struct{}   // wakes the loop that indexes items
	noticeKick   chan struct{}   // wakes the loop of the webhooks
	life         context.Context // of the loops; set by Start
	stop         context.CancelFunc
	loops        sync.WaitGroup
	running      sync.WaitGroup // executions until they are settled
	frameID      idClock
	unhook       []func()
	release      func() error
}

// New makes an engine; Start brings it to life.
func New(cfg Config, store agent.Store, bus agent.Bus, workers agent.Workers, clock slipway.Clock, ids slipway.IDs, log *slog.Logger) *Engine {
	return &Engine{
		cfg: cfg.withDefaults(), store: store, bus: bus, workers: workers, clock: clock, ids: ids, log: log, meter: newMeter(),
		users: newUserCache(cfg.Auth), loopbackReady: make(chan struct{}),
		pool: map[string]*seat{}, failures: map[string]string{}, faults: map[place]string{}, broken: map[string]string{}, arrival: make(chan struct{}),
		tracks: map[string]*track{}, latest: map[string]*execution{}, hubs: map[string]*threadHub{}, wanted: map[string]struct{}{},
		peers: map[string][]string{}, stillborn: map[string]int{},
		kick: make(chan struct{}, 1), missedKick: make(chan struct{}, 1), hopelessKick: make(chan struct{}, 1), cronKick: make(chan struct{}, 1),
		noticeKick: make(chan struct{}, 1), indexKick: make(chan struct{}, 1), indexes: map[string]struct{}{},
	}
}

func (c Config) withDefaults() Config {
	c.MaxAttempts = or(c.MaxAttempts, 3)
	c.RunTimeout = or(c.RunTimeout, 24*time.Hour)
	c.DrainGrace = or(c.DrainGrace, 180*time.Second)
	c.CancelGrace = or(c.CancelGrace, 30*time.Second)
	c.StreamTTL = or(c.StreamTTL, 120*time.Second)
	c.RescueEvery = or(c.RescueEvery, 15*time.Second)
	c.SweepEvery = or(c.SweepEvery, 5*time.Minute)
	c.ItemsEvery = or(c.ItemsEvery, 5*time.Minute)
	c.SweepLimit = or(c.SweepLimit, 10000)
	c.Buffer = or(c.Buffer, 4096)
	return c
}

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// Start syncs system assistants, gives runs of dead instances back to the queue and starts workers and loops. The first
// request may be served when it has returned. ctx bounds the start only.
func (e *Engine) Start(ctx context.Context) error {
	release, err := e.store.Register(ctx, e.cfg.Instance)
	if err != nil {
		return fmt.Errorf("register instance: %w", err)
	}
	e.release = release
	if err := e.syncAssistants(ctx); err != nil {
		return err
	}
	last, err := e.store.LastFrame(ctx, "")
	if err != nil {
		return fmt.Errorf("look for the last frame: %w", err)
	}
	e.frameID.after(last)
	if err := e.rescue(ctx); err != nil {
		return err
	}
	e.life, e.stop = context.WithCancel(context.Background())
	e.listen()
	if err := e.watchHolders(ctx); err != nil {
		return err
	}
	e.loops.Go(func() { e.dispatch(e.life) })
	e.loops.Go(func() { e.whenDue(e.life, e.cronKick, "firing crons failed", e.fireDue) })
	e.loops.Go(func() { e.whenDue(e.life, e.noticeKick, "delivering webhooks failed", e.deliverDue) })
	e.loops.Go(func() { e.afterLosses(e.life) })
	if e.cfg.Index != nil {
		wakeLoop(e.indexKick)
		e.loops.Go(func() { e.indexLoop(e.life) })
	}
	e.loops.Go(func() { e.every(e.life, e.cfg.RescueEvery, "rescue failed", e.rescue) })
	e.loops.Go(func() { e.whenDue(e.life, e.hopelessKick, "ending hopeless runs failed", e.lookForHopeless) })
	e.loops.Go(func() {
		e.every(e.life, e.cfg.RescueEvery, "looking after runs of other servers failed", e.compareFollowed)
	})
	e.loops.Go(func() { e.every(e.life, e.cfg.RescueEvery, "dropping expired stream frames failed", e.dropFrames) })
	e.loops.Go(func() { e.every(e.life, e.cfg.StreamTTL/2, "renewing followed threads failed", e.renewHubs) })
	e.loops.Go(func() { e.every(e.life, e.cfg.ItemsEvery, "dropping expired items failed", e.dropItems) })
	e.loops.Go(func() { e.every(e.life, e.cfg.SweepEvery, "the sweep of expired threads failed", e.sweepThreads) })
	if err := e.workers.Start(e); err != nil {
		return fmt.Errorf("start workers: %w", err)
	}
	e.meter.started.Add(1)
	return nil
}

// rescue gives the runs of instances that died back to the queue (reference 17.4).
func (e *Engine) rescue(ctx context.Context) error {
	dead, err := e.store.Dead(ctx)
	if err != nil {
		return fmt.Errorf("look for dead instances: %w", err)
	}
	for _, instance := range dead {
		runs, err := e.store.RunningOf(ctx, instance)
		if err != nil {
			return fmt.Errorf("look for runs of a dead instance: %w", err)
		}
		for _, r := range runs {
			if err := e.rescueRun(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Engine) rescueRun(ctx context.Context, r agent.Run) error {
	done, err := e.store.Requeue(ctx, fenceOf(r), false, e.cfg.MaxAttempts, e.clock())
	if slipway.ErrorCode(err) == slipway.CodeStale || slipway.ErrorCode(err) == slipway.CodeNotFound {
		return nil // another instance was faster
	}
	if err != nil {
		return fmt.Errorf("rescue run %s: %w", r.ID, err)
	}
	e.log.Info("run rescued", "run_id", r.ID, "thread_id", r.ThreadID, "attempt", r.Attempt, "outcome", string(done.Outcome))
	if done.Outcome == "" {
		e.meter.requeued(r.ID, false, e.clock())
		e.wakeAll()
		return nil
	}
	e.meter.rescued(done)
	e.settleRemote(done, r)
	return nil
}

// dropFrames removes what nobody can replay any more.
func (e *Engine) dropFrames(ctx context.Context) error {
	return e.store.DropFrames(ctx, e.clock().Add(-e.cfg.StreamTTL))
}

func (e *Engine) dropItems(ctx context.Context) error {
	return errors.Join(e.store.DropItems(ctx, e.clock()), e.store.DropValues(ctx, e.clock()))
}

// Drain claims nothing more, lets running runs finish within the grace period, hands the rest back without using an
// attempt, ends all subscriptions and waiters (of threads on which nothing runs here at once), and stops the workers. Where another instance lives, readers of runs that
// only wait here stay too: the other one executes them, and their frames come over the bus. ctx ends the grace period early. It is called once.
func (e *Engine) Drain(ctx context.Context) error {
	pending := e.startDraining()
	e.meter.stopped.Add(1)
	if !e.hasPeers() {
		for _, t := range pending {
			t.abandon(errLeaving())
		}
	}
	e.failHubs(false)
	e.stop()
	e.loops.Wait()
	e.wakeAll()
	e.waitRunning(ctx)
	e.handBack()
	e.workers.Stop()
	e.running.Wait()
	for _, cancel := range e.unhook {
		cancel()
	}
	e.abandonAll()
	return e.release()
}

// startDraining closes the door and returns the tracks of runs that are not executed here.
func (e *Engine) startDraining() []*track {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.draining = true
	var idle []*track
	for _, t := range e.tracks {
		if t.exec == nil {
			idle = append(idle, t)
		}
	}
	return idle
}

// hasPeers says whether another instance of the deployment lives.
func (e *Engine) hasPeers() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.peers) > 0
}

// waitRunning waits for the runs executed here and for those that readers here follow elsewhere.
func (e *Engine) waitRunning(ctx context.Context) {
	finished := make(chan struct{})
	go func() { e.running.Wait(); e.awaitFollowed(ctx); close(finished) }()
	grace := time.NewTimer(e.cfg.DrainGrace)
	defer grace.Stop()
	select {
	case <-finished:
	case <-grace.C:
	case <-ctx.Done():
	}
}

// followLook is how often a draining instance looks whether its readers have what they wait for.
const followLook = 50 * time.Millisecond

func (e *Engine) awaitFollowed(ctx context.Context) {
	look := time.NewTicker(followLook)
	defer look.Stop()
	for ended := time.After(e.cfg.DrainGrace); e.following(); {
		select {
		case <-look.C:
		case <-ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (e *Engine) following() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.tracks {
		if t.exec == nil && t.holds > 0 {
			return true
		}
	}
	return false
}

// handBack requeues what is still running; from then on its workers' writes are refused.
func (e *Engine) handBack() {
	for _, x := range e.executions() {
		x.handBack()
	}
}

func (e *Engine) executions() []*execution {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []*execution
	for _, t := range e.tracks {
		if t.exec != nil {
			all = append(all, t.exec)
		}
	}
	return all
}

func (e *Engine) abandonAll() {
	e.mu.Lock()
	e.left = true
	all := make([]*track, 0, len(e.tracks))
	for _, t := range e.tracks {
		all = append(all, t)
	}
	e.mu.Unlock()
	for _, t := range all {
		t.abandon(errLeaving())
	}
	e.failHubs(true)
}
