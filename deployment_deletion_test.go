package slipway_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slipway-dev/slipway"
)

func TestDeletionTakesItsSteps(t *testing.T) {
	t.Parallel()
	d := slipway.Deployment{Name: "desk", ActiveRevisionID: "r", Status: slipway.DeploymentReady}
	d = d.Deleted(at, slipway.DeletionTerms{Grace: time.Hour, Retention: 24 * time.Hour})
	for _, step := range []struct {
		after           time.Duration
		retired, purged bool
		due             time.Duration // after the DELETE; 0 = nothing
	}{
		{0, false, false, time.Hour},
		{time.Hour - 1, false, false, time.Hour},
		{time.Hour, true, false, 24 * time.Hour},
		{24*time.Hour - 1, true, false, 24 * time.Hour},
		{24 * time.Hour, true, true, 0},
	} {
		d, _ = d.Advanced(at.Add(step.after))
		due := time.Time{}
		if step.due > 0 {
			due = at.Add(step.due)
		}
		if d.Retired != step.retired || d.Purged() != step.purged || !d.Due().Equal(due) {
			t.Errorf("after %s: retired %v, purged %v, due %s; want %v, %v, %s", step.after, d.Retired, d.Purged(), d.Due(), step.retired, step.purged, due)
		}
	}
	if _, err := d.Restored(at); slipway.ErrorCode(err) != slipway.CodeBadRequest {
		t.Errorf("restore after the end: %v, want CodeBadRequest", err)
	}
}

// TestDeletionProperties: each step bears a new generation, the order is kept, and a restore leaves no trace of the deletion.
func TestDeletionProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hours := rapid.IntRange(0, 5)
		terms := slipway.DeletionTerms{Grace: time.Duration(hours.Draw(t, "grace")) * time.Hour, Retention: time.Duration(hours.Draw(t, "retention")) * time.Hour}
		before := slipway.Deployment{Name: "desk", ActiveRevisionID: rapid.SampledFrom([]string{"", "r"}).Draw(t, "active"), Generation: 3}.Settled(false, at)
		d := before.Deleted(at, terms)
		for now := at; d.Due() != (time.Time{}); now = now.Add(30 * time.Minute) {
			next, advanced := d.Advanced(now)
			if advanced != (next.Generation > d.Generation) || d.Due().Before(at) || next.Purged() && !next.Retired {
				t.Fatalf("step from %+v to %+v", d, next)
			}
			if back, err := d.Restored(now); err == nil {
				back.Generation, back.UpdatedAt = before.Generation, before.UpdatedAt
				if back.Status != before.Status || !back.PurgeAt.IsZero() || back.Retired || back.Purged() {
					t.Fatalf("restored = %+v, want %+v", back, before)
				}
			}
			d = next
		}
		if !d.Purged() {
			t.Fatalf("it ends as %+v, want it purged", d)
		}
	})
}
