package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/worker/fake"
)

// A run that asks for feedback addresses tells them in one frame before its end and in its result; one that does not, or
// whose service fails, tells nothing of them.
func TestFeedbackAddresses(t *testing.T) {
	t.Parallel()
	graphs := map[string]fake.Graph{
		"good": func(_ context.Context, r *fake.Run) agent.Done { return r.Success("", `{"x":1}`) },
		"bad": func(context.Context, *fake.Run) agent.Done {
			return agent.Done{Status: "error", Failure: &agent.Failure{Error: "ValueError"}}
		},
	}
	service := func(_ context.Context, runID string, keys []string) (map[string]string, error) {
		if keys[0] == "broken" {
			return nil, errors.New("the service is down")
		}
		return map[string]string{keys[0]: "https://feedback/" + keys[0]}, nil
	}
	s := newWorld(t).start("a", 4, graphs, func(c *engine.Config) { c.Feedback = service })
	for _, c := range []struct {
		graph  string
		keys   []string
		frame  string // "" = none
		result string
	}{
		{"good", []string{"k"}, `{"k":"https://feedback/k"}`, `{"__feedback__":{"k":"https://feedback/k"},"x":1}`},
		{"good", nil, "", `{"x":1}`},
		{"good", []string{"broken"}, "", `{"x":1}`},
		{"bad", []string{"k"}, "", `{"__error__":{"error":"ValueError","message":""}}`},
	} {
		request := engine.RunRequest{AssistantID: c.graph, Stateless: true, Keep: true, FeedbackKeys: c.keys}
		_, stream, err := s.StreamRun(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		got, list := "", frames(t, stream)
		for i, f := range list {
			if f.Event == "feedback" {
				got += string(f.Data)
				if i != len(list)-2 {
					t.Errorf("%s %v: the frame is at %d of %d, want it right before the end", c.graph, c.keys, i, len(list))
				}
			}
		}
		if got != c.frame {
			t.Errorf("%s %v: got the frame %q, want %q", c.graph, c.keys, got, c.frame)
		}
		_, waiter, err := s.WaitRun(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		res, err := waiter.Result(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if body := string(res.Body); !sameJSON(body, c.result) {
			t.Errorf("%s %v: got the result %s, want %s", c.graph, c.keys, body, c.result)
		}
	}
}

func sameJSON(a, b string) bool {
	var x, y map[string]any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	rawX, _ := json.Marshal(x)
	rawY, _ := json.Marshal(y)
	return string(rawX) == string(rawY)
}
