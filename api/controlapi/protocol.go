package controlapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
	"github.com/slipway-dev/slipway/control"
)

// ListenerState is what should run on a listener's data plane (control-plane reference 8). It holds secrets in clear.
type ListenerState struct {
	Cursor      string              `json:"cursor" required:"true" doc:"sent with the next call, which then waits for a change"`
	Partial     bool                `json:"partial" required:"true" doc:"whether only what changed since the cursor is in it; everything else is as it was"`
	Deployments []DesiredDeployment `json:"deployments" required:"true" nullable:"false" doc:"the deployments; in a state that is not partial all of them"`
	Absent      []string            `json:"absent" required:"true" nullable:"false" doc:"in a partial state: ids of deployments that are none of this listener's any more"`
}

// DesiredDeployment is what should run of one deployment.
type DesiredDeployment struct {
	DeploymentID     string           `json:"deployment_id" required:"true" format:"uuid" doc:"id of the deployment"`
	TenantID         string           `json:"tenant_id" required:"true" format:"uuid" doc:"the tenant that owns it"`
	Name             string           `json:"name" required:"true" doc:"name of the deployment"`
	ClusterNamespace *string          `json:"cluster_namespace" required:"true" doc:"where it is placed; null = the listener's own choice"`
	Generation       int64            `json:"generation" required:"true" doc:"sent back with every report"`
	Active           *DesiredRevision `json:"active" doc:"the revision that serves; null = none yet"`
	Candidate        *DesiredRevision `json:"candidate" doc:"the revision to bring up beside it; null = none"`
	Retired          bool             `json:"retired" required:"true" doc:"keep no workload and route nothing, keep the data, then report gone; it may be restored"`
	Deleted          bool             `json:"deleted" required:"true" doc:"tear everything down, then report gone"`
}

// DesiredRevision is all that is needed to run a revision.
type DesiredRevision struct {
	RevisionID       string                `json:"revision_id" required:"true" format:"uuid" doc:"id of the revision"`
	Number           int64                 `json:"number" required:"true" doc:"its number within the deployment"`
	ArtifactDigest   string                `json:"artifact_digest" required:"true" doc:"the built artifact; empty for an image"`
	Image            *string               `json:"image" required:"true" doc:"the image to run; null for a built artifact"`
	Env              map[string]string     `json:"env" required:"true" doc:"environment of the graphs' process; secret"`
	Redact           []string              `json:"redact" required:"true" nullable:"false" doc:"values that must not reach a log line; secret"`
	Resources        *slipway.ResourceSpec `json:"resources" doc:"resource spec after defaults; null = the data plane's own"`
	SecretReferences []SecretReference     `json:"secret_references" required:"true" nullable:"false" doc:"variables to fill from the cluster's own secrets"`
	Broken           *string               `json:"broken" required:"true" doc:"why it cannot be started; null = it can"`
}

// ListenerReport is the body of POST .../reports: what became of a revision or a deployment.
type ListenerReport struct {
	DeploymentID string  `json:"deployment_id" required:"true" format:"uuid" doc:"id of the deployment"`
	Generation   int64   `json:"generation" required:"true" doc:"of the desired state that was acted on; an older one is refused with 409"`
	RevisionID   *string `json:"revision_id" format:"uuid" doc:"the revision; not with gone"`
	Status       *string `json:"status" enum:"DEPLOYING,DEPLOYED,DEPLOY_FAILED" doc:"what became of it; not with gone"`
	Reason       *string `json:"reason" maxLength:"16384" doc:"one sentence, with exit code and last log lines where there are any"`
	Probe        *string `json:"probe" maxLength:"4096" doc:"the last answer of the health check"`
	Gone         bool    `json:"gone" doc:"the workloads of a deleted deployment are down"`
}

// ListenerLogs is the body of POST .../logs.
type ListenerLogs struct {
	Entries []ListenerLog `json:"entries" required:"true" nullable:"false" maxItems:"1000" doc:"lines in order, redacted"`
}

// ListenerLog is one line of a running agent server.
type ListenerLog struct {
	DeploymentID string    `json:"deployment_id" required:"true" format:"uuid" doc:"id of the deployment"`
	RevisionID   string    `json:"revision_id" required:"true" format:"uuid" doc:"id of the revision"`
	Timestamp    time.Time `json:"timestamp" required:"true" doc:"when it was written"`
	Level        string    `json:"level" required:"true" enum:"DEBUG,INFO,WARNING,ERROR,CRITICAL" doc:"how serious it is"`
	Message      string    `json:"message" required:"true" doc:"the line; beyond 16384 bytes it is cut off"`
}

// ListenerMetrics is the body of POST .../metrics.
type ListenerMetrics struct {
	Samples []DeploymentMetrics `json:"samples" required:"true" nullable:"false" maxItems:"1000" doc:"one per deployment"`
}

// DeploymentMetrics is what a listener last measured of a deployment.
type DeploymentMetrics struct {
	DeploymentID  string    `json:"deployment_id" required:"true" format:"uuid" doc:"id of the deployment"`
	RevisionID    *string   `json:"revision_id" format:"uuid" doc:"the revision that was measured; null = all that runs"`
	Timestamp     time.Time `json:"timestamp" required:"true" doc:"when it was measured"`
	Replicas      int       `json:"replicas" required:"true" minimum:"0" doc:"replicas that should run"`
	ReadyReplicas int       `json:"ready_replicas" minimum:"0" doc:"replicas that answer"`
	Restarts      int       `json:"restarts" minimum:"0" doc:"restarts since the revision was started"`
	CPUCores      float64   `json:"cpu_cores" minimum:"0" doc:"cores in use by all replicas together"`
	MemoryMB      float64   `json:"memory_mb" minimum:"0" doc:"memory in use by all replicas together"`
}

// Accepted says how much of a delivery was kept; the rest belongs to deployments that are not the listener's any more.
type Accepted struct {
	Accepted int `json:"accepted" required:"true" doc:"entries that were kept"`
	Dropped  int `json:"dropped" required:"true" doc:"entries of deployments that are not this listener's"`
}

// ListenerCall is what every call of the listener protocol carries.
type ListenerCall struct {
	ListenerPath
	Version string `header:"Slipway-Listener-Version" maxLength:"128" doc:"version of the program that listens; it becomes the listener's version"`
}

type metricsOutput struct {
	Body struct {
		Metrics *DeploymentMetrics `json:"metrics" doc:"null while nothing was measured"`
	}
}

type stateInput struct {
	ListenerCall
	Cursor string `query:"cursor" maxLength:"200" doc:"of the state the listener has; without one the whole state is answered at once"`
	Wait   int    `query:"wait" minimum:"0" maximum:"50" default:"25" doc:"seconds to wait for a change"`
}

type reportInput struct {
	ListenerCall
	Body ListenerReport
}

type listenerLogsInput struct {
	ListenerCall
	Body ListenerLogs
}

type listenerMetricsInput struct {
	ListenerCall
	Body ListenerMetrics
}

func (a *api) protocol() {
	one := listenersPath + "/{listener_id}"
	listening := func(op huma.Operation) huma.Operation { return reaching(control.ReachListener, op) }
	huma.Register(a.huma, listening(operation("get_listener_state", http.MethodGet, one+"/state", "Fetch what should run on a listener's data plane", 400, 404)), a.listenerState)
	huma.Register(a.huma, listening(operation("report_listener_status", http.MethodPost, one+"/reports", "Report what became of a revision or a deployment", 400, 404, 409)), a.listenerReport)
	huma.Register(a.huma, listening(operation("append_listener_logs", http.MethodPost, one+"/logs", "Deliver log lines of running agent servers", 400, 404)), a.listenerLogs)
	huma.Register(a.huma, listening(operation("put_listener_metrics", http.MethodPost, one+"/metrics", "Deliver what was measured of deployments", 400, 404)), a.listenerMetrics)
	huma.Register(a.huma, operation("get_deployment_metrics", http.MethodGet, deploymentsPath+"/{deployment_id}/metrics", "Read what was last measured of a deployment", 404), a.deploymentMetrics)
}

// feed lets the caller in as the listener it says to be.
func (a *api) feed(ctx context.Context, in ListenerCall) (*control.ListenerFeed, error) {
	f, err := a.svc.ListenerFeed(ctx, control.Caller{Principal: authn.Principal(ctx), ListenerID: in.ListenerID, Version: in.Version})
	if err != nil {
		return nil, a.problem(err)
	}
	return f, nil
}

func (a *api) listenerState(ctx context.Context, in *stateInput) (*struct{ Body ListenerState }, error) {
	f, err := a.feed(ctx, in.ListenerCall)
	if err != nil {
		return nil, err
	}
	state, err := f.Poll(ctx, in.Cursor, time.Duration(in.Wait)*time.Second)
	if err != nil {
		return nil, a.problem(err)
	}
	return &struct{ Body ListenerState }{listenerState(state)}, nil
}

func (a *api) listenerReport(ctx context.Context, in *reportInput) (*struct{}, error) {
	f, err := a.feed(ctx, in.ListenerCall)
	if err != nil {
		return nil, err
	}
	report, err := in.Body.domain()
	if err == nil {
		err = f.Report(ctx, report)
	}
	if err != nil {
		return nil, a.problem(err)
	}
	return nil, nil
}

func (a *api) listenerLogs(ctx context.Context, in *listenerLogsInput) (*struct{ Body Accepted }, error) {
	f, err := a.feed(ctx, in.ListenerCall)
	if err != nil {
		return nil, err
	}
	entries := make([]slipway.LogEntry, len(in.Body.Entries))
	for i, e := range in.Body.Entries {
		entries[i] = slipway.LogEntry{
			DeploymentID: e.DeploymentID, RevisionID: e.RevisionID, Kind: slipway.LogDeploy, At: e.Timestamp.UTC(), Level: e.Level, Message: e.Message,
		}
	}
	stored, err := f.AcceptLogs(ctx, entries)
	return a.accepted(stored, len(entries), err)
}

func (a *api) accepted(stored, sent int, err error) (*struct{ Body Accepted }, error) {
	if err != nil {
		return nil, a.problem(err)
	}
	return &struct{ Body Accepted }{Accepted{Accepted: stored, Dropped: sent - stored}}, nil
}

func (a *api) listenerMetrics(ctx context.Context, in *listenerMetricsInput) (*struct{ Body Accepted }, error) {
	f, err := a.feed(ctx, in.ListenerCall)
	if err != nil {
		return nil, err
	}
	all := make([]slipway.Metrics, len(in.Body.Samples))
	for i, m := range in.Body.Samples {
		all[i] = slipway.Metrics{
			DeploymentID: m.DeploymentID, At: m.Timestamp.UTC(), Replicas: m.Replicas, ReadyReplicas: m.ReadyReplicas,
			Restarts: m.Restarts, CPUCores: m.CPUCores, MemoryMB: m.MemoryMB,
		}
		if m.RevisionID != nil {
			all[i].RevisionID = *m.RevisionID
		}
	}
	stored, err := f.Measure(ctx, all)
	return a.accepted(stored, len(all), err)
}

func (a *api) deploymentMetrics(ctx context.Context, in *DeploymentPath) (*metricsOutput, error) {
	m, ok, err := a.svc.Metrics(ctx, authn.Principal(ctx), in.DeploymentID)
	if err != nil {
		return nil, a.problem(err)
	}
	out := &metricsOutput{}
	if ok {
		out.Body.Metrics = &DeploymentMetrics{
			DeploymentID: m.DeploymentID, RevisionID: orNull(m.RevisionID), Timestamp: m.At.UTC(), Replicas: m.Replicas,
			ReadyReplicas: m.ReadyReplicas, Restarts: m.Restarts, CPUCores: m.CPUCores, MemoryMB: m.MemoryMB,
		}
	}
	return out, nil
}

func (r ListenerReport) domain() (slipway.Report, error) {
	out := slipway.Report{DeploymentID: r.DeploymentID, Generation: r.Generation, Gone: r.Gone}
	var problems slipway.Problems
	for _, f := range []struct {
		name  string
		value *string
	}{{"revision_id", r.RevisionID}, {"status", r.Status}} {
		switch {
		case r.Gone && f.value != nil:
			problems.Add([]any{"body", f.name}, "%s goes without gone; a deployment is gone as a whole", f.name)
		case !r.Gone && f.value == nil:
			problems.Missing([]any{"body", f.name})
		}
	}
	if err := problems.Err(); err != nil || r.Gone {
		return out, err
	}
	out.RevisionID, out.Status = *r.RevisionID, slipway.RevisionStatus(*r.Status)
	if r.Reason != nil {
		out.Reason = *r.Reason
	}
	if r.Probe != nil && *r.Probe != "" {
		if out.Reason != "" {
			out.Reason += "; "
		}
		out.Reason += "last probe: " + *r.Probe
	}
	return out, nil
}

func listenerState(s slipway.DesiredState) ListenerState {
	out := ListenerState{Cursor: s.Cursor, Partial: s.Partial, Deployments: make([]DesiredDeployment, len(s.Deployments)), Absent: []string{}}
	out.Absent = append(out.Absent, s.Absent...)
	for i, d := range s.Deployments {
		out.Deployments[i] = DesiredDeployment{
			DeploymentID: d.DeploymentID, TenantID: d.TenantID, Name: d.Name, ClusterNamespace: orNull(d.Namespace), Generation: d.Generation,
			Active: desiredRevision(d.Active), Candidate: desiredRevision(d.Candidate), Retired: d.Retired, Deleted: d.Deleted,
		}
	}
	return out
}

func desiredRevision(b *slipway.Blueprint) *DesiredRevision {
	if b == nil {
		return nil
	}
	out := &DesiredRevision{
		RevisionID: b.RevisionID, Number: b.Number, ArtifactDigest: b.ArtifactDigest, Image: orNull(b.Image), Env: b.Env, Redact: []string{},
		Resources:        b.Resources,
		SecretReferences: []SecretReference{}, Broken: orNull(b.Broken),
	}
	if out.Env == nil {
		out.Env = map[string]string{}
	}
	out.Redact = append(out.Redact, b.Redact...)
	for _, r := range b.SecretReferences {
		out.SecretReferences = append(out.SecretReferences, SecretReference{Name: r.Name, SecretName: r.SecretName, SecretKey: r.SecretKey})
	}
	return out
}
