package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/runtime/change"
)

// Runtime implements slipway.Runtime with processes of this machine. At most one Runtime may use a data directory.
type Runtime struct {
	cfg     Config
	log     *slog.Logger
	boot    string
	client  *http.Client
	changes *change.Queue
	ctx     context.Context // ends with Close
	close   context.CancelFunc
	group   sync.WaitGroup

	mu        sync.Mutex
	workloads map[string]*workload // by revision id
}

var _ slipway.Runtime = (*Runtime)(nil)

// idPattern is what an id must look like to be part of a path.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// New returns a Runtime over cfg.Root. Call Recover before anything else.
func New(cfg Config, log *slog.Logger) (*Runtime, error) {
	root, err := filepath.Abs(cfg.Root)
	if err != nil {
		return nil, fmt.Errorf("open process runtime: %w", err)
	}
	bundles, err := filepath.Abs(cfg.BundleDir)
	if err != nil {
		return nil, fmt.Errorf("open process runtime: %w", err)
	}
	cfg.Root, cfg.BundleDir = root, bundles
	if len(cfg.Command) == 0 || !filepath.IsAbs(cfg.Command[0]) {
		return nil, fmt.Errorf("open process runtime: the command %q must name a program by its absolute path", cfg.Command)
	}
	if err := os.MkdirAll(filepath.Join(root, "run"), 0o700); err != nil {
		return nil, fmt.Errorf("open process runtime: %w", err)
	}
	r := &Runtime{
		cfg: cfg.withDefaults(), log: log, boot: bootID(), changes: change.NewQueue(), workloads: map[string]*workload{},
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}},
	}
	r.ctx, r.close = context.WithCancel(context.Background())
	return r, nil
}

// Close stops watching and tailing. The workloads live on; a later Runtime over the same directory recovers them.
func (r *Runtime) Close() {
	r.close()
	r.group.Wait()
	r.changes.Close()
}

// Stop ends all workloads, e.g. for "slipway down"; nobody may call Ensure meanwhile. Each is asked to finish, and what still runs when ctx ends is killed. Their records stay, so
// that a later Runtime sees them as exited.
func (r *Runtime) Stop(ctx context.Context) error {
	var failed []error
	all := r.all()
	for _, w := range all {
		failed = append(failed, w.drain())
	}
	for _, w := range all {
		failed = append(failed, w.finish(ctx))
	}
	return errors.Join(failed...)
}

// finish waits for the process to end and kills it when ctx ends first.
func (w *workload) finish(ctx context.Context) error {
	w.mu.Lock()
	ended, running := w.ended, w.proc != nil
	w.mu.Unlock()
	if !running {
		return nil
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return w.end(last)
}

// Changes implements slipway.Runtime.
func (r *Runtime) Changes() <-chan string { return r.changes.Out() }

func (r *Runtime) changed(w *workload) { r.changes.Put(w.deploymentID) }

// Ensure implements slipway.Runtime.
func (r *Runtime) Ensure(ctx context.Context, wl slipway.Workload) error {
	if !idPattern.MatchString(wl.DeploymentID) || !idPattern.MatchString(wl.RevisionID) {
		return slipway.Errorf(slipway.CodeInvalid, "cannot run revision %q of deployment %q: ids are letters, digits, - and _", wl.RevisionID, wl.DeploymentID)
	}
	w, err := r.workload(wl)
	if err != nil {
		return err
	}
	if err := w.arm(r.ctx, wl.Redact); err != nil {
		return err
	}
	w.mu.Lock()
	running, pid, start := w.proc != nil, w.state.PID, w.state.PIDStart
	w.mu.Unlock()
	if running {
		return nil
	}
	w.sweep(pid, start)
	defer r.changed(w)
	return w.start(wl)
}

// workload returns the record of wl, making it if there is none.
func (r *Runtime) workload(wl slipway.Workload) (*workload, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.workloads[wl.RevisionID]; w != nil {
		return w, nil
	}
	dir := r.runDir(wl.RevisionID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make run directory: %w", err)
	}
	w := r.newWorkload(dir, state{DeploymentID: wl.DeploymentID, RevisionID: wl.RevisionID})
	r.workloads[wl.RevisionID] = w
	return w, nil
}

func (r *Runtime) newWorkload(dir string, s state) *workload {
	log := r.log.With("deployment_id", s.DeploymentID, "revision_id", s.RevisionID)
	return &workload{rt: r, deploymentID: s.DeploymentID, revisionID: s.RevisionID, dir: dir, log: log, state: s}
}

// Observe implements slipway.Runtime.
func (r *Runtime) Observe(ctx context.Context, deploymentID string) ([]slipway.Observed, error) {
	var out []slipway.Observed
	for _, w := range r.all() {
		if w.deploymentID == deploymentID && w.begun() {
			out = append(out, w.observe())
		}
	}
	return out, ctx.Err()
}

// begun is false while no attempt was ever made, e.g. because the artifact is missing.
func (w *workload) begun() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.Attempt > 0
}

// Drain implements slipway.Runtime.
func (r *Runtime) Drain(_ context.Context, deploymentID, revisionID string) error {
	w := r.find(deploymentID, revisionID)
	if w == nil {
		return nil
	}
	defer r.changed(w)
	return w.drain()
}

// Remove implements slipway.Runtime.
func (r *Runtime) Remove(ctx context.Context, deploymentID, revisionID string) error {
	w := r.find(deploymentID, revisionID)
	if w == nil {
		return nil
	}
	if err := w.end(ctx); err != nil {
		return fmt.Errorf("remove workload %s: %w", revisionID, err)
	}
	w.hangUp(ctx)
	// Renamed first, so that a crash half-way leaves either the whole record or rubbish that Recover knows as such.
	trash := filepath.Join(r.cfg.Root, "run", trashMark+revisionID)
	if err := os.Rename(w.dir, trash); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove workload %s: %w", revisionID, err)
	}
	if err := os.RemoveAll(trash); err != nil {
		return fmt.Errorf("remove workload %s: %w", revisionID, err)
	}
	r.mu.Lock()
	delete(r.workloads, revisionID)
	r.mu.Unlock()
	r.changed(w)
	return nil
}

// Destroy implements slipway.Runtime. It refuses, with CodeConflict, while a workload of the deployment is left.
func (r *Runtime) Destroy(ctx context.Context, deploymentID string) error {
	if !idPattern.MatchString(deploymentID) {
		return slipway.Errorf(slipway.CodeInvalid, "cannot destroy deployment %q: ids are letters, digits, - and _", deploymentID)
	}
	left, err := r.Observe(ctx, deploymentID)
	if err != nil {
		return fmt.Errorf("destroy deployment %s: %w", deploymentID, err)
	}
	if len(left) > 0 {
		return slipway.Errorf(slipway.CodeConflict, "cannot destroy deployment %s: %d workloads are left; remove them first", deploymentID, len(left))
	}
	if r.cfg.Destroy != nil {
		if err := r.cfg.Destroy(ctx, deploymentID); err != nil {
			return fmt.Errorf("destroy deployment %s: %w", deploymentID, err)
		}
	}
	if err := os.RemoveAll(r.dataDir(deploymentID)); err != nil {
		return fmt.Errorf("destroy deployment %s: %w", deploymentID, err)
	}
	return nil
}

// Recover implements slipway.Runtime.
func (r *Runtime) Recover(ctx context.Context) ([]slipway.Observed, error) {
	run := filepath.Join(r.cfg.Root, "run")
	entries, err := os.ReadDir(run)
	if err != nil {
		return nil, fmt.Errorf("recover workloads: %w", err)
	}
	var out []slipway.Observed
	for _, e := range entries {
		dir := filepath.Join(run, e.Name())
		s, err := loadState(dir)
		if err != nil || strings.HasPrefix(e.Name(), trashMark) {
			_ = os.RemoveAll(dir) // rubbish of a crash: no process was ever started from it, or none is left
			continue
		}
		out = append(out, r.recoverOne(dir, s).observe())
	}
	return out, ctx.Err()
}

func (r *Runtime) recoverOne(dir string, s state) *workload {
	r.mu.Lock()
	w := r.workloads[s.RevisionID]
	if w == nil {
		w = r.newWorkload(dir, s)
		r.workloads[s.RevisionID] = w
	}
	r.mu.Unlock()
	if w.proc != nil || !s.ExitedAt.IsZero() {
		return w
	}
	h := r.locate(s)
	if h == nil {
		w.exited(-1, "exit code unknown: it ended while slipway was not running")
		return w
	}
	w.state.PID, w.state.PIDStart = h.pid, h.start
	w.save()
	w.follow(r.ctx, h, func() (int, string) { return -1, "exit code unknown: slipway was restarted since it began" })
	w.log.Info("agent server adopted", "pid", h.pid)
	return w
}

// locate finds the living process of a saved state; nil without one. Without a number there is none: a process passes
// its gate only after its number was saved.
func (r *Runtime) locate(s state) *handle {
	if s.BootID != r.boot || s.PID == 0 {
		return nil
	}
	return adopt(s.PID, s.PIDStart)
}

func (r *Runtime) find(deploymentID, revisionID string) *workload {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.workloads[revisionID]; w != nil && w.deploymentID == deploymentID {
		return w
	}
	return nil
}

func (r *Runtime) all() []*workload {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*workload, 0, len(r.workloads))
	for _, w := range r.workloads {
		out = append(out, w)
	}
	return out
}

// Revisions lists the revisions that have, or may have, processes on this machine; also before Recover.
func (r *Runtime) Revisions() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(r.cfg.Root, "run"))
	if err != nil {
		return nil, fmt.Errorf("list workloads: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if idPattern.MatchString(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

func (r *Runtime) runDir(revisionID string) string {
	return filepath.Join(r.cfg.Root, "run", revisionID)
}

func (r *Runtime) dataDir(deploymentID string) string {
	return filepath.Join(r.cfg.Root, "deployments", deploymentID)
}
