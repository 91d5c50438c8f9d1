package main

import (
	"encoding/json"
	"testing"

	"github.com/slipway-dev/slipway"
)

func TestEachPartGoesToTheWorkersOfItsLanguage(t *testing.T) {
	t.Parallel()
	python := map[string]slipway.BundleGraph{"a": {Spec: "./a.py:g", Language: slipway.Python}}
	node := map[string]slipway.BundleGraph{"b": {Spec: "./b.ts:g", Language: slipway.Node}}
	both := map[string]slipway.BundleGraph{"a": python["a"], "b": node["b"]}
	for name, c := range map[string]struct {
		graphs      map[string]slipway.BundleGraph
		config, env string
		want        string
	}{
		"nothing": {both, `{"http":{"disable_webhooks":true}}`, "", `{}`},
		"python auth beside node graphs": {node, `{"auth":{"path":"./auth.py:auth"}}`, "",
			`{"python":{"auth":{"path":"./auth.py:auth"}}}`},
		"an app": {both, `{"http":{"app":"./app.ts:app"}}`, "",
			`{"node":{"app":{"path":"./app.ts:app","middleware_first":true}}}`},
		"an app behind authentication": {both, `{"http":{"app":"pkg.web:app","middleware_order":"auth_first"}}`, "",
			`{"python":{"app":{"path":"pkg.web:app","middleware_first":false}}}`},
		"a provider's embeddings": {both, `{"store":{"index":{"embed":"openai:small"}}}`, "",
			`{"python":{"embed":{"spec":"openai:small"}}}`},
		"a provider's embeddings without python": {node, `{"store":{"index":{"embed":"openai:small"}}}`, "",
			`{"node":{"embed":{"spec":"openai:small"}}}`},
		"own embeddings": {both, `{"store":{"path":"./s.py:s","index":{"embed":"./e.mjs:e"}}}`, "",
			`{"node":{"embed":{"spec":"./e.mjs:e"}},"python":{"store":{"path":"./s.py:s"}}}`},
		"a checkpointer": {both, `{"checkpointer":{"path":"./c.py:c","serde":{"pickle_fallback":true}}}`, "",
			`{"python":{"checkpointer":{"path":"./c.py:c","serde":{"pickle_fallback":true}}}}`},
		"types only":         {node, `{"checkpointer":{"serde":{"pickle_fallback":true}}}`, "", `{}`},
		"encryption by key":  {both, `{}`, "k", `{"node":{"encryption":{"aes":true}},"python":{"encryption":{"aes":true}}}`},
		"encryption by code": {both, `{"encryption":{"path":"./x.py:x"}}`, "k", `{"python":{"encryption":{"path":"./x.py:x"}}}`},
	} {
		bundle := slipway.Bundle{Graphs: c.graphs, Config: json.RawMessage(c.config), Env: map[string]string{"LANGGRAPH_AES_KEY": c.env}}
		parts, err := partsOf(bundle, withEnv(bundle, getenvOf(nil)))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := json.Marshal(parts); string(got) != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
