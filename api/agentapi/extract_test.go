package agentapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/agent"
)

func TestThreadSearchExtracts(t *testing.T) {
	t.Parallel()
	f := &fake{threads: []agent.Thread{{
		ID: thread, Values: json.RawMessage(`{"messages":[{"content":"a"},{"content":"b"}],"n":12345678901234567890}`),
		Metadata: json.RawMessage(`{"owner":{"name":"x"}}`),
	}}}
	body := `{"select":["thread_id"],"extract":{"last":"values.messages[-1].content","big":"values.n","who":"metadata.owner.name","none":"values.messages[7]","all":"interrupts"}}`
	got := send(t, f, http.MethodPost, "/threads/search", body)
	want := `[{"thread_id":"` + thread + `","extracted":{"all":null,"big":12345678901234567890,"last":"b","none":null,"who":"x"}}]`
	if got.Body.String() != want {
		t.Errorf("got %s\nwant %s", got.Body, want)
	}
	for _, wrong := range []string{`"messages[0]"`, `"values..x"`, `"values[x]"`, `"values.a[1"`, `7`} {
		got := send(t, f, http.MethodPost, "/threads/search", `{"extract":{"a":`+wrong+`}}`)
		if got.Code != http.StatusUnprocessableEntity || !strings.Contains(got.Body.String(), "extract") {
			t.Errorf("%s: got %d %s, want 422 naming extract", wrong, got.Code, got.Body)
		}
	}
}
