package main

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
)

func TestTheEnvironmentStandsAboveTheBundlesConfiguration(t *testing.T) {
	t.Parallel()
	bundle := func() slipway.Bundle {
		return slipway.Bundle{
			Config: json.RawMessage(`{"graphs":{"a":"./a.mjs:g"},"http":{"disable_mcp":true},"auth":{"path":"./auth.mjs:auth"}}`),
			Graphs: map[string]slipway.BundleGraph{"a": {Spec: "./a.mjs:g", Language: slipway.Node}},
			Env:    map[string]string{"LANGGRAPH_HTTP": `{"app":"bundle.mjs:app"}`, "LANGGRAPH_AUTH": `{"path":"bundle.mjs:auth"}`},
		}
	}
	b := bundle()
	env := map[string]string{"LANGGRAPH_HTTP": `{"app":"own.mjs:app"}`, "LANGSERVE_GRAPHS": `{"b":"b.mjs:h"}`}
	if err := overrideConfig(&b, withEnv(b, getenvOf(env)), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if want := `{"auth":{"path":"./bundle.mjs:auth"},"graphs":{"b":"./b.mjs:h"},"http":{"app":"./own.mjs:app"}}`; string(b.Config) != want {
		t.Errorf("got %s, want %s", b.Config, want)
	}
	if got := b.Graphs["b"]; len(b.Graphs) != 1 || got.Spec != "./b.mjs:h" || got.Language != slipway.Node {
		t.Errorf("got the graphs %+v", b.Graphs)
	}
	b, env = bundle(), map[string]string{"LANGGRAPH_STORE": `{"ttl":{"default_ttl":0}}`}
	if err := overrideConfig(&b, withEnv(b, getenvOf(env)), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "LANGGRAPH_STORE: store.ttl.default_ttl is 0") {
		t.Errorf("got %v, want variable, key and value", err)
	}
}
