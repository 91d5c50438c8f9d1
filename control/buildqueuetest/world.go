package buildqueuetest

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/control/controltest"
)

// On returns a bench of the world's control service with its own queue, where artifacts stay where they are built.
func On(w *controltest.World) *Bench {
	tenants := map[string]string{}
	admin := func(tenant string) slipway.Principal {
		return slipway.Principal{ID: "key:admin", TenantID: tenant, Role: slipway.RoleAdmin}
	}
	all := slipway.Principal{ID: "key:everything", Role: slipway.RoleAdmin, Organisation: true}
	owner := map[string]slipway.Principal{}
	return &Bench{
		Queue: w.Service,
		Create: func(t *testing.T, tenant, name string) string {
			t.Helper()
			if tenants[tenant] == "" {
				made, err := w.CreateTenant(t.Context(), all, tenant)
				if err != nil {
					t.Fatal(err)
				}
				tenants[tenant] = made.ID
			}
			repo, config := "https://example.com/a/"+name, "agentgraph.json"
			d, err := w.Create(t.Context(), admin(tenants[tenant]), slipway.DeploymentCreate{
				Name: name, Source: slipway.SourceGithost, SourceConfig: slipway.SourceConfig{RepoURL: &repo},
				SourceRevisionConfig: slipway.SourceRevisionConfig{AgentgraphConfigPath: &config}, Secrets: []slipway.Secret{{Name: "TOKEN", Value: Canary}},
			})
			if err != nil {
				t.Fatal(err)
			}
			owner[d.ID] = admin(tenants[tenant])
			return d.ID
		},
		Change: func(t *testing.T, id string) {
			t.Helper()
			ref := "r" + w.NextID()
			if _, err := w.Patch(t.Context(), owner[id], id, slipway.DeploymentPatch{SourceRevisionConfig: slipway.SourceRevisionConfig{RepoRef: &ref}}); err != nil {
				t.Fatal(err)
			}
		},
		Interrupt: func(t *testing.T, id, revision string) {
			t.Helper()
			if _, err := w.Interrupt(t.Context(), owner[id], id, revision); err != nil {
				t.Fatal(err)
			}
		},
		Purge: func(t *testing.T, id string) {
			t.Helper()
			for _, how := range []control.Deletion{{}, {Force: true}} {
				if err := w.Delete(t.Context(), owner[id], id, how); err != nil {
					t.Fatal(err)
				}
			}
		},
		Pass: w.Advance,
		Revision: func(t *testing.T, id, revision string) slipway.Revision {
			t.Helper()
			r, err := w.Service.Revision(t.Context(), owner[id], id, revision)
			if err != nil {
				t.Fatal(err)
			}
			return r
		},
		Lines: func(t *testing.T, id, revision string) (lines []string) {
			t.Helper()
			q := slipway.LogQuery{DeploymentID: id, RevisionID: revision, Kind: slipway.LogBuild, Limit: 1000}
			for offset := ""; ; {
				page, err := w.Logs(t.Context(), owner[id], q, offset)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range page.Entries {
					lines = append(lines, e.Message)
				}
				if page.Next == nil || len(page.Entries) == 0 {
					return lines
				}
				offset = *page.Next
			}
		},
		HandOver: func(_ *testing.T, job slipway.BuildJob) slipway.BuildResult {
			return slipway.BuildResult{ArtifactDigest: digest(job)}
		},
	}
}

func digest(job slipway.BuildJob) string {
	sum := sha256.Sum256([]byte(job.RevisionID))
	return "sha256:" + hex.EncodeToString(sum[:])
}
