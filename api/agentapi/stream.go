package agentapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
)

const (
	// batchLimit is how many frames wait for the connection; the engine's own buffer comes before.
	batchLimit = 16
	// writeLimit is how long a connection may take to accept what is written to it.
	writeLimit = 2 * time.Minute
)

// streamRun answers POST …/runs/stream (reference 10).
func (a *API) streamRun(w http.ResponseWriter, r *http.Request) error {
	call, err := a.runCall(w, r)
	if err != nil {
		return err
	}
	run, s, err := a.engine.StreamRun(r.Context(), call.request)
	if err != nil {
		return err
	}
	defer s.Close()
	f := filter{namespaces: r.URL.Query()["namespace"]}
	w.Header().Set("Content-Location", runURL(run, call.request.Stateless))
	w.Header().Set("Location", f.location(run, call.request.StreamMode))
	a.send(w, r, run, s, f, call.cancelOnDisconnect)
	return nil
}

// joinStream answers GET …/runs/{r}/stream (reference 10.2).
func (a *API) joinStream(w http.ResponseWriter, r *http.Request) error {
	threadID, runID, err := runPath(r)
	if err != nil {
		return err
	}
	f := filter{modes: noEmpty(queryList(r, "stream_mode")), namespaces: r.URL.Query()["namespace"]}
	if err := checkNames("query.stream_mode", f.modes, streamModes()); err != nil {
		return err
	}
	cancel, err := queryBool(r, "cancel_on_disconnect")
	if err != nil {
		return err
	}
	if cancel {
		if err := a.engine.MayCancel(r.Context(), threadID, runID, agent.CancelInterrupt); err != nil {
			return err
		}
	}
	from := engine.From{LastEventID: r.Header.Get("Last-Event-ID"), CheckpointID: query(r, "checkpoint_id")}
	s, err := a.engine.JoinStream(r.Context(), threadID, runID, from)
	if err != nil {
		return err
	}
	defer s.Close()
	run := agent.Run{ID: runID, ThreadID: threadID}
	if found, ok := s.(interface{ ThreadID() string }); ok && threadID == "" {
		run.ThreadID = found.ThreadID()
	}
	w.Header().Set("Location", f.location(run, f.modes))
	a.send(w, r, run, s, f, cancel)
	return nil
}

// filter says which frames of a run a connection gets (reference 10.2). No modes and nil namespaces let everything pass.
type filter struct{ modes, namespaces []string }

func (f filter) passes(frame agent.Frame) bool {
	base, namespace, _ := strings.Cut(frame.Event, "|")
	switch base {
	case "metadata", "error", "feedback", "end":
		return true
	}
	if f.namespaces != nil && !slices.Contains(f.namespaces, namespace) {
		return false
	}
	if len(f.modes) == 0 || slices.Contains(f.modes, base) {
		return true
	}
	return (base == "messages" || strings.HasPrefix(base, "messages/")) &&
		(slices.Contains(f.modes, "messages") || slices.Contains(f.modes, "messages-tuple"))
}

// location is where to reconnect with the same filters.
func (f filter) location(run agent.Run, modes []string) string {
	q := url.Values{}
	for _, m := range modes {
		q.Add("stream_mode", m)
	}
	for _, n := range f.namespaces {
		q.Add("namespace", n)
	}
	at := runURL(run, run.ThreadID == "") + "/stream"
	if len(q) > 0 {
		at += "?" + q.Encode()
	}
	return at
}

// sse writes frames to a connection.
type sse struct {
	out     *bufio.Writer
	control *http.ResponseController
	err     error
}

func (s *sse) frame(f agent.Frame) {
	s.put("event: ", f.Event, "\ndata: ")
	_, _ = s.out.Write(orNull(f.Data))
	if f.ID != "" {
		s.put("\nid: ", f.ID)
	}
	s.put("\n\n")
}

func (s *sse) put(parts ...string) {
	for _, p := range parts {
		_, _ = s.out.WriteString(p) // bufio keeps the first error for Flush
	}
}

func (s *sse) flush() {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeLimit))
	if s.err = s.out.Flush(); s.err == nil {
		s.err = s.control.Flush()
	}
}

// send writes a run's stream to the end.
func (a *API) send(w http.ResponseWriter, r *http.Request, run agent.Run, s Stream, f filter, cancel bool) {
	err := a.relay(w, r, s, f.passes)
	switch {
	case errors.Is(err, io.EOF):
	case errors.Is(err, errCut) || r.Context().Err() != nil:
		a.disconnected(r, run, cancel)
	default: // no `end` frame has been sent: the client connects again
		a.cfg.Log.Info("stream ended early", "run_id", run.ID, "error", err)
	}
}

// errCut tells that the connection took no more.
var errCut = errors.New("the connection of a stream was cut")

// relay writes the frames of a stream that pass to the connection until one of the two ends, and returns why. Frames that
// are ready together go out together; a heartbeat goes out in between.
func (a *API) relay(w http.ResponseWriter, r *http.Request, s Stream, passes func(agent.Frame) bool) error {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	out := &sse{out: bufio.NewWriterSize(w, 4<<10), control: http.NewResponseController(w)}
	out.flush()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	frames, failed := pump(ctx, s)
	tick := time.NewTicker(a.cfg.Heartbeat)
	defer tick.Stop()
	for out.err == nil {
		select {
		case frame, ok := <-frames:
			if !ok {
				return <-failed
			}
			if passes(frame) {
				out.frame(frame)
			}
			if len(frames) == 0 {
				out.flush()
			}
		case <-tick.C:
			out.put(": heartbeat\n\n")
			out.flush()
		}
	}
	return errCut
}

// pump reads the stream ahead of the connection. The channel is closed at the end; then failed tells why.
func pump(ctx context.Context, s Stream) (frames chan agent.Frame, failed chan error) {
	frames, failed = make(chan agent.Frame, batchLimit), make(chan error, 1)
	go func() {
		defer close(frames)
		for {
			f, err := s.Next(ctx)
			if err != nil {
				failed <- err
				return
			}
			select {
			case frames <- f:
			case <-ctx.Done():
				failed <- ctx.Err()
				return
			}
		}
	}()
	return frames, failed
}
