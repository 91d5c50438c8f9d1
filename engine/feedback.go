package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// Feedback makes addresses at which users say what they think of a run, one for each key.
type Feedback func(ctx context.Context, runID string, keys []string) (map[string]string, error)

// feedbackLimit bounds how long a run's end waits for its feedback addresses, which are asked for when it begins.
const feedbackLimit = 5 * time.Second

// askFeedback begins to ask for the addresses of a run, if its client wants some and there is a service.
func (x *execution) askFeedback() {
	keys := x.run.Kwargs.FeedbackKeys
	if x.e.cfg.Feedback == nil || len(keys) == 0 {
		return
	}
	asked := make(chan map[string]string, 1)
	x.feedback = asked
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), feedbackLimit)
		defer cancel()
		urls, err := x.e.cfg.Feedback(ctx, x.run.ID, keys)
		if err != nil {
			x.e.log.Warn("a run has no feedback addresses", "run_id", x.run.ID, "error", err)
		}
		asked <- urls
	}()
}

// tellFeedback sends the addresses to the run's readers and returns them; nil without any.
func (x *execution) tellFeedback() map[string]string {
	if x.feedback == nil {
		return nil
	}
	urls := <-x.feedback
	if len(urls) == 0 {
		return nil
	}
	if raw, err := json.Marshal(urls); err == nil {
		x.t.publish("feedback", raw)
	}
	return urls
}

// withFeedback adds the addresses to a result that is an object (reference 4.3).
func withFeedback(body json.RawMessage, outcome agent.RunStatus, urls map[string]string) json.RawMessage {
	if len(urls) == 0 || outcome != agent.RunSuccess || len(body) == 0 || body[0] != '{' {
		return body
	}
	result := parse(body)
	result["__feedback__"], _ = json.Marshal(urls) // texts always marshal
	return result.json()
}
