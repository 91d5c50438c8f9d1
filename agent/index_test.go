package agent_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/agent"
)

func TestTextsOfPaths(t *testing.T) {
	t.Parallel()
	value := `{"a":{"b":"deep","n":12345678901234567890,"t":true,"z":null},"l":["x",{"b":"y"},{"b":"z"}],"m":[["p","q"],["r"]],"e":"  ","o":{"c":"<","a":1}}`
	for path, want := range map[string]string{
		"a.b": "a.b:deep", "l[0]": "l[0]:x", "l[-1].b": "l[-1].b:z", "l[*].b": "l[*].b#1:y l[*].b#2:z", "m[*][*]": "m[*][*]#0#0:p m[*][*]#0#1:q m[*][*]#1#0:r",
		"m[1][0]": "m[1][0]:r", "a.n": "a.n:12345678901234567890", "a.t": "a.t:true", "a.z": "", "e": "", "nope": "", "a.b.c": "", "l[9]": "", "l.b": "",
		"o": `o:{"a":1,"c":"<"}`, "$.a.b": "$.a.b:deep",
	} {
		fields, _ := json.Marshal([]string{path})
		texts, err := agent.Index{}.Texts(json.RawMessage(value), fields)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if got := show(texts); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if got, err := (agent.Index{}).Texts(json.RawMessage(`{"b":[1],"a":"x"}`), nil); err != nil || show(got) != `$:{"a":"x","b":[1]}` {
		t.Errorf("whole: got %v, %v", got, err)
	}
	if got, err := (agent.Index{Fields: []string{"a", "b"}}).Texts(json.RawMessage(`{"b":"2","a":"1"}`), json.RawMessage(`null`)); err != nil || show(got) != "a:1 b:2" {
		t.Errorf("the index's fields: got %v, %v", got, err)
	}
	if got, err := (agent.Index{}).Texts(json.RawMessage(`{}`), json.RawMessage(`false`)); err != nil || len(got) != 0 {
		t.Errorf("false: got %v, %v", got, err)
	}
}

func show(texts []agent.Text) string {
	var parts []string
	for _, x := range texts {
		parts = append(parts, x.Field+":"+x.Text)
	}
	return strings.Join(parts, " ")
}

func TestBadPathsAreRefused(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"a[", "a[x]", "a[0", "a]", "a..b", "a[1]b", "."} {
		if path == "a]" {
			continue // a name like any other
		}
		fields, _ := json.Marshal([]string{path})
		if err := agent.CheckFields(fields); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", path)) {
			t.Errorf("%s: got %v", path, err)
		}
	}
	for _, fields := range []string{`"a"`, `{}`, `[1]`, `3`} {
		if err := agent.CheckFields(json.RawMessage(fields)); err == nil {
			t.Errorf("%s is not refused", fields)
		}
	}
	for _, x := range []agent.Index{{Dims: 0}, {Dims: agent.MaxDims + 1}, {Dims: 3, Fields: []string{"a["}}} {
		if err := x.Check(); err == nil {
			t.Errorf("%+v is not refused", x)
		}
	}
}

func TestUnit(t *testing.T) {
	t.Parallel()
	if got := agent.Unit([]float32{3, 4}); math.Abs(float64(got[0])-0.6) > 1e-6 || math.Abs(float64(got[1])-0.8) > 1e-6 {
		t.Errorf("got %v, want 0.6 0.8", got)
	}
	for _, v := range [][]float32{{0, 0}, {float32(math.NaN()), 1}, {float32(math.Inf(1)), 1}} {
		if got := agent.Unit(v); got[0] != 0 || got[1] != 0 {
			t.Errorf("%v: got %v, want no direction", v, got)
		}
	}
}
