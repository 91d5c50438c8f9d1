package agentapi

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/agent"
)

// followThread answers GET /threads/{t}/stream (reference 10.4): it lasts until the client or the thread goes.
func (a *API) followThread(w http.ResponseWriter, r *http.Request) error {
	threadID, err := pathID(r, "thread_id")
	if err != nil {
		return err
	}
	modes, err := threadModes(r)
	if err != nil {
		return err
	}
	s, err := a.engine.FollowThread(r.Context(), threadID, strings.TrimSpace(r.Header.Get("Last-Event-ID")))
	if err != nil {
		return err
	}
	defer s.Close()
	w.Header().Set("Location", "/threads/"+threadID+"/stream?"+url.Values{"stream_modes": modes}.Encode())
	err = a.relay(w, r, s, threadModesPass(modes))
	if !errors.Is(err, io.EOF) && !errors.Is(err, errCut) && r.Context().Err() == nil {
		a.cfg.Log.Info("stream ended early", "thread_id", threadID, "error", err)
	}
	return nil
}

// threadModes reads the modes of a thread's stream, which the SDKs call stream_mode.
func threadModes(r *http.Request) ([]string, error) {
	modes := noEmpty(queryList(r, "stream_modes"))
	name := "query.stream_modes"
	if len(modes) == 0 {
		modes, name = noEmpty(queryList(r, "stream_mode")), "query.stream_mode"
	}
	if len(modes) == 0 {
		return []string{modeRuns}, nil
	}
	return modes, checkNames(name, modes, []string{modeRuns, modeLifecycle, modeState})
}

// The modes of a thread's stream.
const (
	modeRuns      = "run_modes"
	modeLifecycle = "lifecycle"
	modeState     = "state_update"
)

// threadModesPass says which frames of a thread pass.
func threadModesPass(modes []string) func(agent.Frame) bool {
	runs, lifecycle, state := slices.Contains(modes, modeRuns), slices.Contains(modes, modeLifecycle), slices.Contains(modes, modeState)
	return func(f agent.Frame) bool {
		switch f.Event {
		case "state_update":
			return state
		case "metadata":
			return runs || lifecycle
		}
		return runs
	}
}
