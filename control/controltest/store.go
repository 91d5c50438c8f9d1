// Package controltest holds an in-memory slipway.Store for tests that need no disk, and a service wired to it.
package controltest

import (
	"context"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
)

// Store is a slipway.Store in memory. A failed Update leaves no trace.
type Store struct {
	mu     sync.Mutex
	state  state
	before func()
}

// BeforeUpdate calls fn before each transaction that writes, outside of any lock; nil = nothing.
func (s *Store) BeforeUpdate(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = fn
}

type state struct {
	deployments map[string]slipway.Deployment
	revisions   map[string]slipway.Revision
	events      []slipway.RevisionEvent
	sets        map[string]slipway.SecretSet
	logs        []slipway.LogEntry
	uploads     map[string]slipway.Upload
	tenants     map[string]slipway.Tenant
	keys        map[string]slipway.APIKey
	projects    map[string]slipway.TracingProject
	audit       []slipway.AuditEntry

	integrations map[string]slipway.Integration
	deliveries   map[[2]string]time.Time // by integration and key
	notes        map[string]slipway.StatusNote
	listeners    map[string]slipway.Listener
	metrics      map[string]slipway.Metrics
	claims       map[string]slipway.IdempotencyClaim
	webhooks     map[string]slipway.Webhook
	sent         map[string]slipway.Delivery
	artifacts    map[string]slipway.Artifact
	turns        map[string]time.Time
}

var _ slipway.Store = (*Store)(nil)

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{state: state{
		deployments: map[string]slipway.Deployment{}, revisions: map[string]slipway.Revision{}, sets: map[string]slipway.SecretSet{},
		uploads: map[string]slipway.Upload{}, tenants: map[string]slipway.Tenant{}, keys: map[string]slipway.APIKey{},
		projects: map[string]slipway.TracingProject{}, integrations: map[string]slipway.Integration{},
		deliveries: map[[2]string]time.Time{}, notes: map[string]slipway.StatusNote{},
		listeners: map[string]slipway.Listener{}, metrics: map[string]slipway.Metrics{},
		claims:   map[string]slipway.IdempotencyClaim{},
		webhooks: map[string]slipway.Webhook{}, sent: map[string]slipway.Delivery{},
		artifacts: map[string]slipway.Artifact{}, turns: map[string]time.Time{},
	}}
}

func (s state) clone() state {
	return state{
		maps.Clone(s.deployments), maps.Clone(s.revisions), slices.Clone(s.events), maps.Clone(s.sets), slices.Clone(s.logs),
		maps.Clone(s.uploads), maps.Clone(s.tenants), maps.Clone(s.keys), maps.Clone(s.projects), slices.Clone(s.audit),
		maps.Clone(s.integrations), maps.Clone(s.deliveries), maps.Clone(s.notes),
		maps.Clone(s.listeners), maps.Clone(s.metrics), maps.Clone(s.claims),
		maps.Clone(s.webhooks), maps.Clone(s.sent),
		maps.Clone(s.artifacts), maps.Clone(s.turns),
	}
}

// Update implements slipway.Store.
func (s *Store) Update(ctx context.Context, fn func(tx slipway.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		before()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	work := tx{s.state.clone()}
	if err := fn(&work); err != nil {
		return err
	}
	s.state = work.state
	return nil
}

// View implements slipway.Store.
func (s *Store) View(ctx context.Context, fn func(tx slipway.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	snapshot := tx{s.state.clone()}
	s.mu.Unlock()
	return fn(&snapshot)
}

// AppendLogs implements slipway.Store.
func (s *Store) AppendLogs(_ context.Context, entries []slipway.LogEntry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		e.Seq = int64(len(s.state.logs) + 1)
		s.state.logs = append(s.state.logs, e)
	}
	return nil
}

// Audit returns every audit entry.
func (s *Store) Audit() []slipway.AuditEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.state.audit)
}

type tx struct{ state }

func none(what, id string) error {
	return slipway.Errorf(slipway.CodeNotFound, "%s %s does not exist", what, id)
}

func find[T any](all map[string]T, what, id string) (T, error) {
	found, ok := all[id]
	if !ok {
		return found, none(what, id)
	}
	return found, nil
}

func (t *tx) Deployment(tenantID, id string) (slipway.Deployment, error) {
	d, err := find(t.deployments, "deployment", id)
	if err == nil && tenantID != "" && d.TenantID != tenantID {
		return slipway.Deployment{}, none("deployment", id)
	}
	return d, err
}

func (t *tx) DeploymentByName(tenantID, name string) (slipway.Deployment, error) {
	for _, d := range t.deployments {
		if d.Name == name && d.TenantID == tenantID {
			return d, nil
		}
	}
	return slipway.Deployment{}, none("deployment", name)
}

func (t *tx) Deployments(q slipway.DeploymentQuery) ([]slipway.Deployment, error) {
	var out []slipway.Deployment
	for _, d := range t.deployments {
		if matches(q, d) {
			out = append(out, d)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if exact := out[i].Name == q.NameContains; exact != (out[j].Name == q.NameContains) {
			return exact
		}
		return out[i].ID > out[j].ID
	})
	return cut(out, q.Limit, q.Offset), nil
}

func (t *tx) CountDeployments(q slipway.DeploymentQuery) (int, error) {
	q.Limit, q.Offset = 0, 0
	found, err := t.Deployments(q)
	return len(found), err
}

func (t *tx) DueDeployment() (slipway.Deployment, error) {
	var due slipway.Deployment
	for _, d := range t.deployments {
		if at := d.Due(); !at.IsZero() && (due.ID == "" || at.Before(due.Due())) {
			due = d
		}
	}
	if due.ID == "" {
		return due, none("deployment", "due")
	}
	return due, nil
}

func matches(q slipway.DeploymentQuery, d slipway.Deployment) bool {
	statuses := len(q.Statuses) == 0 && d.Status != slipway.DeploymentAwaitingDelete || slices.Contains(q.Statuses, string(d.Status))
	return statuses && (q.TenantID == "" || q.TenantID == d.TenantID) && (q.Name == "" || q.Name == d.Name) &&
		strings.Contains(strings.ToLower(d.Name), strings.ToLower(q.NameContains)) &&
		(len(q.IDs) == 0 || slices.Contains(q.IDs, d.ID)) && (q.ImageVersion == "" || q.ImageVersion == d.ImageVersion) &&
		(q.Type == "" || is(d.SourceConfig.DeploymentType, q.Type)) && (q.Integration == "" || is(d.SourceConfig.IntegrationID, q.Integration)) &&
		(q.Listener == nil || *q.Listener == d.ListenerID()) && (q.Remote == nil || *q.Remote == (d.ListenerID() != ""))
}

func is(value *string, want string) bool { return value != nil && *value == want }

func cut[T any](all []T, limit, offset int) []T {
	all = all[min(offset, len(all)):]
	if limit > 0 {
		all = all[:min(limit, len(all))]
	}
	return all
}

func (t *tx) PutDeployment(d slipway.Deployment) error {
	for _, other := range t.deployments {
		if other.ID != d.ID && other.TenantID == d.TenantID && other.Name == d.Name {
			return slipway.Errorf(slipway.CodeConflict, "the name %q is taken", d.Name)
		}
	}
	t.deployments[d.ID] = d
	return nil
}

func (t *tx) PurgeDeployment(id string) error {
	delete(t.deployments, id)
	maps.DeleteFunc(t.notes, func(_ string, n slipway.StatusNote) bool { return t.revisions[n.RevisionID].DeploymentID == id })
	delete(t.metrics, id)
	maps.DeleteFunc(t.revisions, func(_ string, r slipway.Revision) bool { return r.DeploymentID == id })
	maps.DeleteFunc(t.sets, func(_ string, s slipway.SecretSet) bool { return s.DeploymentID == id })
	maps.DeleteFunc(t.uploads, func(_ string, u slipway.Upload) bool { return u.DeploymentID == id })
	maps.DeleteFunc(t.keys, func(_ string, k slipway.APIKey) bool { return k.DeploymentID == id })
	maps.DeleteFunc(t.projects, func(_ string, p slipway.TracingProject) bool { return p.DeploymentID == id })
	t.logs = slices.DeleteFunc(t.logs, func(e slipway.LogEntry) bool { return e.DeploymentID == id })
	return nil
}

func (t *tx) Revision(tenantID, deploymentID, id string) (slipway.Revision, error) {
	r, err := find(t.revisions, "revision", id)
	if err == nil && (tenantID != "" && r.TenantID != tenantID || r.DeploymentID != deploymentID) {
		return slipway.Revision{}, none("revision", id)
	}
	return r, err
}

func (t *tx) Revisions(q slipway.RevisionQuery) ([]slipway.Revision, error) {
	var out []slipway.Revision
	for _, r := range t.revisions {
		if (q.TenantID == "" || q.TenantID == r.TenantID) && (q.DeploymentID == "" || q.DeploymentID == r.DeploymentID) &&
			(len(q.Statuses) == 0 || slices.Contains(q.Statuses, r.Status)) {
			out = append(out, r)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Number > out[j].Number })
	return cut(out, q.Limit, q.Offset), nil
}

func (t *tx) PutRevision(r slipway.Revision) error {
	if _, ok := t.deployments[r.DeploymentID]; !ok {
		return none("deployment", r.DeploymentID)
	}
	t.revisions[r.ID] = r
	return nil
}

func (t *tx) AppendRevisionEvent(e slipway.RevisionEvent) error {
	e.Seq = int64(len(t.events) + 1)
	t.events = append(t.events, e)
	return nil
}

func (t *tx) RevisionEvents(revisionID string) ([]slipway.RevisionEvent, error) {
	var out []slipway.RevisionEvent
	for _, e := range t.events {
		if e.RevisionID == revisionID {
			out = append(out, e)
		}
	}
	return out, nil
}

func (t *tx) PutSecretSet(s slipway.SecretSet) error {
	if _, ok := t.deployments[s.DeploymentID]; !ok {
		return none("deployment", s.DeploymentID)
	}
	t.sets[s.ID] = s
	return nil
}

func (t *tx) SecretSet(id string) (slipway.SecretSet, error) { return find(t.sets, "secret set", id) }

func (t *tx) SecretSets(ids []string) ([]slipway.SecretSet, error) {
	var out []slipway.SecretSet
	for _, id := range ids {
		if set, ok := t.sets[id]; ok {
			out = append(out, set)
		}
	}
	return out, nil
}

func (t *tx) Logs(q slipway.LogQuery) ([]slipway.LogEntry, error) {
	all := slices.Clone(t.logs)
	if q.Descending {
		slices.Reverse(all)
	}
	var out []slipway.LogEntry
	for _, e := range all {
		if logMatches(q, e) {
			out = append(out, e)
		}
	}
	return cut(out, q.Limit, 0), nil
}

func logMatches(q slipway.LogQuery, e slipway.LogEntry) bool {
	behind := q.After == 0 || !q.Descending && e.Seq > q.After || q.Descending && e.Seq < q.After
	return behind && e.DeploymentID == q.DeploymentID && e.Kind == q.Kind && (q.RevisionID == "" || q.RevisionID == e.RevisionID) &&
		(q.From.IsZero() || !e.At.Before(q.From)) && (q.To.IsZero() || !e.At.After(q.To)) && (q.Level == "" || q.Level == e.Level) &&
		strings.Contains(strings.ToLower(e.Message), strings.ToLower(q.Contains)) &&
		(q.RunID == "" || strings.Contains(strings.ToLower(e.Message), strings.ToLower("run_id="+q.RunID)))
}

func (t *tx) PutUpload(u slipway.Upload) error {
	t.uploads[u.ID] = u
	return nil
}

func (t *tx) Upload(id string) (slipway.Upload, error) { return find(t.uploads, "upload", id) }

func (t *tx) UploadByPath(deploymentID, objectPath string) (slipway.Upload, error) {
	for _, u := range t.uploads {
		if u.DeploymentID == deploymentID && u.ObjectPath == objectPath {
			return u, nil
		}
	}
	return slipway.Upload{}, none("upload", objectPath)
}

func (t *tx) PutTracingProject(p slipway.TracingProject) error {
	t.projects[p.ID] = p
	return nil
}

func (t *tx) TracingProject(tenantID, id string) (slipway.TracingProject, error) {
	p, err := find(t.projects, "tracing project", id)
	if err == nil && tenantID != "" && p.TenantID != tenantID {
		return slipway.TracingProject{}, none("tracing project", id)
	}
	return p, err
}

func (t *tx) TracingProjects(q slipway.TracingProjectQuery) ([]slipway.TracingProject, error) {
	var out []slipway.TracingProject
	for _, p := range t.projects {
		if p.TenantID == q.TenantID && (q.Name == "" || q.Name == p.Name) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b slipway.TracingProject) int { return strings.Compare(b.ID, a.ID) })
	return cut(out, q.Limit, q.Offset), nil
}

func (t *tx) TracingProjectByName(tenantID, name string) (slipway.TracingProject, error) {
	for _, p := range t.projects {
		if p.TenantID == tenantID && p.Name == name {
			return p, nil
		}
	}
	return slipway.TracingProject{}, none("tracing project", name)
}
