package agentapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-dev/slipway/api/agentapi"
	"github.com/slipway-dev/slipway/api/answers"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

const golden = "../../openapi/agent.json"

// described is the description of a server with all its routes.
var described = sync.OnceValue(func() []byte { return description(agentapi.Config{}) })

// truth holds answers against it.
var truth = sync.OnceValue(func() *answers.Check {
	c, err := answers.New(described())
	if err != nil {
		panic(err)
	}
	return c
})

func description(cfg agentapi.Config) []byte {
	cfg.Log = slog.New(slog.DiscardHandler)
	w := httptest.NewRecorder()
	agentapi.New(&fake{}, cfg).ServeHTTP(w, httptest.NewRequest("GET", cfg.MountPrefix+"/openapi.json", nil))
	return w.Body.Bytes()
}

// truthful returns the handler with every answer held against the description.
func truthful(t testing.TB, h http.Handler) http.Handler {
	return truth().Handler(h, func(wrong string) { t.Error(wrong) })
}

func TestDescriptionIsCheckedIn(t *testing.T) {
	t.Parallel()
	got := described()
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("/openapi.json differs from openapi/agent.json; look at the difference, then: go test ./api/agentapi -run Description -update")
	}
}

// operations lists what a description says there is: the method and path of each operation by its id.
func operations(t *testing.T, document []byte) map[string]string {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if out[op.OperationID] != "" {
				t.Errorf("two operations are called %q", op.OperationID)
			}
			out[op.OperationID] = strings.ToUpper(method) + " " + path
		}
	}
	return out
}

func TestEveryRouteIsInTheTable(t *testing.T) {
	t.Parallel()
	parameter := regexp.MustCompile(`\{[^}]+\}`)
	var all []string
	for _, call := range operations(t, described()) {
		all = append(all, parameter.ReplaceAllString(call, "{}"))
	}
	for _, route := range agentapi.New(&fake{}, agentapi.Config{}).Routes() {
		if route == "GET /runs/{first}/{second}" { // two operations whose paths the router cannot tell apart
			continue
		}
		if !slices.Contains(all, parameter.ReplaceAllString(route, "{}")) {
			t.Errorf("%s is not described; give it a row in openapi_*.go", route)
		}
	}
}

func TestEveryReferenceOfTheDescriptionIsThere(t *testing.T) {
	t.Parallel()
	var doc struct {
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(described(), &doc); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllStringSubmatch(string(described()), -1) {
		used[m[1]] = true
		if doc.Components.Schemas[m[1]] == nil {
			t.Errorf("there is no shape %q", m[1])
		}
	}
	for name := range doc.Components.Schemas {
		if !used[name] {
			t.Errorf("nothing uses the shape %q", name)
		}
	}
}

func TestDescriptionFollowsTheConfiguration(t *testing.T) {
	t.Parallel()
	got := description(agentapi.Config{MountPrefix: "/agents", Version: "1.2.3", Security: agentapi.Security{
		Schemes:      json.RawMessage(`{"key":{"type":"apiKey","in":"header","name":"X-Api-Key"}}`),
		Requirements: json.RawMessage(`[{"key":[]}]`),
	}})
	var doc struct {
		Info       struct{ Version string }
		Servers    []struct{ URL string }
		Security   []map[string][]string
		Components struct{ SecuritySchemes map[string]map[string]string }
		Paths      map[string]map[string]struct{ Security *[]any }
	}
	if err := json.Unmarshal(got, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Info.Version != "1.2.3" || len(doc.Servers) != 1 || doc.Servers[0].URL != "/agents" {
		t.Errorf("version %q, servers %v", doc.Info.Version, doc.Servers)
	}
	if len(doc.Security) != 1 || doc.Security[0]["key"] == nil || doc.Components.SecuritySchemes["key"]["name"] != "X-Api-Key" {
		t.Errorf("security %v, schemes %v", doc.Security, doc.Components.SecuritySchemes)
	}
	if open := doc.Paths["/ok"]["get"].Security; open == nil || len(*open) != 0 {
		t.Errorf("/ok asks for %v, want [] in so many words", open)
	}
	if asks := doc.Paths["/threads"]["post"].Security; asks != nil {
		t.Errorf("POST /threads overrides the requirement with %v", asks)
	}
}

func TestDocsPageNamesEveryOperation(t *testing.T) {
	t.Parallel()
	w := send(t, &fake{}, "GET", "/docs", "")
	page, _ := io.ReadAll(w.Body)
	for id := range operations(t, described()) {
		if !bytes.Contains(page, []byte(`id="`+id+`"`)) {
			t.Errorf("%s is not on the page", id)
		}
	}
	if m := regexp.MustCompile(`(src|href)="(https?:)?//[^"]*"`).Find(page); m != nil {
		t.Errorf("the page needs %s from elsewhere", m)
	}
	for _, want := range []string{"multitask_strategy", "reject | rollback | interrupt | enqueue", "integer 1..1000"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("%q is not on the page", want)
		}
	}
}
