package listener_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

const unopenable = "the stored values of TOKEN cannot be opened"

func TestABrokenCandidateFailsWithItsReason(t *testing.T) {
	run(t, nil, func(b *bench) { b.feed.set(desk("r1", "")) }, func(b *bench) {
		pass(time.Second)
		d := desk("r1", "r2")
		d.Candidate.Broken = unopenable
		b.feed.set(d)
		pass(time.Second)
		told := b.feed.told()
		if last := told[len(told)-1]; !strings.HasPrefix(last, "r2 DEPLOY_FAILED") || !strings.Contains(last, unopenable) {
			t.Errorf("reports = %q, want r2 failed with the reason", told)
		}
		same(t, "route", b.router.to("desk"), "http://r1.1.test")
	})
}

func TestABrokenActiveRevisionThatRunsGoesOn(t *testing.T) {
	run(t, nil, func(b *bench) { b.feed.set(desk("r1", "")) }, func(b *bench) {
		pass(time.Second)
		starts := b.rt.Starts("r1")
		d := desk("r1", "")
		d.Active.Broken = unopenable
		b.feed.set(d)
		pass(time.Second)
		same(t, "route", b.router.to("desk"), "http://r1.1.test")
		same(t, "starts", b.rt.Starts("r1"), starts)
	})
}

func TestABrokenActiveRevisionThatDoesNotRunSaysWhy(t *testing.T) {
	run(t, nil, func(b *bench) {
		d := desk("r1", "")
		d.Active.Broken = unopenable
		b.feed.set(d)
	}, func(b *bench) {
		pass(time.Second)
		same(t, "starts of one that does not run", b.rt.Starts("r1"), 0)
		if lines := b.feed.lines(); len(lines) != 1 || !strings.Contains(lines[0].Message, unopenable) || lines[0].Kind != slipway.LogDeploy {
			t.Errorf("deploy log = %+v, want the reason once", lines)
		}
	})
}
