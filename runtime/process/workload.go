package process

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway"
)

// workload is one revision as this runtime runs it. The port's methods are serialised by the caller; mu guards against
// the goroutines that watch the process.
type workload struct {
	rt                       *Runtime
	deploymentID, revisionID string
	dir                      string
	log                      *slog.Logger

	mu      sync.Mutex
	state   state
	probed  string
	failure string
	killed  string // why this runtime killed the current attempt
	redact  *redactor
	proc    *handle       // nil = no process
	ended   chan struct{} // closed when the current attempt is over and recorded

	tail     *tailer
	stopTail context.CancelFunc
}

func (w *workload) phase() slipway.Phase {
	switch {
	case w.proc == nil:
		return slipway.PhaseExited
	case !w.state.DrainUntil.IsZero():
		return slipway.PhaseDraining
	case !w.state.ReadyAt.IsZero():
		return slipway.PhaseReady
	default:
		return slipway.PhaseStarting
	}
}

func (w *workload) observe() slipway.Observed {
	w.mu.Lock()
	s := w.state
	o := slipway.Observed{
		DeploymentID: w.deploymentID, RevisionID: w.revisionID, Phase: w.phase(), Endpoint: s.Endpoint,
		StartedAt: s.StartedAt, Restarts: s.Restarts, Probe: w.probed, Failure: w.failure,
	}
	redact := w.redact
	w.mu.Unlock()
	switch o.Phase {
	case slipway.PhaseExited:
		o.ExitedAt, o.ExitCode = s.ExitedAt, s.ExitCode
		if s.ExitNote != "" {
			o.Probe = s.ExitNote
		}
	case slipway.PhaseDraining:
		o.DrainUntil = s.DrainUntil
	}
	if redact != nil { // without the secrets to remove, no line may leave
		o.LastLines = lastLines(w.dir, s.LogStart, redact)
	}
	return o
}

// note keeps a health answer and announces what it changed.
func (w *workload) note(ctx context.Context, a answer) {
	w.mu.Lock()
	if ctx.Err() != nil {
		w.mu.Unlock()
		return
	}
	clean := func(text string) string {
		if w.redact == nil {
			return ""
		}
		return w.redact.clean(text)
	}
	text, failure := clean(a.text), clean(a.failure)
	changed := a.ok || text != w.probed || failure != w.failure
	w.probed, w.failure = text, failure
	if a.ok {
		w.state.ReadyAt = time.Now().UTC()
		w.save()
	}
	w.mu.Unlock()
	if changed {
		w.rt.changed(w)
	}
}

// endpoint returns the agent server's base URL, reading it from the ready file until it is known.
func (w *workload) endpoint() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state.Endpoint == "" {
		if w.state.Endpoint = readReadyFile(w.state.readyFile(w.dir)); w.state.Endpoint != "" {
			w.save()
		}
	}
	return w.state.Endpoint
}

func (w *workload) save() {
	if err := w.state.save(w.dir); err != nil {
		w.log.Error("workload state not saved", "error", err.Error())
	}
}

func (w *workload) isReady() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.state.ReadyAt.IsZero()
}

func (w *workload) isDraining() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.state.DrainUntil.IsZero()
}

func (w *workload) startedAt() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.StartedAt
}

// follow looks after a process until it ended: code is called for its exit code then.
func (w *workload) follow(ctx context.Context, h *handle, code func() (int, string)) {
	w.mu.Lock()
	w.proc, w.ended = h, make(chan struct{})
	ended := w.ended
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	w.rt.group.Go(func() { w.watch(ctx) })
	w.rt.group.Go(func() {
		defer cancel()
		defer h.close()
		if !h.wait(ctx) {
			go code() // this runtime was closed and the process lives on: only take its exit status one day
			return
		}
		cancel()
		exitCode, note := code()
		killSession(h.pid, h.start) // nobody outlives the agent server
		w.exited(exitCode, note)
		close(ended)
		w.rt.changed(w)
	})
}

// exited records the end of an attempt.
func (w *workload) exited(code int, note string) {
	endLine(w.dir)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.proc = nil
	s := &w.state
	s.ExitedAt, s.ExitCode, s.ExitNote = time.Now().UTC(), code, note
	if w.killed != "" {
		s.ExitNote, w.killed = w.killed, ""
	}
	if !s.ReadyAt.IsZero() && s.ExitedAt.Sub(s.ReadyAt) >= w.rt.cfg.StableAfter {
		s.Restarts = 0
	}
	w.save()
	w.log.Info("agent server exited", "exit_code", code, "reason", s.ExitNote)
}

// kill ends the current attempt with all its processes; its end is recorded by follow.
func (w *workload) kill(why string) {
	w.mu.Lock()
	h := w.proc
	if h != nil && w.killed == "" {
		w.killed = why
	}
	w.mu.Unlock()
	if h == nil {
		return
	}
	if err := h.signal(unix.SIGKILL); err != nil {
		w.log.Error("agent server not killed", "error", err.Error())
	}
}

// drain asks the process to finish. It is recorded first: a second signal would end the process at once.
func (w *workload) drain() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.proc == nil || !w.state.DrainUntil.IsZero() {
		return nil
	}
	grace := time.Duration(w.state.Grace)*time.Second + w.rt.cfg.DrainMargin
	w.state.DrainUntil = time.Now().UTC().Add(grace)
	w.save()
	return w.proc.signal(unix.SIGTERM)
}

// end kills the process, if there is one, and waits until it is gone.
func (w *workload) end(ctx context.Context) error {
	w.mu.Lock()
	ended, running := w.ended, w.proc != nil
	pid, start := w.state.PID, w.state.PIDStart
	w.mu.Unlock()
	if !running {
		w.sweep(pid, start)
		return nil
	}
	w.kill("removed")
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sweep kills what an attempt that ended unseen, while slipway was down, may have left behind.
func (w *workload) sweep(pid int, start uint64) {
	w.mu.Lock()
	sameBoot := w.state.BootID == w.rt.boot
	w.mu.Unlock()
	if pid != 0 && sameBoot {
		killSession(pid, start)
	}
}

// arm registers what must not reach a log line and starts tailing.
func (w *workload) arm(ctx context.Context, values []string) error {
	r := newRedactor(values)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.redact = r
	if w.tail != nil {
		return nil
	}
	template := slipway.LogEntry{DeploymentID: w.deploymentID, RevisionID: w.revisionID}
	t, err := newTailer(w.rt.cfg, w.dir, template, w.redactor)
	if err != nil {
		return err
	}
	ctx, w.stopTail = context.WithCancel(ctx)
	w.tail = t
	w.rt.group.Go(func() { t.run(ctx) })
	return nil
}

func (w *workload) redactor() *redactor {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.redact
}

// hangUp delivers the last lines, as far as the time allows, and stops tailing.
func (w *workload) hangUp(ctx context.Context) {
	w.mu.Lock()
	t, stop := w.tail, w.stopTail
	w.tail = nil
	w.mu.Unlock()
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, w.rt.cfg.FlushTimeout)
	defer cancel()
	t.flush(ctx)
	stop()
}
