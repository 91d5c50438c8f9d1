package fake_test

import (
	"context"
	"testing"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/worker/fake"
	"github.com/slipway-dev/slipway/worker/workertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	workertest.Run(t, func(*testing.T) agent.Workers {
		return &fake.Pool{OnStart: func(p *fake.Pool) {
			p.Add(4, map[string]fake.Graph{
				"echo": func(_ context.Context, r *fake.Run) agent.Done {
					input := string(r.Job.Run.Kwargs.Input)
					r.Chunk("values", input)
					return r.Success("", input)
				},
				"fail": func(context.Context, *fake.Run) agent.Done { return fake.Failed("Error", "no") },
				"hang": func(ctx context.Context, _ *fake.Run) agent.Done {
					<-ctx.Done()
					return fake.Cancelled()
				},
			})
		}}
	})
}
