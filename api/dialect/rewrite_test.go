package dialect

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestDocumentsInBothDirections(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"deployment", "listeners"} {
		canonical, upstream := read(t, name+".canonical.json"), read(t, name+".upstream.json")
		if got, _ := outward().translate(canonical); !bytes.Equal(got, upstream) {
			t.Errorf("%s outward:\n%s\nwant\n%s", name, got, upstream)
		}
		for what, tree := range map[string]*tree{"root": inward(nil), "mount": mounted(kinds), "patch": patching(kinds)} {
			if got, problems := tree.translate(upstream); !bytes.Equal(got, canonical) || problems != nil {
				t.Errorf("%s inward (%s): %v\n%s\nwant\n%s", name, what, problems, got, canonical)
			}
			if got, _ := tree.translate(canonical); &got[0] != &canonical[0] {
				t.Errorf("%s is canonical and comes back changed (%s):\n%s", name, what, got)
			}
		}
	}
}

func TestErrorsOutward(t *testing.T) {
	t.Parallel()
	if got, _ := failing().translate(read(t, "error.canonical.json")); !bytes.Equal(got, read(t, "error.upstream.json")) {
		t.Errorf("got\n%s", got)
	}
	text := `{"detail":"source external_container takes no agentgraph_config_path"}`
	if got, _ := failing().translate([]byte(text)); string(got) != `{"detail":"source external_docker takes no langgraph_config_path"}` {
		t.Errorf("got %s", got)
	}
	literal := `{"detail":"only available for 'internal_docker' source deployments"}`
	if got, _ := failing().translate([]byte(literal)); string(got) != literal {
		t.Errorf("got %s", got)
	}
}

// TestEveryName holds that each entry of the table works in both directions.
func TestEveryName(t *testing.T) {
	t.Parallel()
	for _, n := range names {
		for _, at := range n.at {
			upstream, canonical := nested(at+"."+n.upstream, `"x"`), nested(at+"."+n.canonical, `"x"`)
			if got, _ := inward(nil).translate([]byte(upstream)); string(got) != canonical {
				t.Errorf("inward %s = %s, want %s", upstream, got, canonical)
			}
			if got, _ := outward().translate([]byte(canonical)); string(got) != upstream {
				t.Errorf("outward %s = %s, want %s", canonical, got, upstream)
			}
		}
	}
	for _, v := range values {
		upstream, canonical := nested(v.at, `"`+v.upstream+`"`), nested(v.at, `"`+v.canonical+`"`)
		if got, _ := inward(nil).translate([]byte(upstream)); string(got) != canonical {
			t.Errorf("inward %s = %s, want %s", upstream, got, canonical)
		}
		if got, _ := outward().translate([]byte(canonical)); string(got) != upstream {
			t.Errorf("outward %s = %s, want %s", canonical, got, upstream)
		}
	}
}

// nested puts a value at a position of an otherwise empty document.
func nested(position, value string) string {
	parts := strings.Split(position, ".")
	for i := len(parts) - 1; i >= 0; i-- {
		value = `{"` + parts[i] + `":` + value + `}`
	}
	return value
}

func TestBothSpellings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want string }{
		{`{"source_revision_config":{"langgraph_config_path":"a","agentgraph_config_path":"a"}}`, "a"},
		{`{"source_revision_config":{"agentgraph_config_path":"a","langgraph_config_path":"a"}}`, "a"},
		{`{"source_revision_config":{"agentgraph_config_path":"\u0061","langgraph_config_path":"a"}}`, "a"},
		{`{"source_revision_config":{"agentgraph_config_path":null,"langgraph_config_path":"a"}}`, "a"},
		{`{"source_revision_config":{"langgraph_config_path":null,"agentgraph_config_path":"a"}}`, "a"},
		{`{"source_revision_config":{"langgraph_config_path":"a","agentgraph_config_path":null}}`, "a"},
		{`{"source_revision_config":{"\u006canggraph_config_path":"a","agentgraph_config_path":null}}`, "a"},
		{`{"source_revision_config":{"langgraph_config_path":"a","agentgraph_config_path":"b"}}`, ""},
		{`{"source_revision_config":{"agentgraph_config_path":"b","langgraph_config_path":"a"}}`, ""},
	} {
		got, problems := inward(nil).translate([]byte(test.in))
		if test.want == "" {
			if len(problems) != 1 || !reflect.DeepEqual(problems[0].Loc, []any{"body", "source_revision_config", "agentgraph_config_path"}) ||
				!strings.Contains(problems[0].Msg, "langgraph_config_path and agentgraph_config_path") {
				t.Errorf("%s: problems %v", test.in, problems)
			}
			continue
		}
		var doc struct {
			Config map[string]any `json:"source_revision_config"`
		}
		if err := json.Unmarshal(got, &doc); err != nil || doc.Config["agentgraph_config_path"] != test.want || len(problems) > 0 {
			t.Errorf("%s = %s %v %v", test.in, got, problems, err)
		}
		if strings.Count(string(got), `"agentgraph_config_path"`) != 1 {
			t.Errorf("%s = %s: the field is there twice", test.in, got)
		}
	}
	_, problems := mounted(nil).translate([]byte(`{"source_config":{"resource_spec":{"redis_cpu":1,"cache_cpu":2}}}`))
	if len(problems) != 1 || !reflect.DeepEqual(problems[0].Loc, []any{"body", "source_config", "resource_spec", "redis_cpu"}) {
		t.Errorf("below the mount: %v", problems)
	}
	if _, problems := inward(nil).translate([]byte(`{"source_config":{"resource_spec":{"redis_cpu":1.0,"cache_cpu":1}}}`)); problems != nil {
		t.Errorf("equal numbers: %v", problems)
	}
}

func TestWhatOnlyTheMountReads(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		tree     *tree
		in, want string
	}{
		{patching(kinds), `{"secrets":[ ]}`, `{"secrets":null}`},
		{patching(kinds), `{"secrets":[{}]}`, `{"secrets":[{}]}`},
		{mounted(kinds), `{"secrets":[]}`, `{"secrets":[]}`},
		{inward(nil), `{"secrets":[]}`, `{"secrets":[]}`},
		{mounted(kinds), `{"source_config":{"deployment_type":"dev_zero"}}`, `{"source_config":{"deployment_type":"dev"}}`},
		{inward(nil), `{"source_config":{"deployment_type":"dev_zero"}}`, `{"source_config":{"deployment_type":"dev_zero"}}`},
	} {
		if got, _ := test.tree.translate([]byte(test.in)); string(got) != test.want {
			t.Errorf("%s = %s, want %s", test.in, got, test.want)
		}
	}
}

// TestBrokenTextsStayBroken holds that no translation turns what is no JSON into something that is.
func TestBrokenTextsStayBroken(t *testing.T) {
	t.Parallel()
	whole := string(read(t, "deployment.upstream.json"))
	for end := range len(whole) - 2 {
		if got, _ := inward(nil).translate([]byte(whole[:end])); json.Valid(got) {
			t.Fatalf("cut at %d: %s", end, got)
		}
	}
	for _, text := range []string{``, `[`, `]`, `{"source":}`, `{"source" "github"}`, `{"source":"github"]`, `{source:"github"}`, `{"source":"github",}`, `"\`} {
		if got, _ := inward(nil).translate([]byte(text)); json.Valid(got) {
			t.Errorf("%s = %s", text, got)
		}
	}
}

func TestDeepTextsAreNotDescendedInto(t *testing.T) {
	t.Parallel()
	deep := []byte(strings.Repeat(`{"resources":[`, 1<<20))
	if got, _ := inward(nil).translate(deep); !bytes.Equal(got, deep) {
		t.Error("changed")
	}
}

func FuzzTranslate(f *testing.F) {
	for _, name := range []string{"deployment", "listeners", "error"} {
		f.Add(read(f, name+".canonical.json"))
		f.Add(read(f, name+".upstream.json"))
	}
	f.Add([]byte(`{"source_revision_config":{"langgraph_config_path":"a","agentgraph_config_path":"b"},"\u0073ource":["github"]}`))
	in, out, patch, failed := inward(nil), outward(), patching(kinds), failing()
	f.Fuzz(func(t *testing.T, text []byte) {
		valid := json.Valid(text)
		for _, tree := range []*tree{in, out, patch, failed} {
			if got, _ := tree.translate(text); json.Valid(got) != valid {
				t.Fatalf("%q valid %v became %q", text, valid, got)
			}
		}
		if canonical, problems := in.translate(text); !valid || problems != nil || !bytes.Equal(canonical, text) {
			return // only what is canonical must come back
		}
		upstream, _ := out.translate(text)
		back, problems := in.translate(upstream)
		if problems != nil || !same(back, text) {
			t.Fatalf("%s went out as %s and came back as %s %v", text, upstream, back, problems)
		}
	})
}

func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func BenchmarkTranslate(b *testing.B) {
	for _, bench := range []struct {
		name string
		tree *tree
		text []byte
	}{
		{"patch, upstream", patching(kinds), read(b, "deployment.upstream.json")},
		{"patch, canonical", inward(nil), read(b, "deployment.canonical.json")},
		{"answer", outward(), read(b, "deployment.canonical.json")},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(bench.text)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = bench.tree.translate(bench.text)
			}
		})
	}
}
