package controlapi_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

// record appends entries to the audit log, a second apart, the last the newest.
func (s *server) record(entries ...slipway.AuditEntry) {
	s.t.Helper()
	err := s.store.Update(s.t.Context(), func(tx slipway.Tx) error {
		for i, e := range entries {
			e.ID, e.TenantID = fmt.Sprintf("e-%03d", i), s.Admin.TenantID
			e.At = time.Date(2031, 5, 1, 12, 0, i, 7000, time.UTC)
			if e.Outcome == "" {
				e.Outcome = slipway.OutcomeSuccess
			}
			if e.Detail == "" {
				e.Detail = "{}"
			}
			if err := tx.AppendAudit(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// ann is a principal of whom nothing else is in the log.
const ann = "user:ann"

func (s *server) recordSample() {
	s.record(
		slipway.AuditEntry{Principal: ann, Operation: "create_deployment", Subject: "d1", Address: "192.0.2.1", RequestID: "r1", Detail: `{"name":"desk, \"old\"\nline"}`,
			Changes: []slipway.AuditChange{{Field: "name", After: json.RawMessage(`"desk"`)}}},
		slipway.AuditEntry{Principal: ann, Operation: "delete_deployment", Subject: "=cmd|'/c calc'!A1", Outcome: slipway.OutcomeRefused},
		slipway.AuditEntry{Principal: ann, Operation: "ping_webhook"},
	)
}

func TestAuditExports(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.recordSample()
	status, text := s.raw(s.Key, "GET", "/v2/audit-logs/export?principal="+ann, "")
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if status != 200 || len(lines) != 3 {
		t.Fatalf("jsonl = %d with %d lines, want 200 with 3:\n%s", status, len(lines), text)
	}
	listed := s.want(200, "GET", "/v2/audit-logs?principal="+ann, "")["resources"].([]any)
	for i, line := range lines {
		var got any
		if err := json.Unmarshal([]byte(line), &got); err != nil || fmt.Sprint(got) != fmt.Sprint(listed[i]) {
			t.Errorf("line %d is %s (%v), want what the list tells: %v", i, line, err, listed[i])
		}
	}
	status, text = s.raw(s.Key, "GET", "/v2/audit-logs/export?format=csv&principal="+ann, "")
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if status != 200 || err != nil || len(rows) != 4 {
		t.Fatalf("csv = %d, %v with %d rows, want 200 with a head and 3:\n%s", status, err, len(rows), text)
	}
	want := [][]string{
		{"time", "id", "tenant_id", "principal", "operation", "subject", "outcome", "address", "request_id", "detail", "changes"},
		{"2031-05-01T12:00:02.000007Z", "e-002", s.Admin.TenantID, ann, "ping_webhook", "", "success", "", "", "{}", "[]"},
		{"2031-05-01T12:00:01.000007Z", "e-001", s.Admin.TenantID, ann, "delete_deployment", "'=cmd|'/c calc'!A1", "refused", "", "", "{}", "[]"},
		{"2031-05-01T12:00:00.000007Z", "e-000", s.Admin.TenantID, ann, "create_deployment", "d1", "success", "192.0.2.1", "r1", `{"name":"desk, \"old\"\nline"}`, `[{"field":"name","before":null,"after":"desk"}]`},
	}
	for i := range want {
		if strings.Join(rows[i], "|") != strings.Join(want[i], "|") {
			t.Errorf("row %d:\n%q, want\n%q", i, rows[i], want[i])
		}
	}
	if status, text = s.raw(s.Key, "GET", "/v2/audit-logs/export?format=csv&principal=nobody", ""); status != 200 || strings.Count(string(text), "\n") != 1 {
		t.Errorf("csv of nothing = %d %q, want the head alone", status, text)
	}
}

func TestAuditAsOCSF(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.recordSample()
	items := s.want(200, "GET", "/api/v1/audit-logs?start_time=2031-05-01T00:00:00Z&end_time=2031-05-02T00:00:00Z", "")["items"].([]any)
	if len(items) != 3 {
		t.Fatalf("%d items, want 3", len(items))
	}
	created := fmt.Sprintf(`{"activity_id":1,"activity_name":"Create","category_uid":6,"category_name":"Application Activity","class_uid":6003,"class_name":"API Activity",
		"type_uid":600301,"severity_id":1,"status_id":1,"status":"Success","time":1935403200000,
		"metadata":{"version":"1.3.0","uid":"e-000","correlation_uid":"r1","tenant_uid":%q,"product":{"name":"slipway","vendor_name":"slipway","version":"test"}},
		"actor":{"user":{"uid":"user:ann","type":"User"}},"api":{"operation":"create_deployment","request":{"uid":"r1"}},"src_endpoint":{"ip":"192.0.2.1"},
		"resources":[{"uid":"d1","type":"deployment"}],
		"unmapped":{"detail":{"name":"desk, \"old\"\nline"},"changes":[{"field":"name","before":null,"after":"desk"}]}}`, s.Admin.TenantID)
	var want any
	if err := json.Unmarshal([]byte(created), &want); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(items[2]) != fmt.Sprint(want) {
		t.Errorf("create_deployment is\n%v, want\n%v", items[2], want)
	}
	refused, other := items[1].(map[string]any), items[0].(map[string]any)
	if refused["status"] != "Failure" || refused["status_id"] != 2.0 || refused["activity_name"] != "Delete" || refused["type_uid"] != 600304.0 || refused["severity_id"] != 2.0 {
		t.Errorf("what was refused is %v", refused)
	}
	if other["activity_id"] != 99.0 || other["type_uid"] != 600399.0 || len(other["resources"].([]any)) != 0 {
		t.Errorf("another activity is %v", other)
	}
}

func TestAuditCursors(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var entries []slipway.AuditEntry
	for range 7 {
		entries = append(entries, slipway.AuditEntry{Principal: ann, Operation: "update_deployment", Subject: "d"})
	}
	s.record(entries...)
	for _, c := range []struct{ path, list, id string }{
		{"/v2/audit-logs?principal=" + ann, "resources", "id"}, {"/api/v1/audit-logs?operation=update_deployment", "items", "metadata"},
	} {
		var seen []string
		cursor, pages := "", 0
		for more := true; more; pages++ {
			page := s.want(200, "GET", c.path+"&limit=3&cursor="+cursor, "")
			for _, e := range page[c.list].([]any) {
				seen = append(seen, fmt.Sprint(e.(map[string]any)[c.id]))
			}
			if cursor, more = page["cursor"].(string); pages == 0 { // what is written meanwhile is newer and does not come
				s.want(201, "POST", "/v2/tenants", `{"name":"meanwhile-`+c.list+`"}`)
			}
		}
		if pages != 3 || len(seen) != 7 {
			t.Errorf("%s: %d pages with %v, want 3 with 7", c.path, pages, seen)
		}
		for i, id := range seen {
			if want := fmt.Sprintf("e-%03d", 6-i); !strings.Contains(id, want) {
				t.Errorf("%s: place %d has %s, want %s", c.path, i, id, want)
			}
		}
	}
	for _, bad := range []string{"x", "MTIz", "%20"} {
		if status, text := s.raw(s.Key, "GET", "/v2/audit-logs?cursor="+bad, ""); status != 422 || !strings.Contains(string(text), "cursor") {
			t.Errorf("cursor %q = %d %s, want 422 about the cursor", bad, status, text)
		}
	}
}
