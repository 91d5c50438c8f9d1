// Package supervise runs graph workers as child processes and speaks the worker protocol (worker/wire/DESIGN.md) with
// them. It implements agent.Workers: a crashed worker is replaced after a pause, and no process outlives Stop or the
// server, also not one that a graph detached, where workers run below a keeper.
package supervise

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// Config says which workers to run.
type Config struct {
	Programs []Program
	// DeltaMaxSupersteps is passed to the workers (LANGGRAPH_DELTA_MAX_SUPERSTEPS_SINCE_SNAPSHOT); 0 = 5000.
	DeltaMaxSupersteps int
	// LoadTimeout is how long a worker may take to load its graphs; 0 = 5 minutes.
	LoadTimeout time.Duration
	// MinPause and MaxPause bound the pause before a crashed worker is replaced; 0 = 100 ms and 10 s.
	MinPause, MaxPause time.Duration
	// Keep is the program of the keepers (package keeper) that the workers run below; "" = none.
	Keep string
}

// Program says how to start the workers of one language.
type Program struct {
	Language slipway.Language
	Argv     []string // interpreter first
	Dir      string   // working directory: that of the graph configuration
	// Env is the complete environment; SLIPWAY_WORKER_FD is added.
	Env     []string
	Graphs  map[string]string // graph id -> spec, relative to Dir
	Parts   agent.Parts       // what else it loads
	Workers int               // processes; 0 = 1
	Slots   int               // runs at once per process; 0 = 10
}

// Line is one line that a worker's user code printed, or that the worker itself has to say.
type Line struct {
	WorkerID string
	Language slipway.Language
	Level    string // "info" for standard output, "error" for standard error, else what the worker says
	Text     string
	Logger   string // "stdout", "stderr" or the worker's logger
	RunID    string
	ThreadID string
}

// Pool is the workers of one agent server.
type Pool struct {
	cfg   Config
	store agent.Store
	clock slipway.Clock
	log   *slog.Logger
	lines func(Line)

	handler agent.WorkerHandler
	caches  map[slipway.Language]*cache
	ctx     context.Context
	cancel  context.CancelFunc
	keepers sync.WaitGroup
	mu      sync.Mutex
	serial  int
}

var _ agent.Workers = (*Pool)(nil)

// New makes a pool. lines gets every line of the workers, one at a time per stream, and must return soon.
func New(cfg Config, store agent.Store, clock slipway.Clock, log *slog.Logger, lines func(Line)) *Pool {
	p := &Pool{cfg: cfg.withDefaults(), store: store, clock: clock, log: log, lines: lines, caches: map[slipway.Language]*cache{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for _, program := range cfg.Programs {
		p.caches[program.Language] = newCache(clock)
	}
	return p
}

func (c Config) withDefaults() Config {
	if c.DeltaMaxSupersteps == 0 {
		c.DeltaMaxSupersteps = 5000
	}
	if c.LoadTimeout == 0 {
		c.LoadTimeout = 5 * time.Minute
	}
	if c.MinPause == 0 {
		c.MinPause = 100 * time.Millisecond
	}
	if c.MaxPause == 0 {
		c.MaxPause = 10 * time.Second
	}
	return c
}

// Start brings the workers up in the background.
func (p *Pool) Start(h agent.WorkerHandler) error {
	p.handler = h
	for _, program := range p.cfg.Programs {
		for range max(program.Workers, 1) {
			p.keepers.Go(func() { p.keep(program) })
		}
	}
	return nil
}

// Stop kills every worker with whatever it started and returns when none is left.
func (p *Pool) Stop() {
	p.cancel()
	p.keepers.Wait()
}

// keep runs one worker after another until the pool stops.
func (p *Pool) keep(program Program) {
	pause := p.cfg.MinPause
	for p.ctx.Err() == nil {
		began := time.Now()
		p.runOne(program)
		if time.Since(began) > 30*time.Second {
			pause = p.cfg.MinPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-p.ctx.Done():
		}
		timer.Stop()
		pause = min(2*pause, p.cfg.MaxPause)
	}
}

// runOne starts a worker and returns when it is gone.
func (p *Pool) runOne(program Program) {
	p.mu.Lock()
	p.serial++
	id := fmt.Sprintf("%s-%d", program.Language, p.serial)
	p.mu.Unlock()
	proc, err := p.spawn(id, program)
	if err != nil {
		p.handler.WorkerFailed(string(program.Language), err)
		return
	}
	l := newLink(p, proc, program, id)
	stop := context.AfterFunc(p.ctx, l.dismiss)
	defer stop()
	up, err := l.serve()
	exit := proc.end()
	l.lose(fmt.Errorf("worker %s ended: %s", id, reason(err, exit)))
	switch {
	case up:
		p.handler.WorkerDown(l, fmt.Errorf("%s", reason(err, exit)))
	case p.ctx.Err() == nil:
		p.handler.WorkerFailed(string(program.Language), fmt.Errorf("worker %s: %s", id, proc.explain(reason(err, exit))))
	}
}

// closing is how long a worker may take to close what the application has open: it gives itself two seconds.
const closing = 2500 * time.Millisecond

// dismiss ends a worker that is not needed any more: at once, or if the application has something to close (its HTTP app,
// its own checkpointer or store), by the end of its link, which gives it a moment.
func (l *link) dismiss() {
	parts := l.program.Parts
	closable := parts.App != nil || parts.Store != nil || parts.Checkpointer != nil && parts.Checkpointer.Path != ""
	half, ok := l.proc.conn.(interface{ CloseWrite() error })
	if !closable || !ok || half.CloseWrite() != nil {
		l.proc.kill()
		return
	}
	kill := time.AfterFunc(closing, l.proc.kill)
	go func() {
		<-l.proc.exited
		kill.Stop()
	}()
}

func reason(link, exit error) string {
	switch {
	case link != nil && exit != nil:
		return fmt.Sprintf("%v (%v)", exit, link)
	case exit != nil:
		return exit.Error()
	case link != nil:
		return link.Error()
	}
	return "exit status 0"
}
