package supervise

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/worker/wire"
)

// Credit: so many chunks may be under way per run, and so many are given back at once.
const (
	firstCredit = 256
	moreCredit  = 64
)

// maxUnsent bounds what a worker that does not read its link may leave waiting.
const maxUnsent = 256 << 20

// link is one live worker: agent.Worker over its end of the socket pair.
type link struct {
	pool    *Pool
	proc    *process
	program Program
	info    agent.WorkerInfo

	mu      sync.Mutex
	gone    error
	serial  uint32
	runs    map[uint32]*run
	byID    map[string]uint32
	calls   map[uint32]chan answer
	web     *wire.Exchanges
	unsent  []byte
	sending *sync.Cond
	drained *sync.Cond // unsent has become less

	commits chan pending
	asks    sync.WaitGroup
}

// run is a run on this worker.
type run struct {
	id     string
	fence  agent.Fence
	sink   agent.RunSink
	chunks int // since the last credit; reader only
}

type answer struct {
	result json.RawMessage
	err    error
}

// pending is a write on its way to the disk that nobody waits for but the run.
type pending struct {
	commit agent.Commit
	run    *run
}

func newLink(p *Pool, proc *process, program Program, id string) *link {
	l := &link{
		pool: p, proc: proc, program: program, runs: map[uint32]*run{}, byID: map[string]uint32{},
		calls: map[uint32]chan answer{}, commits: make(chan pending, 4096),
		info: agent.WorkerInfo{ID: id, Language: string(program.Language), Slots: program.Slots},
	}
	if l.info.Slots == 0 {
		l.info.Slots = 10
	}
	l.sending, l.drained = sync.NewCond(&l.mu), sync.NewCond(&l.mu)
	l.web = wire.NewExchanges(webLink{l}, true)
	return l
}

// serve speaks with the worker until its link ends; up tells whether it came as far as loading its graphs.
func (l *link) serve() (up bool, err error) {
	var side sync.WaitGroup
	side.Go(l.write)
	side.Go(l.watchCommits)
	defer func() {
		l.fail(errors.New("the link has ended"))
		l.web.Close("the worker went away")
		l.asks.Wait()
		close(l.commits)
		side.Wait()
	}()
	in := bufio.NewReaderSize(l.proc.conn, 64<<10)
	limit := time.AfterFunc(l.pool.cfg.LoadTimeout, l.proc.kill)
	err = l.greet(in)
	limit.Stop()
	if err != nil {
		return false, err
	}
	l.pool.handler.WorkerUp(l)
	for {
		f, err := wire.Read(in)
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return true, err
		}
		if err := l.handle(f); err != nil {
			return true, err
		}
	}
}

// greet reads HELLO, sends LOAD and reads until LOADED.
func (l *link) greet(in io.Reader) error {
	var hello wire.HelloMessage
	if err := l.expect(in, wire.Hello, &hello); err != nil {
		return err
	}
	if hello.Protocol != 1 || hello.Language != l.info.Language {
		return fmt.Errorf("worker speaks protocol %d for %q, want 1 for %q", hello.Protocol, hello.Language, l.info.Language)
	}
	l.info.PID = hello.PID
	l.info.Versions = map[string]string{}
	for name, version := range hello.Versions {
		if version != nil {
			l.info.Versions[name] = *version
		}
	}
	_ = l.sendJSON(wire.Load, 0, wire.LoadMessage{
		Graphs: l.program.Graphs, Slots: l.info.Slots, DeltaMaxSupersteps: l.pool.cfg.DeltaMaxSupersteps,
		Parts: l.program.Parts,
	})
	var loaded wire.LoadedMessage
	if err := l.expect(in, wire.Loaded, &loaded); err != nil {
		return err
	}
	l.noteGraphs(loaded)
	l.noteParts(loaded)
	for _, w := range loaded.Warnings {
		l.say("warning", w)
	}
	return nil
}

func (l *link) noteGraphs(m wire.LoadedMessage) {
	l.info.Graphs, l.info.Compiled = map[string]*agent.Failure{}, map[string]bool{}
	for id := range l.program.Graphs {
		g, ok := m.Graphs[id]
		switch {
		case ok && g.OK:
			l.info.Graphs[id] = nil
			l.info.Compiled[id] = g.Factory != nil && !*g.Factory
		case ok && g.Error != nil:
			l.info.Graphs[id] = &agent.Failure{Error: g.Error.Error, Message: string(g.Error.Message)}
			l.say("error", string(g.Error.Message)+"\n"+g.Error.Trace)
		default:
			l.info.Graphs[id] = &agent.Failure{Error: "LoadError", Message: "the worker said nothing about graph " + id}
		}
	}
}

func (l *link) noteParts(m wire.LoadedMessage) {
	l.info.Parts = map[agent.PartName]*agent.PartInfo{}
	for _, name := range l.program.Parts.Names() {
		p := m.Parts[name]
		info := p.PartInfo
		switch {
		case p.OK:
		case p.Error != nil:
			info.Failure = &agent.Failure{Error: p.Error.Error, Message: string(p.Error.Message)}
			l.say("error", string(p.Error.Message)+"\n"+p.Error.Trace)
		default:
			info.Failure = &agent.Failure{Error: "LoadError", Message: "the worker said nothing about " + name.Key()}
		}
		l.info.Parts[name] = &info
	}
}

func (l *link) say(level, text string) {
	l.pool.lines(Line{WorkerID: l.info.ID, Language: l.program.Language, Level: level, Text: text, Logger: "worker"})
}

// expect reads frames until one of the kind arrives; logs may come before it, and calls need a loaded graph.
func (l *link) expect(in io.Reader, kind wire.Kind, into any) error {
	for {
		f, err := wire.Read(in)
		if err != nil {
			return fmt.Errorf("the link ended before the worker was ready: %w", err)
		}
		if f.Kind == kind {
			return decode(f, into)
		}
		if err := l.handle(f); err != nil {
			return err
		}
	}
}

func decode(f wire.Frame, into any) error {
	if err := json.Unmarshal(f.Envelope, into); err != nil {
		return fmt.Errorf("envelope of a frame of kind %d: %w", f.Kind, err)
	}
	return nil
}

// handle acts on one frame; an error ends the link.
func (l *link) handle(f wire.Frame) error {
	switch f.Kind {
	case wire.Chunk:
		return l.chunk(f)
	case wire.Done:
		return l.done(f)
	case wire.Ask, wire.Tell:
		return l.operate(f)
	case wire.Return:
		return l.returned(f)
	case wire.Log:
		return l.logged(f)
	case wire.Request, wire.Response, wire.Body, wire.Room, wire.Hangup:
		return l.web.Take(f)
	}
	return nil // unknown kinds are ignored
}

func (l *link) chunk(f wire.Frame) error {
	var m wire.ChunkMessage
	if err := decode(f, &m); err != nil {
		return err
	}
	r := l.run(f.Stream)
	if r == nil {
		return nil
	}
	r.sink.Chunk(m.Event, f.Payload)
	if r.chunks++; r.chunks >= moreCredit {
		r.chunks = 0
		_ = l.sendJSON(wire.Credit, f.Stream, map[string]int{"chunks": moreCredit})
	}
	return nil
}

func (l *link) done(f wire.Frame) error {
	var m wire.DoneMessage
	if err := decode(f, &m); err != nil {
		return err
	}
	d := agent.Done{Status: m.Status, Retriable: m.Retriable}
	if m.Error != nil {
		d.Failure = &agent.Failure{Error: m.Error.Error, Message: string(m.Error.Message)}
	}
	if len(f.Payload) > 0 {
		d.Snapshot = &agent.Snapshot{}
		if err := json.Unmarshal(f.Payload, d.Snapshot); err != nil {
			return fmt.Errorf("snapshot of a run: %w", err)
		}
	}
	l.mu.Lock()
	r := l.runs[f.Stream]
	if r != nil {
		delete(l.runs, f.Stream)
		delete(l.byID, r.id)
	}
	l.mu.Unlock()
	if r != nil {
		r.sink.Done(d)
	}
	return nil
}

func (l *link) returned(f wire.Frame) error {
	var m wire.ReturnMessage
	if err := decode(f, &m); err != nil {
		return err
	}
	l.mu.Lock()
	waiting := l.calls[f.Stream]
	delete(l.calls, f.Stream)
	l.mu.Unlock()
	if waiting == nil {
		return nil
	}
	if m.OK {
		waiting <- answer{result: f.Payload}
		return nil
	}
	waiting <- answer{err: callError(m.Error)}
	return nil
}

func callError(e *wire.Error) error {
	if e == nil {
		return slipway.Errorf(slipway.CodeInternal, "the worker refused without saying why")
	}
	if e.Code == "http" && e.Status >= 100 && e.Status <= 599 {
		return &agent.HTTPRefusal{Status: e.Status, Headers: e.Headers, Detail: string(e.Message)}
	}
	code := map[string]slipway.Code{"invalid": slipway.CodeInvalid, "not_found": slipway.CodeNotFound}[e.Code]
	if code == "" {
		code = slipway.CodeInternal
	}
	return slipway.Errorf(code, "%s", e.Message)
}

func (l *link) logged(f wire.Frame) error {
	var m wire.LogMessage
	if err := decode(f, &m); err != nil {
		return err
	}
	l.pool.lines(Line{
		WorkerID: l.info.ID, Language: l.program.Language, Level: m.Level, Text: m.Message, Logger: m.Logger,
		RunID: m.RunID, ThreadID: m.ThreadID,
	})
	return nil
}

func (l *link) run(stream uint32) *run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[stream]
}

// Info tells what the worker said of itself.
func (l *link) Info() agent.WorkerInfo { return l.info }

// Run starts a run.
func (l *link) Run(job agent.Job, sink agent.RunSink) {
	r := &run{id: job.Run.ID, fence: agent.Fence{RunID: job.Run.ID, Epoch: job.Run.Epoch}, sink: sink}
	l.mu.Lock()
	gone := l.gone
	l.serial++
	stream := l.serial
	if gone == nil {
		l.runs[stream] = r
		l.byID[r.id] = stream
	}
	l.mu.Unlock()
	if gone != nil {
		sink.Lost(gone)
		return
	}
	if err := l.sendJSON(wire.Run, stream, wire.RunOf(job, firstCredit)); err != nil {
		l.refuse(stream, r, err)
	}
}

// refuse ends a run that cannot be told to the worker (its input is larger than a frame).
func (l *link) refuse(stream uint32, r *run, err error) {
	l.mu.Lock()
	_, mine := l.runs[stream]
	delete(l.runs, stream)
	delete(l.byID, r.id)
	l.mu.Unlock()
	if mine {
		r.sink.Done(agent.Done{Status: "error", Failure: &agent.Failure{Error: "ValueError", Message: err.Error()}})
	}
}

// Cancel asks a run to stop.
func (l *link) Cancel(runID, action, reason string) {
	l.mu.Lock()
	stream, ok := l.byID[runID]
	l.mu.Unlock()
	if ok {
		_ = l.sendJSON(wire.Cancel, stream, wire.CancelMessage{Action: action, Reason: reason})
	}
}

// Kill ends the worker's process group at once.
func (l *link) Kill(reason string) {
	l.pool.log.Warn("worker killed", "worker", l.info.ID, "pid", l.info.PID, "reason", reason)
	l.proc.kill()
}

// Call asks a question.
func (l *link) Call(ctx context.Context, envelope json.RawMessage, payload []byte) (json.RawMessage, error) {
	waiting := make(chan answer, 1)
	l.mu.Lock()
	if l.gone != nil {
		l.mu.Unlock()
		return nil, errLost()
	}
	l.serial++
	stream := l.serial
	l.calls[stream] = waiting
	l.mu.Unlock()
	if err := l.send(wire.Frame{Kind: wire.Call, Stream: stream, Envelope: envelope, Payload: payload}); err != nil {
		return nil, slipway.Errorf(slipway.CodeTooLarge, "question to a worker: %w", err)
	}
	select {
	case a := <-waiting:
		return a.result, a.err
	case <-ctx.Done():
		l.mu.Lock()
		delete(l.calls, stream)
		l.mu.Unlock()
		_ = l.sendJSON(wire.Abort, stream, struct{}{})
		return nil, ctx.Err()
	}
}

func errLost() error {
	return slipway.Errorf(slipway.CodeUnavailable, "the worker went away while it was asked; try again")
}

// fail marks the link as gone: nothing is sent any more and calls are answered.
func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone == nil {
		l.gone = err
	}
	for stream, waiting := range l.calls {
		delete(l.calls, stream)
		waiting <- answer{err: errLost()}
	}
	l.sending.Broadcast()
	l.drained.Broadcast()
}

// lose tells every run that is left that its worker is gone.
func (l *link) lose(err error) {
	l.fail(err)
	l.mu.Lock()
	lost := make([]*run, 0, len(l.runs))
	for stream, r := range l.runs {
		lost = append(lost, r)
		delete(l.runs, stream)
	}
	clear(l.byID)
	l.mu.Unlock()
	for _, r := range slices.Backward(lost) {
		r.sink.Lost(err)
	}
}

func (l *link) sendJSON(kind wire.Kind, stream uint32, envelope any) error {
	b, err := json.Marshal(envelope)
	if err != nil {
		return fmt.Errorf("encode a frame of kind %d: %w", kind, err)
	}
	return l.send(wire.Frame{Kind: kind, Stream: stream, Envelope: b})
}

// send queues a frame; frames that come together leave together.
func (l *link) send(f wire.Frame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone != nil {
		return nil
	}
	b, err := f.Append(l.unsent)
	if err != nil {
		return err
	}
	l.unsent = b
	if len(l.unsent) > maxUnsent {
		l.proc.kill()
	}
	l.sending.Signal()
	return nil
}

func (l *link) write() {
	var batch []byte
	for {
		l.mu.Lock()
		for len(l.unsent) == 0 && l.gone == nil {
			l.sending.Wait()
		}
		if l.gone != nil {
			l.mu.Unlock()
			return
		}
		batch, l.unsent = l.unsent, batch[:0]
		l.drained.Broadcast()
		l.mu.Unlock()
		if _, err := l.proc.conn.Write(batch); err != nil {
			if !errors.Is(err, syscall.EPIPE) {
				l.proc.kill()
			}
			return
		}
		if cap(batch) > 1<<20 {
			batch = nil
		}
	}
}

// watchCommits hears of writes that nobody waits for.
func (l *link) watchCommits() {
	for p := range l.commits {
		if err := p.commit.Watch(context.Background()); err != nil && p.run != nil {
			p.run.sink.Failed(err)
		}
	}
}
