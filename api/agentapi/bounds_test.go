package agentapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// What costs a look into the database, a row or a walk for each of its elements is bounded.
func TestListsOfARequestAreBounded(t *testing.T) {
	t.Parallel()
	ids := func(n int) string { return strings.TrimSuffix(strings.Repeat(`"`+thread+`",`, n), ",") }
	for _, c := range []struct{ path, body, detail string }{
		{"/threads/search", `{"ids":[` + ids(1001) + `]}`, "body.ids: has 1001 ids; give at most 1000"},
		{"/threads/prune", `{"thread_ids":[` + ids(1001) + `]}`, "body.thread_ids: has 1001 ids; give at most 1000"},
		{"/runs/cancel", `{"thread_id":"` + thread + `","run_ids":[` + ids(1001) + `]}`, "body.run_ids: has 1001 ids; give at most 1000"},
		{"/runs/batch", `[` + strings.Repeat(`{"assistant_id":"a"},`, 1000) + `{"assistant_id":"a"}]`, "has 1001 run creations; give at most 1000"},
		{"/threads/search", `{"extract":{"x":"values` + strings.Repeat("[0]", 501) + `"}}`, "has 501 steps; give at most 500"},
	} {
		rec := sendLong(t, &fake{}, http.MethodPost, c.path, c.body)
		var told struct{ Detail string }
		if err := json.Unmarshal(rec.Body.Bytes(), &told); err != nil || rec.Code != 422 || !strings.Contains(told.Detail, c.detail) {
			t.Errorf("%s: got %d %.200s, want 422 with %q", c.path, rec.Code, rec.Body, c.detail)
		}
	}
}

// A thread that is named a thousand times is looked for once.
func TestIDsAreTakenOnce(t *testing.T) {
	t.Parallel()
	f := &fake{}
	sendLong(t, f, http.MethodPost, "/threads/search", `{"ids":[`+strings.TrimSuffix(strings.Repeat(`"`+thread+`",`, 1000), ",")+`]}`)
	if got := len(f.wanted.IDs); got != 1 {
		t.Errorf("got %d ids, want 1", got)
	}
}
