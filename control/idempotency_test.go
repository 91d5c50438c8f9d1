package control_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/control/controltest"
)

func request(key, body string) control.KeyedRequest {
	return control.KeyedRequest{Method: "POST", Path: "/x", Key: key, Body: []byte(body)}
}

func TestKeptAnswersAreSealedAndBounded(t *testing.T) {
	t.Parallel()
	store := controltest.NewStore()
	w := newWorldOn(t, store)
	for key, body := range map[string]string{"small": canary, "large": strings.Repeat(canary, 200_000)} {
		attempt, _, err := w.BeginKeyed(t.Context(), w.Admin, request(key, "secret body"))
		must(t, 0, err)
		must(t, 0, attempt.Answered(t.Context(), control.Answer{Status: 201, Body: []byte(body)}))
	}
	if claims := store.Claims(); len(claims) != 2 {
		t.Errorf("%d claims, want 2", len(claims))
	}
	for _, c := range store.Claims() {
		if text := fmt.Sprintf("%+v", c); bytes.Contains(c.Sealed, []byte(canary)) || strings.Contains(text, "secret body") {
			t.Errorf("the claim holds what was secret: %.300s", text)
		}
	}
	_, answer, err := w.BeginKeyed(t.Context(), w.Admin, request("small", "secret body"))
	if err != nil || answer == nil || string(answer.Body) != canary || answer.Status != 201 {
		t.Errorf("repeated: %+v, %v", answer, err)
	}
	if _, _, err := w.BeginKeyed(t.Context(), w.Admin, request("large", "secret body")); slipway.ErrorCode(err) != slipway.CodeConflict {
		t.Errorf("a large answer: %v, want CodeConflict rather than a second effect", err)
	}
}

func TestAnAttemptThatWasTakenOverHasNoEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _, err := w.BeginKeyed(t.Context(), w.Admin, request("k", ""))
	must(t, 0, err)
	w.Advance(2 * time.Minute)
	w.Restart() // another process
	second, _, err := w.BeginKeyed(t.Context(), w.Admin, request("k", ""))
	must(t, 0, err)
	create := func(a *control.Attempt) error {
		_, err := w.Create(a.Context(t.Context()), w.Admin, slipway.DeploymentCreate{Name: "desk", Source: slipway.SourceInternalSource})
		return err
	}
	if err := create(first); slipway.ErrorCode(err) != slipway.CodeStale {
		t.Errorf("the slow attempt: %v, want CodeStale", err)
	}
	must(t, 0, create(second))
}

func TestAnIdenticalPatchJoinsTheOneInFlight(t *testing.T) {
	t.Parallel()
	store := controltest.NewStore()
	w := newWorldOn(t, store)
	d := w.create()
	one := w.Service
	w.Restart()
	two := w.Service // another process over the same database
	in := slipway.DeploymentPatch{SourceRevisionConfig: slipway.SourceRevisionConfig{RepoRef: p("next")}}
	hold, release := make(chan struct{}), make(chan struct{})
	store.BeforeUpdate(func() { close(hold); <-release })
	var group sync.WaitGroup
	group.Go(func() { _, err := one.Patch(context.Background(), w.Admin, d.ID, in); must(t, 0, err) })
	<-hold // it has arrived, and not been carried out
	store.BeforeUpdate(nil)
	second, err := two.Patch(t.Context(), w.Admin, d.ID, in)
	must(t, 0, err)
	close(release)
	group.Wait()
	all, err := two.Revisions(t.Context(), w.Admin, slipway.RevisionQuery{DeploymentID: d.ID})
	must(t, 0, err)
	if len(all) != 2 || all[0].ID != second.LatestRevisionID {
		t.Errorf("%d revisions, want the first and one of both patches", len(all))
	}
	if _, err := two.Patch(t.Context(), w.Admin, d.ID, in); err != nil {
		t.Fatal(err)
	}
	if all, _ = two.Revisions(t.Context(), w.Admin, slipway.RevisionQuery{DeploymentID: d.ID}); len(all) != 3 {
		t.Errorf("%d revisions, want a later patch to make one of its own", len(all))
	}
}
