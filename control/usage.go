package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/beacon"
)

// CountSource reaches what the agent servers of a deployment counted, whether they run or not.
type CountSource interface {
	// WithCounts calls fn with the deployment's counts, and not at all where it has none. Calls for one deployment do not
	// overlap.
	WithCounts(ctx context.Context, deploymentID string, fn func(agent.TraceCounts) error) error
}

// MeterConfig are the settings of a Meter.
type MeterConfig struct {
	Every time.Duration // the interval in which traces are counted; how often the meter reads
	Since time.Time     // what was counted in intervals that ended before is never sent
	// Organisation is the id that the installation's transactions bear.
	Organisation string
}

// Meter turns what agent servers count into trace transactions (spec 4.5). A count is taken from an agent server's store only
// when the collector has its transaction, and a transaction's id says which count it is: whatever is killed in between, no
// trace is lost and none counts twice.
type Meter struct {
	cfg    MeterConfig
	store  slipway.Store
	counts CountSource
	outbox beacon.Outbox
	clock  slipway.Clock
	log    *slog.Logger
}

// NewMeter returns a meter; Run makes it read.
func NewMeter(cfg MeterConfig, store slipway.Store, counts CountSource, outbox beacon.Outbox, clock slipway.Clock, log *slog.Logger) *Meter {
	return &Meter{cfg: cfg, store: store, counts: counts, outbox: outbox, clock: clock, log: log}
}

const (
	// countsAtOnce is how many counts are read of a deployment at a time.
	countsAtOnce = 1000
	// meterGrace is how long after an interval's end it is read at the latest: runs that end with it may still be on their way.
	meterGrace = 5 * time.Second
)

// Run reads after the end of every interval, and once at the start, until ctx ends.
func (m *Meter) Run(ctx context.Context) error {
	for {
		if err := m.Read(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn("traces not metered; they stay where they were counted", "error", err.Error())
		}
		now := m.clock()
		every := max(m.cfg.Every, time.Second)
		next := now.Truncate(every).Add(every).Add(min(meterGrace, every/4))
		timer := time.NewTimer(next.Sub(now))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// Read takes what was counted in intervals that are over, of every deployment. One that cannot be read does not keep the
// others waiting.
func (m *Meter) Read(ctx context.Context) error {
	list, err := m.deployments(ctx, slipway.DeploymentQuery{Statuses: slipway.DeploymentStatuses()})
	if err != nil {
		return err
	}
	var failed []error
	for _, d := range list {
		if err := m.read(ctx, d, m.clock(), countsAtOnce); err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(failed...)
}

// Last takes everything that was counted of a deployment whose data are about to be destroyed: also of the interval that is
// not over. When it returns without an error nothing of it is needed any more.
func (m *Meter) Last(ctx context.Context, deploymentID string) error {
	list, err := m.deployments(ctx, slipway.DeploymentQuery{IDs: []string{deploymentID}, Statuses: slipway.DeploymentStatuses()})
	if err != nil || len(list) == 0 {
		return err
	}
	return m.read(ctx, list[0], m.clock().Add(m.cfg.Every), math.MaxInt32)
}

func (m *Meter) deployments(ctx context.Context, q slipway.DeploymentQuery) (list []slipway.Deployment, err error) {
	err = m.store.View(ctx, func(tx slipway.Tx) (err error) {
		list, err = tx.Deployments(q)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("meter traces: %w", err)
	}
	return list, nil
}

func (m *Meter) read(ctx context.Context, d slipway.Deployment, until time.Time, most int) error {
	err := m.counts.WithCounts(ctx, d.ID, func(counts agent.TraceCounts) error {
		list, err := counts.SealCounts(ctx, until, most)
		if err != nil || len(list) == 0 {
			return err
		}
		project, err := m.project(ctx, d)
		if err != nil {
			return err
		}
		return m.take(ctx, d, project, counts, list)
	})
	if err != nil {
		return fmt.Errorf("meter deployment %s: %w", d.ID, err)
	}
	return nil
}

// take queues the transactions of counts and drops the counts that need not be queued any more.
func (m *Meter) take(ctx context.Context, d slipway.Deployment, project string, counts agent.TraceCounts, list []agent.TraceCount) error {
	var fresh []beacon.TraceTransaction
	var over []int64
	ids, seqs := []string{}, map[string]int64{}
	for _, n := range list {
		if !n.To.After(m.cfg.Since) {
			over = append(over, n.Seq)
			continue
		}
		t := transaction(d, project, m.cfg.Organisation, n)
		ids, seqs[t.ID] = append(ids, t.ID), n.Seq
		fresh = append(fresh, t)
	}
	delivered := m.outbox.Delivered(ids)
	for id := range delivered {
		over = append(over, seqs[id])
	}
	if err := m.outbox.Add(ctx, fresh); err != nil {
		return err
	}
	if err := counts.DropCounts(ctx, over); err != nil {
		return err
	}
	for id := range delivered {
		m.outbox.Forget([]string{id})
	}
	return nil
}

// transaction is what is sent of a count. Its id names deployment (which has one project),
// interval and the count's place in its store, so
// that the same count always is the same transaction.
func transaction(d slipway.Deployment, project, organisation string, n agent.TraceCount) beacon.TraceTransaction {
	return beacon.TraceTransaction{
		ID:       beacon.NameID("traces", d.ID, n.From.UTC().Format(time.RFC3339Nano), n.To.UTC().Format(time.RFC3339Nano), fmt.Sprint(n.Seq)),
		TenantID: d.TenantID, SessionID: project, OrganizationID: organisation, TraceCount: n.Traces,
		StartInsertionTime: n.First, EndInsertionTime: n.Last, StartIntervalTime: n.From, EndIntervalTime: n.To,
		Status: beacon.StatusPending, Type: beacon.TypeTraces,
	}
}

// project is the tracing project that a deployment's traces are counted under (spec 2.1).
func (m *Meter) project(ctx context.Context, d slipway.Deployment) (id string, err error) {
	err = m.store.View(ctx, func(tx slipway.Tx) error {
		p, err := tx.TracingProjectByName(d.TenantID, d.Name)
		if slipway.ErrorCode(err) == slipway.CodeNotFound {
			id = d.ID
			return nil
		}
		id = p.ID
		return err
	})
	return id, err
}

// activeKeys is how recently a key was used that counts as active in usage snapshots.
const activeKeys = 30 * 24 * time.Hour

// UsageMeasures counts what the installation holds, for its usage snapshot (spec 4.5): numbers only. Of what this platform
// has no notion of there are none.
func (s *Service) UsageMeasures(ctx context.Context) (map[string]int64, error) {
	m := map[string]int64{}
	for _, name := range beacon.Measures() {
		m[name] = 0
	}
	err := s.store.View(ctx, func(tx slipway.Tx) error {
		for name := range m {
			m[name] = 0
		}
		tenants, err := tx.Tenants(slipway.TenantQuery{})
		if err != nil {
			return err
		}
		m["workspaces"] = int64(len(tenants))
		deployments, err := tx.Deployments(slipway.DeploymentQuery{})
		if err != nil {
			return err
		}
		m["deployments"] = int64(len(deployments))
		if err := s.countKeys(tx, "", m); err != nil {
			return err
		}
		for _, t := range tenants {
			projects, err := tx.TracingProjects(slipway.TracingProjectQuery{TenantID: t.ID})
			if err != nil {
				return err
			}
			m["projects"] += int64(len(projects))
			if err := s.countKeys(tx, t.ID, m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("measure usage: %w", err)
	}
	return m, nil
}

func (s *Service) countKeys(tx slipway.Tx, owner string, m map[string]int64) error {
	keys, err := tx.APIKeys(slipway.APIKeyQuery{TenantID: owner})
	if err != nil {
		return err
	}
	now := s.clock()
	for _, k := range keys {
		if !k.RevokedAt.IsZero() {
			continue
		}
		m["api_keys"]++
		if now.Sub(k.LastUsedAt) < activeKeys {
			m["active_pats_30d"]++
		}
	}
	return nil
}

// Queues tells how many revisions wait for a builder, are built, wait for a data plane and are deployed.
func (s *Service) Queues(ctx context.Context) (map[slipway.RevisionStatus]int, error) {
	out := map[slipway.RevisionStatus]int{slipway.AwaitingBuild: 0, slipway.Building: 0, slipway.AwaitingDeploy: 0, slipway.Deploying: 0}
	var statuses []slipway.RevisionStatus
	for st := range out {
		statuses = append(statuses, st)
	}
	err := s.store.View(ctx, func(tx slipway.Tx) error {
		list, err := tx.Revisions(slipway.RevisionQuery{Statuses: statuses})
		clear(out)
		for _, st := range statuses {
			out[st] = 0
		}
		for _, r := range list {
			out[r.Status]++
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("measure queues: %w", err)
	}
	return out, nil
}

// OrganisationID is the id that telemetry names the installation by: the same as long as its first tenant is there.
func (s *Service) OrganisationID(ctx context.Context) (id string, err error) {
	err = s.store.View(ctx, func(tx slipway.Tx) error {
		first, err := tx.Tenants(slipway.TenantQuery{Limit: 1})
		if err == nil && len(first) > 0 {
			id = beacon.NameID("organisation", first[0].ID)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("name the organisation: %w", err)
	}
	return id, nil
}

// MayReadTelemetry says whether a principal may see what the installation sends: it concerns all tenants.
func (s *Service) MayReadTelemetry(who slipway.Principal) error {
	return authorizeOrganisation(who, mayReadTelemetry)
}
