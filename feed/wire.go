package feed

import (
	"encoding/json"
	"fmt"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/client"
)

// desiredState is what an answer of the service says.
func desiredState(s client.ListenerState) (slipway.DesiredState, error) {
	out := slipway.DesiredState{Cursor: s.Cursor, Partial: s.Partial, Absent: s.Absent}
	for _, d := range s.Deployments {
		desired, err := desiredDeployment(d)
		if err != nil {
			return out, fmt.Errorf("read the desired state of %s: %w", d.Name, err)
		}
		out.Deployments = append(out.Deployments, desired)
	}
	return out, nil
}

func desiredDeployment(d client.DesiredDeployment) (out slipway.DesiredDeployment, err error) {
	out = slipway.DesiredDeployment{
		DeploymentID: d.DeploymentID, TenantID: d.TenantID, Name: d.Name, Namespace: orEmpty(d.ClusterNamespace), Generation: d.Generation,
		Retired: d.Retired, Deleted: d.Deleted,
	}
	if out.Active, err = blueprint(d.Active); err != nil {
		return out, err
	}
	out.Candidate, err = blueprint(d.Candidate)
	return out, err
}

func blueprint(r *client.DesiredRevision) (*slipway.Blueprint, error) {
	if r == nil {
		return nil, nil
	}
	out := &slipway.Blueprint{
		RevisionID: r.RevisionID, Number: r.Number, ArtifactDigest: r.ArtifactDigest, Image: orEmpty(r.Image), Env: r.Env, Broken: orEmpty(r.Broken),
	}
	if out.Broken != "" {
		out.Env = nil
	}
	if len(r.Redact) > 0 {
		out.Redact = r.Redact
	}
	for _, s := range r.SecretReferences {
		out.SecretReferences = append(out.SecretReferences, slipway.SecretReference{Name: s.Name, SecretName: s.SecretName, SecretKey: s.SecretKey})
	}
	var err error
	out.Resources, err = resources(r.Resources)
	return out, err
}

// resources are the same on the wire and in the ground, by design (spec 2.4).
func resources(r *client.ResourceSpec) (*slipway.ResourceSpec, error) {
	if r == nil {
		return nil, nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	out := &slipway.ResourceSpec{}
	return out, json.Unmarshal(raw, out)
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
