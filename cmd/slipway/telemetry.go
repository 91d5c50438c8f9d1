package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/store/postgres"
	"github.com/slipway-dev/slipway/store/sqlite"
	"github.com/slipway-dev/slipway/telemetry"
)

// counting is how agent servers count traces, and what happens to the counts of one whose data go.
type counting struct {
	interval time.Duration
	last     func(ctx context.Context, deploymentID string) error // nil = nothing
}

// openSender opens the sender of telemetry, and the log that leads through it.
func (p *platform) openSender(where installation, s upSettings, salt []byte, log *slog.Logger) (err error) {
	t := s.telemetry
	p.sender, err = telemetry.Open(telemetry.Config{
		Dir: where.path("telemetry"), URL: t.url, Key: t.license, Version: version, Switches: t.switches, Off: t.off, Salt: salt,
		Refresh: t.refresh, Export: t.export, UsageEvery: t.usage, Slow: t.slow,
		RetryMax: min(max(t.interval, 2*time.Second), 5*time.Minute), // waiting longer than an interval gains nothing
		Now:      now, Log: log, Measure: p.measure,
		Usage: func(ctx context.Context) (map[string]int64, error) { return p.control.UsageMeasures(ctx) },
	})
	if err != nil {
		return err
	}
	p.log = slog.New(p.sender.Handler(log.Handler()))
	return nil
}

// openMeter makes what reads the agent servers' counts, where they are sent.
func (p *platform) openMeter(ctx context.Context, where installation, s upSettings) error {
	if !p.sender.Online() {
		return nil
	}
	organisation, err := p.control.OrganisationID(ctx)
	if err != nil {
		return err
	}
	p.meter = control.NewMeter(control.MeterConfig{
		Every: s.telemetry.interval, Since: p.sender.OnlineSince(), Organisation: organisation,
	}, p.store, &storedCounts{where: where, databaseURL: s.databaseURL}, p.sender, now, p.log)
	return nil
}

func (p *platform) counting(s upSettings) counting {
	by := counting{interval: s.telemetry.interval}
	if p.meter != nil {
		by.last = p.meter.Last
	}
	return by
}

// measure tells how the database, the queues and the builds stand.
func (p *platform) measure(ctx context.Context) ([]telemetry.Metric, error) {
	start := time.Now()
	queues, err := p.control.Queues(ctx)
	if err != nil {
		return nil, err
	}
	system := map[string]string{"db.system.name": "sqlite"}
	if _, ok := p.store.(*postgres.ControlStore); ok {
		system["db.system.name"] = "postgresql"
	}
	out := []telemetry.Metric{{
		Name: "platform_database_read_duration", Unit: "seconds", Description: "Time of one read of the records", Value: time.Since(start).Seconds(), Attributes: system,
	}}
	for status, n := range queues {
		out = append(out, telemetry.Metric{
			Name: "platform_queue_revisions", Unit: "1", Description: "Revisions on their way, by status", Value: float64(n),
			Attributes: map[string]string{"queue": string(status)},
		})
	}
	return append(out, p.builds.metrics()...), nil
}

// storedCounts reads what agent servers counted where they keep their data.
type storedCounts struct {
	where       installation
	databaseURL string
	mu          sync.Mutex
}

// WithCounts implements control.CountSource.
func (c *storedCounts) WithCounts(ctx context.Context, deploymentID string, fn func(agent.TraceCounts) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	store, err := c.open(ctx, deploymentID)
	if err != nil || store == nil {
		return err
	}
	return errors.Join(fn(store), store.Close())
}

// open opens a deployment's store; nil if there is none.
func (c *storedCounts) open(ctx context.Context, deploymentID string) (agentStore, error) {
	if c.databaseURL != "" {
		found, err := postgres.HasAgent(ctx, c.databaseURL, agentSchema(deploymentID))
		if err != nil || !found {
			return nil, err
		}
		return postgres.OpenAgent(ctx, c.databaseURL, agentSchema(deploymentID))
	}
	path := c.where.path("deployments", deploymentID, "agent.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return sqlite.OpenAgent(path)
}
