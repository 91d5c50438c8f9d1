package beacon_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/beacon"
)

const id = "0192F000-0000-7000-8000-00000000000a"

func transaction() beacon.TraceTransaction {
	return beacon.TraceTransaction{
		ID: id, TenantID: id, SessionID: id, OrganizationID: id, TraceCount: 7, Status: "pending", Type: "trace",
		StartIntervalTime: now.Add(-time.Hour), EndIntervalTime: now, StartInsertionTime: now.Add(-time.Minute), EndInsertionTime: now,
	}
}

func TestTransactionRules(t *testing.T) {
	t.Parallel()
	for field, break1 := range map[string]func(*beacon.TraceTransaction){
		"":                         func(*beacon.TraceTransaction) {},
		"id":                       func(x *beacon.TraceTransaction) { x.ID = "1" },
		"organization_id":          func(x *beacon.TraceTransaction) { x.OrganizationID = "" },
		"trace_count":              func(x *beacon.TraceTransaction) { x.TraceCount = -1 },
		"num_failed_send_attempts": func(x *beacon.TraceTransaction) { x.FailedSends = -1 },
		"status":                   func(x *beacon.TraceTransaction) { x.Status = "" },
		"transaction_type":         func(x *beacon.TraceTransaction) { x.Type = strings.Repeat("x", 101) },
		"end_interval_time":        func(x *beacon.TraceTransaction) { x.EndIntervalTime = now.Add(-2 * time.Hour) },
		"end_insertion_time":       func(x *beacon.TraceTransaction) { x.EndInsertionTime = now.Add(48 * time.Hour) },
	} {
		x := transaction()
		break1(&x)
		var problems slipway.Problems
		x.Validate(&problems, []any{"body", "trace_transactions", 3}, now)
		if field == "" && len(problems) == 0 {
			continue
		}
		if len(problems) != 1 || problems[0].Loc[3] != field || problems[0].Loc[2] != 3 {
			t.Errorf("%s: %v", field, problems)
		}
	}
	if x := transaction().Normal(); x.ID != strings.ToLower(id) {
		t.Errorf("normal id %s", x.ID)
	}
}

func TestSnapshotRules(t *testing.T) {
	t.Parallel()
	many := map[string]int64{}
	for i := range 101 {
		many["m"+strings.Repeat("x", i)] = 1
	}
	for name, s := range map[string]beacon.UsageSnapshot{
		"":               {From: now.Add(-time.Hour), To: now, Measures: map[string]int64{"users": 3, "newer_measure": 0}},
		"-3":             {From: now.Add(-time.Hour), To: now, Measures: map[string]int64{"users": -3}},
		"no name":        {From: now.Add(-time.Hour), To: now, Measures: map[string]int64{"a b": 3}},
		"at most 100":    {From: now.Add(-time.Hour), To: now, Measures: many},
		"to_timestamp":   {From: now, To: now.Add(-time.Hour)},
		"is in the futu": {From: now, To: now.Add(25 * time.Hour)},
	} {
		var problems slipway.Problems
		s.Validate(&problems, now)
		if (name == "") != (len(problems) == 0) || name != "" && !strings.Contains(problems.Err().Error(), name) {
			t.Errorf("%q: %v", name, problems)
		}
	}
}

func TestTimestamps(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 1, 6, 9, 0, 0, 500_000_000, time.UTC)
	for _, text := range []string{
		"2026-01-06T09:00:00.5Z", "2026-01-06T09:00:00.500000+00:00", "2026-01-06 10:00:00.5+0100", "2026-01-06t09:00:00.5z",
	} {
		if got, err := beacon.ParseTime(text, true); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if got, err := beacon.ParseTime("2026-01-06T09:00:00.5", false); err != nil || !got.Equal(want) {
		t.Errorf("without offset: %v, %v", got, err)
	}
	for _, text := range []string{"2026-01-06T09:00:00.5", "yesterday", "", "2026-02-30T00:00:00Z", "1767690000", strings.Repeat("2", 1000)} {
		if got, err := beacon.ParseTime(text, true); slipway.ErrorCode(err) != slipway.CodeInvalid || len(err.Error()) > 300 {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestWhatAVersionSends(t *testing.T) {
	t.Parallel()
	all := beacon.Streams{Billing: true, Usage: true, Logs: true, Metrics: true, Traces: true}
	off := beacon.Switches{NoLogs: true, NoMetrics: true, NoTraces: true, NoUsage: true}
	for _, test := range []struct {
		version, key string
		switches     beacon.Switches
		want         beacon.Streams
	}{
		{"0.11.0", "lcl_x", beacon.Switches{}, all},
		{"v1.2.3", "lcl_x", beacon.Switches{}, all},
		{"dev", "lcl_x", beacon.Switches{}, all},
		{"0.10.9", "lcl_x", beacon.Switches{}, beacon.Streams{Billing: true, Usage: true}},
		{"0.8.9", "lcl_x", beacon.Switches{}, beacon.Streams{}},
		{"0.11.0", "lof_x", beacon.Switches{}, beacon.Streams{}},
		{"0.11.0", "", beacon.Switches{}, beacon.Streams{}},
		{"0.11.0", "lcl_x", off, beacon.Streams{Billing: true}},
		{"0.11.0", "lcl_x", beacon.Switches{NoLogs: true}, beacon.Streams{Billing: true, Usage: true, Metrics: true, Traces: true}},
	} {
		if got := beacon.StreamsOf(test.version, test.key, test.switches); got != test.want {
			t.Errorf("%+v: got %+v", test, got)
		}
	}
}

// Whatever a canary is put into, it does not come out.
func TestRedaction(t *testing.T) {
	t.Parallel()
	const canary = "canary7f3a91bc55d2"
	r := beacon.Redactor{Salt: []byte("salt")}
	for _, key := range []string{"input", "messages", "user.email", "authorization", "http.request.header.cookie", "db.query.text", "tenant_id", "thread_id", "endpoint", "exception.message", "url.full"} {
		for _, value := range []string{canary, "/threads/" + canary + "/runs?token=" + canary, "/" + strings.Repeat(canary+"/", 100)} {
			if got, ok := r.Attribute(key, value); ok && strings.Contains(got, canary) {
				t.Errorf("%s = %q", key, got)
			}
		}
	}
	for _, text := range []string{
		`cannot read "` + canary + `"`, "see https://u:" + canary + "@host/x", "key=" + canary, "mail " + canary + "@example.com", "open /data/" + canary + "/x", "token " + canary,
	} {
		if got := beacon.Message(text); strings.Contains(got, canary) {
			t.Errorf("message %q", got)
		}
	}
	if got := beacon.Message("the build failed after 3 attempts"); got != "the build failed after 3 attempts" {
		t.Errorf("a plain message became %q", got)
	}
	if got, ok := r.Attribute("endpoint", "/v2/deployments/0192f000-0000-7000-8000-000000000001/revisions"); !ok || got != "/v2/deployments/{id}/revisions" {
		t.Errorf("endpoint = %q, %v", got, ok)
	}
	if got, ok := r.Attribute("method", "PATCH"); !ok || got != "PATCH" {
		t.Errorf("method = %q, %v", got, ok)
	}
	again := r.Hash("a")
	if r.Hash("a") == r.Hash("b") || r.Hash("a") != again || r.Hash("a") == (beacon.Redactor{}).Hash("a") {
		t.Error("hashes do not tell identifiers apart, or installations alike")
	}
}

func TestSmallRules(t *testing.T) {
	t.Parallel()
	if got := beacon.MetricName("langsmith_http_requests_latency"); got != "platform_http_requests_latency" {
		t.Errorf("metric %s", got)
	}
	if beacon.Exported(12) || !beacon.Exported(13) || beacon.SeverityText(13) != "Warning" || beacon.SeverityText(17) != "Error" {
		t.Error("severities")
	}
	if got := beacon.Month(time.Date(2026, 1, 31, 23, 30, 0, 0, time.FixedZone("", -3600))); got != "2026-02" {
		t.Errorf("month %s", got)
	}
}
