package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// CreateRun admits a background run; it is durable when this returns.
func (e *Engine) CreateRun(ctx context.Context, r RunRequest) (agent.Run, error) {
	return e.admit(ctx, r, func(agent.Run) func() { return func() {} })
}

// StreamRun admits a run with a subscription that hears it from its first frame on.
func (e *Engine) StreamRun(ctx context.Context, r RunRequest) (agent.Run, *Subscription, error) {
	var s *Subscription
	run, err := e.admit(ctx, r, func(run agent.Run) func() {
		s = e.hold(run.ID, run.ThreadID).subscribe()
		return s.Close
	})
	if err != nil {
		return run, nil, err
	}
	return run, s, nil
}

// WaitRun admits a run and returns a waiter that cannot miss its end, also when the run's row goes with it (temporary
// runs). It is what POST .../runs/wait uses; Wait is for runs that exist already.
func (e *Engine) WaitRun(ctx context.Context, r RunRequest) (agent.Run, *Waiter, error) {
	var w *Waiter
	run, err := e.admit(ctx, r, func(run agent.Run) func() {
		w = &Waiter{t: e.hold(run.ID, run.ThreadID)}
		return w.Close
	})
	if err != nil {
		return run, nil, err
	}
	return run, w, nil
}

// CreateRuns admits background runs, all or none (reference 5).
func (e *Engine) CreateRuns(ctx context.Context, list []RunRequest) ([]agent.Run, error) {
	admissions := make([]agent.Admission, 0, len(list))
	for _, r := range list {
		a, err := e.admission(ctx, r)
		if err != nil {
			return nil, err
		}
		admissions = append(admissions, a)
	}
	seats := make([]*seat, len(list))
	for i := range admissions {
		seats[i] = e.reserveFor(&admissions[i])
	}
	admitted, err := e.store.AdmitAll(ctx, admissions)
	if err != nil {
		for _, s := range seats {
			e.unreserve(s)
		}
		return nil, err
	}
	runs := make([]agent.Run, 0, len(admitted))
	for i, a := range admitted {
		e.follow(a, seats[i])
		runs = append(runs, a.Run)
	}
	return runs, nil
}

// admit records a run. watch is called before anybody can claim it; what it returns undoes it if the run is refused.
func (e *Engine) admit(ctx context.Context, r RunRequest, watch func(agent.Run) func()) (agent.Run, error) {
	a, err := e.admission(ctx, r)
	if err != nil {
		return agent.Run{}, err
	}
	undo := watch(a.Run)
	s := e.reserveFor(&a)
	if s == nil && e.hasPeers() {
		// Another instance may claim the run the moment it is stored: its frames must have a way here before.
		if t := e.lookup(a.Run.ID); t != nil {
			t.attach()
		}
	}
	admitted, err := e.store.Admit(ctx, a)
	if err != nil {
		undo()
		e.unreserve(s)
		return agent.Run{}, err
	}
	e.follow(admitted, s)
	return admitted.Run, nil
}

// reserveFor takes a slot for a run that is due at once, so that admission can claim it in the same transaction.
func (e *Engine) reserveFor(a *agent.Admission) *seat {
	if a.Run.CreatedAt.After(a.Now) {
		return nil
	}
	s := e.reserve(a.Run.GraphID)
	if s != nil {
		a.ClaimFor = e.cfg.Instance
	}
	return s
}

// follow carries out what an admission decided.
func (e *Engine) follow(a agent.Admitted, s *seat) {
	for _, r := range a.Ended {
		e.settleEnded(r)
	}
	if a.Run.Status == agent.RunRunning && s != nil {
		e.launch(a.Run, s, a.Thread.Language == "")
	} else {
		e.unreserve(s)
		if t := e.lookup(a.Run.ID); t != nil {
			t.attach()
		}
		e.wakeAll()
		if e.hopeless(a.Run.GraphID) != "" {
			wakeLoop(e.hopelessKick)
		}
	}
	for _, r := range a.Cancels {
		e.pushCancel(r)
	}
}

// settleEnded tells the watchers of a pending run that was ended before it ran.
func (e *Engine) settleEnded(r agent.Run) {
	outcome := agent.RunInterrupted
	if r.CancelAction == agent.CancelRollback {
		outcome = agent.RunRollback
	}
	e.settleRemote(agent.Finished{Run: r, Outcome: outcome}, r)
}

func (e *Engine) admission(ctx context.Context, r RunRequest) (agent.Admission, error) {
	if err := e.checkWebhook(r.Webhook); err != nil {
		return agent.Admission{}, err
	}
	a, err := e.namedAssistant(ctx, r.AssistantID)
	if err != nil {
		return agent.Admission{}, err
	}
	thread, err := e.threadFor(ctx, &r)
	if err != nil {
		return agent.Admission{}, err
	}
	if r.Multitask == agent.MultitaskRollback {
		if err := e.checkRollback(ctx, a.GraphID); err != nil {
			return agent.Admission{}, err
		}
	}
	made := e.makeAdmission(r, a, thread)
	from := parse(parse(made.Run.Kwargs.Config)["configurable"])
	start := agent.CheckpointKey{ID: from.text("checkpoint_id"), Namespace: from.text("checkpoint_ns")}
	if err := e.requireCheckpoint(ctx, thread.ID, start, e.savesElsewhere(a.GraphID)); err != nil {
		return agent.Admission{}, err
	}
	made.Run.Kwargs.EncryptionContext = agent.EncryptionContextFrom(ctx)
	return made, nil
}

// namedAssistant returns the assistant that a run or a cron names.
func (e *Engine) namedAssistant(ctx context.Context, id string) (agent.Assistant, error) {
	a, err := e.Assistant(ctx, id)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		err = noNamedAssistant(id)
	}
	return a, err
}

func noNamedAssistant(id string) error {
	return slipway.Errorf(slipway.CodeNotFound,
		"No assistant found for %q. Make sure the assistant ID is for a valid assistant or a valid graph ID.", id)
}

// threadFor reads the thread whose settings the run inherits; one that is to be made is empty.
func (e *Engine) threadFor(ctx context.Context, r *RunRequest) (agent.Thread, error) {
	if r.Stateless {
		r.ThreadID, r.CreateThread, r.Multitask = e.ids(), true, agent.MultitaskEnqueue
		return agent.Thread{ID: r.ThreadID}, nil
	}
	t, err := e.Thread(ctx, r.ThreadID)
	if slipway.ErrorCode(err) == slipway.CodeNotFound && r.CreateThread {
		return agent.Thread{ID: r.ThreadID}, nil
	}
	return t, err
}

func (e *Engine) makeAdmission(r RunRequest, a agent.Assistant, thread agent.Thread) agent.Admission {
	now := e.clock()
	config := parse(r.Config)
	metadata := runMetadata(a, thread.Metadata, config, r.Metadata).json()
	run := agent.Run{
		ID: or(r.ID, e.ids()), ThreadID: thread.ID, AssistantID: a.ID, GraphID: a.GraphID, Metadata: metadata,
		Status: agent.RunPending, Multitask: or(r.Multitask, agent.MultitaskEnqueue), Temporary: r.Stateless && !r.Keep,
		CreatedAt: now.Add(r.After), UpdatedAt: now,
	}
	run.Kwargs = kwargs(r, run.Temporary)
	run.Kwargs.Config = runConfig(a, thread.Config, config, run, checkpointKeys(r), metadata, r.User)
	run.Kwargs.Context = mergeContext(a, r.Context)
	var ttl *agent.TTL
	if e.cfg.ThreadTTL != nil && !run.Temporary {
		ttl = e.cfg.ThreadTTL.From(now)
	}
	return agent.Admission{
		ThreadTTL: ttl, Run: run, CreateThread: r.CreateThread, ThreadMetadata: withoutReserved(r.Metadata),
		ThreadConfig: threadConfig(a, parse(r.Config)), Filter: r.Filter, Now: now,
	}
}

func kwargs(r RunRequest, temporary bool) agent.Kwargs {
	modes := r.StreamMode
	if len(modes) == 0 {
		modes = []string{"values"}
	}
	return agent.Kwargs{
		Input: null(r.Input), Command: present(r.Command), StreamMode: modes, InterruptBefore: present(r.InterruptBefore),
		InterruptAfter: present(r.InterruptAfter), Webhook: r.Webhook, FeedbackKeys: r.FeedbackKeys, Temporary: temporary,
		Subgraphs: r.StreamSubgraphs, Resumable: r.StreamResumable, Durability: r.Durability, StrictResume: r.StrictResume,
	}
}

func present(raw json.RawMessage) json.RawMessage {
	if absent(raw) {
		return nil
	}
	return raw
}

func null(raw json.RawMessage) json.RawMessage {
	if absent(raw) {
		return json.RawMessage("null")
	}
	return raw
}

// Run returns a run; with threadID "" of whichever thread.
func (e *Engine) Run(ctx context.Context, threadID, runID string) (agent.Run, error) {
	return e.store.Run(ctx, threadID, runID)
}

// Runs lists the runs of a thread, newest first; a missing thread is CodeNotFound.
func (e *Engine) Runs(ctx context.Context, q agent.RunQuery) ([]agent.Run, error) {
	runs, err := e.store.Runs(ctx, q)
	if err != nil || len(runs) > 0 {
		return runs, err
	}
	_, err = e.Thread(ctx, q.ThreadID)
	return runs, err
}

// DeleteRun removes a run with its checkpoints. One in flight is rolled back, so that the thread shows nothing of it.
func (e *Engine) DeleteRun(ctx context.Context, threadID, runID string) error {
	r, err := e.store.Run(ctx, threadID, runID)
	if err != nil {
		return err
	}
	if !inFlight(r) {
		if err := e.saverForgetRun(ctx, r); err != nil {
			return err
		}
		if err := e.store.DeleteRun(ctx, r.ThreadID, runID, e.clock()); err != nil {
			return err
		}
		e.showRest(ctx, r.ThreadID)
		return nil
	}
	if err := e.cancelIfInFlight(ctx, r, agent.CancelRollback, "run deleted"); err != nil {
		return err
	}
	err = e.store.DeleteRun(ctx, r.ThreadID, runID, e.clock())
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return nil // it went with the rollback; else it had ended by itself
	}
	return err
}

// showRest makes a thread show the state of its last checkpoint where it shows one that is gone. That the run is gone is not
// undone if no worker can tell it.
func (e *Engine) showRest(ctx context.Context, threadID string) {
	t, err := e.Thread(ctx, threadID)
	if err == nil && !absent(t.State) {
		err = e.showLast(ctx, t)
	}
	if err != nil && slipway.ErrorCode(err) != slipway.CodeConflict { // a run in flight: its end shows what there is
		e.log.Warn("a thread shows the state of a run that was deleted", "thread_id", threadID, "error", err)
	}
}

func (e *Engine) showLast(ctx context.Context, t agent.Thread) error {
	last, err := e.store.Checkpoint(ctx, agent.CheckpointKey{ThreadID: t.ID})
	shown := parse(parse(t.State)["checkpoint"]).text("checkpoint_id")
	if err != nil || last == nil || last.ID == shown {
		return err
	}
	raw, err := e.askState(ctx, t, StateRequest{ThreadID: t.ID})
	if err != nil {
		return err
	}
	var s agent.Snapshot
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("read the worker's answer to a question for a state: %w", err)
	}
	_, err = e.store.PutState(ctx, t.ID, "", s, e.clock())
	return err
}

func inFlight(r agent.Run) bool { return r.Status == agent.RunPending || r.Status == agent.RunRunning }

// JoinStream subscribes to a run. A run that has ended and is not resumable yields just `end`. With threadID "" the run is
// looked up on whichever thread.
func (e *Engine) JoinStream(ctx context.Context, threadID, runID string, from From) (*Subscription, error) {
	t := e.hold(runID, threadID)
	s := t.subscribe()
	if err := e.join(ctx, t, s, threadID, runID, from); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (e *Engine) join(ctx context.Context, t *track, s *Subscription, threadID, runID string, from From) error {
	if !t.executedHere() {
		t.attach() // before the store is read, so that no end is missed in between
	}
	r, err := e.store.Run(ctx, threadID, runID)
	gone := slipway.ErrorCode(err) == slipway.CodeNotFound
	if err != nil && !gone {
		return err
	}
	if gone {
		if r, err = e.expiredRun(ctx, threadID, runID, err); err != nil {
			return err
		}
	}
	s.of = r.ThreadID
	if r.Kwargs.Resumable && from.LastEventID != "" {
		if err := e.startReplay(ctx, t, s, r, from); err != nil {
			return err
		}
	}
	if !inFlight(r) {
		s.push(endFrame(r.ID, r.ThreadID, r.Status))
	}
	return nil
}

// expiredRun stands in for a run whose row is gone while its frames are still kept (temporary runs).
func (e *Engine) expiredRun(ctx context.Context, threadID, runID string, missing error) (agent.Run, error) {
	frames, err := e.store.Frames(ctx, runID, 0, 1)
	if err != nil {
		return agent.Run{}, err
	}
	if len(frames) == 0 || threadID != "" && frames[0].ThreadID != threadID {
		return agent.Run{}, missing
	}
	return agent.Run{ID: runID, ThreadID: frames[0].ThreadID, Status: agent.RunSuccess, Kwargs: agent.Kwargs{Resumable: true}}, nil
}

// startReplay makes the subscription tell kept frames first.
func (e *Engine) startReplay(ctx context.Context, t *track, s *Subscription, r agent.Run, from From) error {
	if r.Status == agent.RunRunning && r.Instance != e.cfg.Instance {
		t.awaitJoined(ctx)
	}
	t.flushed()
	s.replay = true
	s.fetch = func(ctx context.Context, after int64) ([]agent.Frame, error) {
		frames, err := e.store.Frames(ctx, r.ID, after, 256)
		if err != nil {
			return nil, fmt.Errorf("replay stream: %w", err)
		}
		return frames, nil
	}
	var err error
	switch id := from.LastEventID; {
	case id == "-" || id == "-1":
		s.last, err = e.idBefore(ctx, r, from.CheckpointID)
	case strings.Contains(id, "-"):
		s.last = id
	default:
		s.position, _ = strconv.ParseInt(id, 10, 64)
	}
	return err
}

// idBefore is the last frame id that lies surely before a checkpoint of the run: frames and checkpoints are only ordered by
// their times, and a frame too many does no harm where a missing one would. "" without such a checkpoint.
func (e *Engine) idBefore(ctx context.Context, r agent.Run, checkpointID string) (string, error) {
	made, ok := checkpointTime(checkpointID)
	if !ok {
		return "", nil
	}
	cp, err := e.store.Checkpoint(ctx, agent.CheckpointKey{ThreadID: r.ThreadID, ID: checkpointID})
	if err != nil || cp == nil || cp.RunID != r.ID {
		return "", err
	}
	return idUntil(made), nil
}
