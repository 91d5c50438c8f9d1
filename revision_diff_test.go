package slipway_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/slipway-dev/slipway"
)

func TestDiffRevisionsTellsEveryKindOfChange(t *testing.T) {
	t.Parallel()
	before := slipway.Blueprinted{
		Revision: slipway.Revision{
			Source: slipway.SourceGithost, ArtifactDigest: "sha256:a", ComputeTier: "tier-1",
			SourceConfig:         slipway.SourceConfig{ResourceSpec: &slipway.ResourceSpec{MinScale: ptr(1)}},
			SourceRevisionConfig: slipway.SourceRevisionConfig{RepoRef: ptr("main"), RepoCommitSHA: ptr("c1"), AgentgraphConfigPath: ptr("langgraph.json")},
			SecretReferences:     []slipway.SecretReference{{Name: "vault", SecretName: "v", SecretKey: "k"}},
		},
		Secrets:  map[string]string{"SAME": "1", "CHANGED": "1", "GONE": "1"},
		Packages: map[string]string{"python idna": "3.9", "python six": "1.16", "node left-pad": "1.0.0"},
	}
	after := before
	after.ArtifactDigest, after.ComputeTier, after.SecretReferences = "sha256:b", "tier-2", nil
	after.SourceConfig.ResourceSpec = &slipway.ResourceSpec{MinScale: ptr(2)}
	after.SourceConfig.BuildCommand = ptr("make")
	after.SourceRevisionConfig.RepoCommitSHA = ptr("c2")
	after.Secrets = map[string]string{"SAME": "1", "CHANGED": "2", "NEW": "1"}
	after.Packages = map[string]string{"python idna": "3.10", "python six": "1.16", "node right-pad": "1.0.0"}
	want := []string{
		"artifact_digest: sha256:a -> sha256:b", "compute_tier: tier-1 -> tier-2",
		"packages.node left-pad: 1.0.0 -> nothing", "packages.node right-pad: nothing -> 1.0.0", "packages.python idna: 3.9 -> 3.10",
		"secret_references.0.name: vault -> nothing", "secret_references.0.secret_key: k -> nothing", "secret_references.0.secret_name: v -> nothing",
		"secrets.CHANGED: set -> changed", "secrets.GONE: set -> nothing", "secrets.NEW: nothing -> set",
		"source_config.build_command: nothing -> make", "source_config.resource_spec.min_scale: 1 -> 2",
		"source_revision_config.repo_commit_sha: c1 -> c2",
	}
	if got := told(t, before, after); !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if got := told(t, before, before); len(got) > 0 {
		t.Errorf("a revision differs from itself: %q", got)
	}
	after.Packages = nil // not known: nothing is told of them
	if got := told(t, before, after); !slices.Equal(got, slices.Concat(want[:2], want[5:])) {
		t.Errorf("with unknown packages got\n%q", got)
	}
}

func ptr[T any](v T) *T { return &v }

func told(t *testing.T, before, after slipway.Blueprinted) (lines []string) {
	t.Helper()
	changes, err := slipway.DiffRevisions(before, after)
	if err != nil {
		t.Fatal(err)
	}
	word := func(s *string) string {
		if s == nil {
			return "nothing"
		}
		return *s
	}
	for _, c := range changes {
		lines = append(lines, fmt.Sprintf("%s: %s -> %s", c.Field, word(c.Before), word(c.After)))
	}
	return lines
}
