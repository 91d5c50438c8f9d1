package control_test

import (
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control/buildqueuetest"
)

func TestTheQueueOfThisProcess(t *testing.T) {
	buildqueuetest.Run(t, func(t *testing.T) *buildqueuetest.Bench { return buildqueuetest.On(newWorld(t).World) })
}

func TestReportsOfBuildersAreAudited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	job := w.claim("local-1")
	w.complete(job)
	_, e := w.told("complete_build")
	if e.Principal != "builder" || e.Subject != d.ID || e.TenantID != w.Admin.TenantID {
		t.Errorf("entry = %+v", e)
	}
	for _, want := range []string{job.RevisionID, `"local-1"`, `"sha256:` + job.RevisionID, `"desk"`} {
		if !strings.Contains(e.Detail, want) {
			t.Errorf("detail %s lacks %s", e.Detail, want)
		}
	}
	w.report(slipway.Deployed, "")
	w.patch(d.ID)
	line, err := w.BuildLine(slipway.Principal{ID: "key:slp_1", Organisation: true, Role: slipway.RoleBuilder, Address: "192.0.2.7"})
	must(t, 0, err)
	next, _, err := line.Claim(t.Context(), "elsewhere-7", 0)
	must(t, 0, err)
	if next.RevisionID == "" {
		t.Fatal("an impatient builder got nothing though a build waits")
	}
	must(t, 0, line.Fail(t.Context(), next.BuildJob, "broken by "+canary))
	_, e = w.told("fail_build")
	if e.Principal != "key:slp_1" || e.Address != "192.0.2.7" || e.TenantID != w.Admin.TenantID {
		t.Errorf("entry = %+v", e)
	}
	if !strings.Contains(e.Detail, "broken by") || strings.Contains(e.Detail, canary) || !strings.Contains(e.Detail, "elsewhere-7") || !strings.Contains(e.Detail, next.RevisionID) {
		t.Errorf("detail = %s", e.Detail)
	}
	if err := line.Fail(t.Context(), next.BuildJob, "again"); slipway.ErrorCode(err) != slipway.CodeStale {
		t.Errorf("a second report: %v", err)
	}
	if found, err := w.Audit(t.Context(), w.Admin, slipway.AuditQuery{Operation: "fail_build", Limit: 5}); err != nil || len(found) != 1 {
		t.Errorf("%d entries, %v; want none of what was refused", len(found), err)
	}
}
