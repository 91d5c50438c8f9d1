package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

func assistants(t *testing.T, s agent.Store) {
	ctx := context.Background()
	must(t, s.SyncAssistants(ctx, []agent.Assistant{{ID: "1", GraphID: "g", Name: "100%"}, {ID: "2", GraphID: "h", Name: "Two"}}, startTime()))
	must(t, s.SyncAssistants(ctx, []agent.Assistant{{ID: "1", GraphID: "g", Name: "100%"}}, startTime().Add(time.Second)))
	one, err := s.Assistant(ctx, "1")
	must(t, err)
	equal(t, "unchanged", one.UpdatedAt, startTime().Truncate(time.Microsecond))
	_, err = s.Assistant(ctx, "2")
	wantCode(t, err, slipway.CodeNotFound)
	for name, want := range map[string]int{"0%": 1, "1%": 0, "": 1} {
		n, err := s.CountAssistants(ctx, agent.AssistantQuery{Name: name})
		must(t, err)
		equal(t, name, n, want)
	}
}

// assistantVersions: each change is a version, any can become the current one, numbers are never reused.
func assistantVersions(t *testing.T, s agent.Store) {
	ctx := context.Background()
	made, err := s.CreateAssistant(ctx, agent.Assistant{ID: "a", GraphID: "g", Name: "one", Metadata: raw(`{"k":1}`), System: true, CreatedAt: startTime(), UpdatedAt: startTime()}, false)
	must(t, err)
	equal(t, "version", made.Version, 1)
	equal(t, "no client makes a system assistant", made.System, false)
	_, err = s.CreateAssistant(ctx, agent.Assistant{ID: "a", GraphID: "h"}, false)
	wantCode(t, err, slipway.CodeConflict)
	again, err := s.CreateAssistant(ctx, agent.Assistant{ID: "a", GraphID: "h"}, true)
	must(t, err)
	equal(t, "reused", again.GraphID, "g")

	two, later := "two", startTime().Add(time.Minute)
	patched, err := s.PatchAssistant(ctx, "a", agent.AssistantPatch{Name: &two, Metadata: raw(`{"l":2}`), Config: raw(`{"tags":["x"]}`)}, later)
	must(t, err)
	equal(t, "patched", patched.Name+string(patched.Metadata)+string(patched.Config), `two{"k":1,"l":2}{"tags":["x"]}`)
	back, err := s.SetLatestVersion(ctx, "a", 1, later)
	must(t, err)
	equal(t, "back", back.Name+string(back.Metadata)+string(back.Config), `one{"k":1}{}`)
	equal(t, "created", back.CreatedAt, made.CreatedAt)
	third, err := s.PatchAssistant(ctx, "a", agent.AssistantPatch{}, later)
	must(t, err)
	equal(t, "above the highest", third.Version, 3)
	_, err = s.SetLatestVersion(ctx, "a", 9, later)
	wantCode(t, err, slipway.CodeNotFound)

	list, err := s.AssistantVersions(ctx, agent.VersionQuery{AssistantID: "a", Limit: 2})
	must(t, err)
	equal(t, "newest first", list[0].Version*10+list[1].Version, 32)
	list, err = s.AssistantVersions(ctx, agent.VersionQuery{AssistantID: "a", Metadata: raw(`{"l":2}`), Limit: 10})
	must(t, err)
	equal(t, "filtered", len(list), 1)
	_, err = s.AssistantVersions(ctx, agent.VersionQuery{AssistantID: "b", Limit: 2})
	wantCode(t, err, slipway.CodeNotFound)
	must(t, s.DeleteAssistant(ctx, "a"))
	wantCode(t, s.DeleteAssistant(ctx, "a"), slipway.CodeNotFound)
	_, err = s.PatchAssistant(ctx, "a", agent.AssistantPatch{}, later)
	wantCode(t, err, slipway.CodeNotFound)
}

// systemAssistants: what a client made of one stays until its definition in the configuration changes.
func systemAssistants(t *testing.T, s agent.Store) {
	ctx, name := context.Background(), "mine"
	definition := agent.Assistant{ID: "s", GraphID: "g", Name: "g"}
	must(t, s.SyncAssistants(ctx, []agent.Assistant{definition}, startTime()))
	_, err := s.PatchAssistant(ctx, "s", agent.AssistantPatch{Name: &name}, startTime())
	must(t, err)
	must(t, s.SyncAssistants(ctx, []agent.Assistant{definition}, startTime().Add(time.Minute)))
	kept, err := s.Assistant(ctx, "s")
	must(t, err)
	equal(t, "kept", kept.Name, "mine")
	definition.Config = raw(`{"tags":["new"]}`)
	must(t, s.SyncAssistants(ctx, []agent.Assistant{definition}, startTime().Add(time.Hour)))
	moved, err := s.Assistant(ctx, "s")
	must(t, err)
	equal(t, "follows the configuration", moved.Name+string(moved.Config), `g{"tags":["new"]}`)
	equal(t, "as a version", moved.Version, 3)
	equal(t, "created", moved.CreatedAt, startTime().Truncate(time.Microsecond))
}
