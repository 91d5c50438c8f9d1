package slipway_test

import (
	"testing"

	"github.com/slipway-dev/slipway"
)

func TestChangeTier(t *testing.T) {
	t.Parallel()
	const none = slipway.Tier("")
	built := &slipway.Revision{ID: "old", Number: 4, Source: slipway.SourceGithost, ArtifactDigest: "sha256:a", BuildSecretSetID: "b"}
	for _, c := range []struct {
		name              string
		stored, storedDB  slipway.Tier
		compute, database *slipway.Tier
		source            slipway.Source
		want              slipway.Code
		revision          bool
	}{
		{"first", none, none, p(slipway.ServerlessM), nil, slipway.SourceGithost, "", true},
		{"within a kind", slipway.ServerlessS, none, p(slipway.ServerlessL), nil, slipway.SourceGithost, "", true},
		{"the same again", slipway.ServerlessS, none, p(slipway.ServerlessS), nil, slipway.SourceGithost, "", false},
		{"to the other kind", slipway.ServerlessS, none, p(slipway.DedicatedS), p(slipway.DedicatedS), slipway.SourceGithost, slipway.CodeBadRequest, false},
		{"back from it", slipway.DedicatedS, slipway.DedicatedS, p(slipway.ServerlessS), nil, slipway.SourceGithost, slipway.CodeBadRequest, false},
		{"compute alone", slipway.DedicatedS, slipway.DedicatedS, p(slipway.DedicatedL), nil, slipway.SourceGithost, "", true},
		{"database alone", slipway.DedicatedS, slipway.DedicatedS, nil, p(slipway.DedicatedL), slipway.SourceGithost, "", true},
		{"database first", none, none, nil, p(slipway.DedicatedS), slipway.SourceGithost, "", true},
		{"serverless over a database", none, slipway.DedicatedS, p(slipway.ServerlessS), nil, slipway.SourceGithost, slipway.CodeBadRequest, false},
		{"database of a serverless one", slipway.ServerlessS, none, nil, p(slipway.DedicatedS), slipway.SourceGithost, slipway.CodeBadRequest, false},
		{"serverless database", slipway.DedicatedS, none, nil, p(slipway.ServerlessS), slipway.SourceGithost, slipway.CodeInvalid, false},
		{"unknown", none, none, p(slipway.Tier("HUGE")), nil, slipway.SourceGithost, slipway.CodeInvalid, false},
		{"nothing", none, none, nil, nil, slipway.SourceGithost, slipway.CodeInvalid, false},
		{"sized by resource_spec", none, none, p(slipway.DedicatedS), nil, slipway.SourceExternalContainer, slipway.CodeBadRequest, false},
	} {
		d := slipway.Deployment{ID: "d", Name: "desk", Source: c.source, ComputeTier: c.stored, DatabaseTier: c.storedDB}
		got, err := slipway.ChangeTier(d, slipway.TierChange{Compute: c.compute, Database: c.database}, built, slipway.Facts{LatestNumber: 4}, at, ids())
		if slipway.ErrorCode(err) != c.want || (got.Revision != nil) != c.revision {
			t.Errorf("%s: revision %v, %v; want %v, code %q", c.name, got.Revision, err, c.revision, c.want)
		}
		if r := got.Revision; r != nil && (r.ArtifactDigest != "sha256:a" || r.BuildSecretSetID != "b" || r.Number != 5 || r.ComputeTier != got.Deployment.ComputeTier) {
			t.Errorf("%s: revision = %+v, want the old artifact in the new size", c.name, r)
		}
	}
}

func TestTierSpecs(t *testing.T) {
	t.Parallel()
	for _, tier := range slipway.Tiers() {
		database := slipway.Tier("")
		if tier.Dedicated() {
			database = tier
		}
		want, _ := tier.Resources()
		got := slipway.TierSpec(tier, database)
		if *got.CPU != want.CPU || *got.MemoryLimitMB != want.MemoryMB || (got.DBCPU != nil) != tier.Dedicated() || (got.MinScale != nil) == tier.Dedicated() {
			t.Errorf("%s: %+v", tier, got)
		}
	}
	if slipway.TierSpec("", "") != nil {
		t.Error("no tier has a spec")
	}
}
