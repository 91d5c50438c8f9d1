package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control/controltest"
)

const pushedRepo = "https://git.example.com/acme/desk.git"

// pushedWorld is a service with one deployment that was built and follows main.
func pushedWorld(t *testing.T) (*world, string) {
	t.Helper()
	w := newWorldOn(t, controltest.NewStore())
	w.Hosts.Add(slipway.Repository{ID: 1, Name: "desk", Owner: "acme", URL: pushedRepo, DefaultBranch: "main"})
	i, err := w.CreateIntegration(t.Context(), w.Admin, slipway.IntegrationCreate{
		Kind: slipway.HostGitea, Name: "home", HostURL: "https://git.example.com", Secrets: slipway.IntegrationSecrets{Token: "t", WebhookSecret: strings.Repeat("s", 16)},
	})
	if err != nil {
		t.Fatal(err)
	}
	repo, path, on := pushedRepo, "agentgraph.json", true
	_, err = w.Create(t.Context(), w.Admin, slipway.DeploymentCreate{
		Name: "desk", Source: slipway.SourceGithost,
		SourceConfig:         slipway.SourceConfig{IntegrationID: &i.ID, RepoURL: &repo, BuildOnPush: &on},
		SourceRevisionConfig: slipway.SourceRevisionConfig{AgentgraphConfigPath: &path},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w, i.ID
}

func deliverPush(t *testing.T, w *world, integration, commit string) {
	t.Helper()
	body, err := json.Marshal(slipway.Hook{Keys: []string{commit}, Push: &slipway.PushEvent{
		RepoURLs: []string{"git@git.example.com:acme/Desk"}, DefaultBranch: "main", Ref: "refs/heads/main", Commit: commit,
	}})
	if err != nil {
		t.Fatal(err)
	}
	header := func(string) string { return strings.Repeat("s", 16) }
	done, err := w.Deliver(t.Context(), integration, header, body)
	if err != nil || len(done.Revisions) != 1 {
		t.Fatalf("push of %s: %+v %v, want a revision", commit, done, err)
	}
}

func TestBuildsAreLentTheirRepositorysCredentials(t *testing.T) {
	t.Parallel()
	w, _ := pushedWorld(t)
	w.Hosts.Lend("canary-password")
	job := w.claim("builder")
	if job.Clone.Password != "canary-password" || len(job.Redact) != 1 || job.Redact[0] != "canary-password" {
		t.Errorf("job with %+v that redacts %v, want the password in both", job.Clone, job.Redact)
	}
}

func TestABuildWithoutCredentialsFailsAndIsNotInTheWay(t *testing.T) {
	t.Parallel()
	w, integration := pushedWorld(t)
	deliverPush(t, w, integration, strings.Repeat("a", 40))
	w.Hosts.Fail(slipway.Errorf(slipway.CodeBadRequest, "the host does not take the credentials"))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := w.Claim(ctx, "builder"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("claim = %v, want nothing to build", err)
	}
	list, err := w.List(t.Context(), w.Admin, slipway.DeploymentQuery{})
	if err != nil {
		t.Fatal(err)
	}
	revisions, err := w.Revisions(t.Context(), w.Admin, slipway.RevisionQuery{DeploymentID: list[0].ID})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range revisions {
		if r.Status != slipway.BuildFailed || !strings.Contains(r.StatusReason, "does not take the credentials") {
			t.Errorf("revision %s %q, want BUILD_FAILED with the host's reason", r.Status, r.StatusReason)
		}
	}
}

func TestCommitStatusesAreToldInOrderAndTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, integration := pushedWorld(t)
		first := w.claim("builder")
		commit := strings.Repeat("b", 40)
		deliverPush(t, w, integration, commit)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.PostStatuses(ctx) }()
		synctest.Wait()
		told := w.Hosts.Statuses()
		if len(told) != 1 || told[0].Commit != commit || told[0].State != slipway.CommitPending || told[0].Context != "slipway/desk" {
			t.Fatalf("after the push the host knows %+v, want one pending status", told)
		}
		w.Hosts.Fail(slipway.Errorf(slipway.CodeUnavailable, "the host is away"))
		if err := w.Fail(t.Context(), first, "no code"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.Hosts.Fail(nil)
		if got := len(w.Hosts.Statuses()); got != 1 {
			t.Errorf("a host that is away was told %d times", got)
		}
		w.Advance(time.Hour) // the retry is due by the service's clock, and by the timer
		time.Sleep(time.Hour)
		synctest.Wait()
		second := w.claim("builder")
		if err := w.Fail(t.Context(), second, "it does not compile"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		told = w.Hosts.Statuses()
		last := told[len(told)-1]
		if len(told) < 3 || last.State != slipway.CommitFailure || last.Description != "it does not compile" || !strings.Contains(last.TargetURL, second.DeploymentID) {
			t.Errorf("in the end the host knows %+v, want the retried status and then the failure", told)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("PostStatuses = %v, want the context's error", err)
		}
	})
}
