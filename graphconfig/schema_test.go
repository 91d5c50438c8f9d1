package graphconfig_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/graphconfig"
)

const (
	pythonApp = `"python_version": "3.11", "dependencies": ["."], "graphs": {"a": "./a.py:g"}`
	nodeApp   = `"graphs": {"a": "./a.js:g"}`
)

// TestEveryKeyTakesWhatItShould gives each key of control-plane reference 7 its valid forms.
func TestEveryKeyTakesWhatItShould(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"env": {}`, `"env": {"A": "1", "B": 2, "C": true, "D": 1.5}`, `"env": "./.env"`, `"env": null`,
		`"node_version": "22"`, `"node_version": null`, `"api_version": "0.4"`, `"api_version": "0.4.12"`, `"api_version": "1"`, `"api_version": "0.5.0rc1"`,
		`"api_version": "0.5.0.dev3"`, `"api_version": "~=0.4"`, `"api_version": ">~=0.4.1"`, `"api_version": "~=0.4", "base_image": "host:5000/name"`,
		`"base_image": "x:1"`, `"image_distro": "debian"`, `"image_distro": "wolfi"`, `"image_distro": "bookworm"`,
		`"pip_config_file": "./pip.conf"`, `"pip_installer": "auto"`, `"pip_installer": "pip"`, `"pip_installer": "uv"`,
		`"dockerfile_lines": []`, `"dockerfile_lines": ["RUN x"]`,
		`"store": {"index": {"dims": 3, "embed": "openai:m"}}`, `"store": {"index": {"dims": 3, "embed": "./e.py:f", "fields": ["$", "a.b"]}}`,
		`"store": {"ttl": {"refresh_on_read": false, "default_ttl": 1.5, "sweep_interval_minutes": 5}}`, `"store": {"path": "./s.py:open"}`, `"store": {"more": [1]}`,
		`"checkpointer": {"backend": "default"}`, `"checkpointer": {"backend": "mongo"}`, `"checkpointer": {"backend": "custom", "path": "./c.py:open"}`,
		`"checkpointer": {"ttl": {"strategy": "delete", "default_ttl": 43200, "sweep_interval_minutes": 5, "sweep_limit": 1000}}`,
		`"checkpointer": {"ttl": {"strategy": "keep_latest", "default_ttl": null}}`,
		`"checkpointer": {"serde": {"allowed_json_modules": [["a", "b"]], "allowed_msgpack_modules": true, "pickle_fallback": false}}`,
		`"auth": {"path": "./auth.py:auth", "disable_studio_auth": true}`, `"auth": {"path": "pkg.auth:auth", "unknown": 1}`,
		`"auth": {"path": "./a.ts:auth", "openapi": {"securitySchemes": {}, "security": [{"x": []}], "paths": {}}}`,
		`"auth": {"path": "./a.py:a", "cache": {"cache_keys": ["authorization"], "ttl_seconds": 60, "max_size": 10}}`,
		`"encryption": {"path": "./e.py:e"}`,
		`"http": {"app": "./web.py:app", "disable_assistants": true, "disable_threads": true, "disable_runs": true, "disable_store": true, "disable_mcp": true,
			"disable_a2a": true, "disable_meta": true, "disable_ui": true, "disable_webhooks": true, "enable_custom_route_auth": true, "mount_prefix": "/x",
			"middleware_order": "auth_first"}`,
		`"http": {"cors": {"allow_origins": ["*"], "allow_methods": ["GET"], "allow_headers": [], "allow_credentials": true, "allow_origin_regex": ".*",
			"expose_headers": ["x"], "max_age": 0}}`,
		`"http": {"configurable_headers": {"includes": ["x-*"], "excludes": null}, "logging_headers": {"excludes": ["*"]}, "middleware_order": "middleware_first"}`,
		`"webhooks": {"url": {"require_https": true, "allowed_domains": ["*.x.com"], "allowed_ports": [443], "max_url_length": 100, "disable_loopback": true}}`,
		`"webhooks": {"headers": {"authorization": "Bearer ${{ env.LG_WEBHOOK_TOKEN }}"}}`, `"webhooks": {"env_prefix": "X_", "headers": {"a": "${{env.X_A}}-${{ env.X_B }}"}}`,
		`"ui": {"card": "./src/card.tsx"}`, `"ui_config": {"shared": ["react"]}`, `"keep_pkg_tools": true`, `"keep_pkg_tools": ["pip", "wheel"]`,
		`"_INTERNAL_docker_tag": "x"`, `"disable_persistence": true`, `"$schema": 7`, `"node_loader": "tsx"`,
	} {
		for _, app := range []string{pythonApp, nodeApp} {
			c, err := graphconfig.Parse([]byte(`{` + app + `, ` + member + `}`))
			if err != nil || len(c.Warnings) > 0 {
				t.Errorf("%s: got %v, %v", member, err, c.Warnings)
			}
		}
	}
	for _, whole := range []string{
		`{"python_version": "3.13", "source": {"kind": "uv"}, "graphs": {"a": "./a.py:g"}}`,
		`{"python_version": "3.11", "source": {"kind": "uv", "root": "../..", "package": "x", "other": 1}, "graphs": {"a": "pkg.mod:g"}}`,
		`{"dependencies": ["../lib", "langgraph>=1", "x @ git+https://host/x", "git+https://host/y@v1"], "graphs": {"a": {"path": "pkg:make_graph", "description": null, "z": 1}}}`,
		"\xef\xbb\xbf{\"graphs\": {\"a\": \"./ünï/côde.mjs:grâph\"}}",
	} {
		if _, err := graphconfig.Parse([]byte(whole)); err != nil {
			t.Errorf("%s: got %v", whole, err)
		}
	}
}

// TestEveryKeyRefusesWhatItShould gives each key what it may not hold. Every message names key and value.
func TestEveryKeyRefusesWhatItShould(t *testing.T) {
	t.Parallel()
	for member, want := range map[string]string{
		`"graphs": "x"`:                `graphs is "x": it must be an object`,
		`"graphs": {"a": {}}`:          "graphs.a has no path",
		`"graphs": {"a": {"path": 1}}`: "graphs.a.path is 1",
		`"graphs": {"a": {"path": "./a.js:g", "description": 1}}`:        "graphs.a.description is 1: it must be a string",
		`"graphs": {"": "./a.js:g"}`:                                     "a graph without a name",
		`"graphs": {"a": "/abs/a.js:g"}`:                                 "relative to this file",
		`"graphs": {"a": "C:\\a.js:g"}`:                                  "relative to this file",
		`"graphs": {"a": "./a.rb:g"}`:                                    "must end in .py",
		`"graphs": {"a": "my-mod:g"}`:                                    "neither a path with a slash nor a dotted module",
		`"graphs": {"a": "./a.js:not a name"}`:                           `"not a name" is no name`,
		`"dependencies": "."`:                                            `dependencies is ".": it must be an array`,
		`"dependencies": [1]`:                                            "dependencies[0] is 1",
		`"dependencies": [""]`:                                           "dependencies[0]",
		`"dependencies": ["-e ."]`:                                       "an option of pip",
		`"dependencies": ["/abs"]`:                                       "starts with a dot",
		`"dependencies": ["x @ file:///etc"]`:                            "starts with a dot",
		`"dependencies": ["git+ssh://h/x"]`:                              "git+https",
		`"dependencies": ["a\nb"]`:                                       "one line",
		`"env": []`:                                                      "env must be an object",
		`"env": {"A": null}`:                                             "env.A must be a string",
		`"env": {"A=B": "1"}`:                                            `"A=B"`,
		`"env": "/etc/env"`:                                              "relative to this file",
		`"python_version": "3"`:                                          "major.minor",
		`"python_version": "4.1"`:                                        "major.minor",
		`"node_version": 20`:                                             "node_version is 20: write a major version",
		`"node_version": "20.1"`:                                         `node_version is "20.1"`,
		`"api_version": "latest"`:                                        `api_version is "latest"`,
		`"api_version": "1.2.3.4"`:                                       "api_version",
		`"api_version": ">=1"`:                                           "api_version",
		`"api_version": "~=1", "base_image": "a/b:tag"`:                  "remove the tag",
		`"api_version": "1", "_INTERNAL_docker_tag": "x"`:                "do not go together",
		`"base_image": ""`:                                               "base_image",
		`"image_distro": "debain"`:                                       `did you mean "debian"?`,
		`"pip_config_file": "/etc/pip.conf"`:                             "relative to this file",
		`"pip_installer": 1`:                                             "pip_installer is 1: it must be one of auto, pip, uv",
		`"source": "uv"`:                                                 `source is "uv": it must be an object`,
		`"source": {}`:                                                   "source.kind is missing",
		`"dockerfile_lines": "RUN x"`:                                    "dockerfile_lines",
		`"store": 1`:                                                     "store is 1",
		`"store": {"index": {}}`:                                         "store.index.dims is missing",
		`"store": {"index": {"dims": 0, "embed": "a:b"}}`:                "store.index.dims is 0",
		`"store": {"index": {"dims": 1.5, "embed": "a:b"}}`:              "store.index.dims is 1.5",
		`"store": {"index": {"dims": 1, "embed": "./e.py"}}`:             `store.index.embed is "./e.py"`,
		`"store": {"index": {"dims": 1, "embed": "a:b", "fields": "$"}}`: "store.index.fields",
		`"store": {"ttl": {"default_ttl": 0}}`:                           "store.ttl.default_ttl is 0: it must be a number above 0",
		`"store": {"ttl": {"refresh_on_read": "yes"}}`:                   "store.ttl.refresh_on_read",
		`"checkpointer": {"backend": "redis"}`:                           `checkpointer.backend is "redis"`,
		`"checkpointer": {"backend": "custom"}`:                          "checkpointer.path is missing",
		`"checkpointer": {"path": "./c.py"}`:                             "checkpointer.path",
		`"checkpointer": {"ttl": {"strategy": "keep"}}`:                  "checkpointer.ttl.strategy",
		`"checkpointer": {"ttl": {"sweep_limit": 0}}`:                    "checkpointer.ttl.sweep_limit is 0",
		`"checkpointer": {"serde": {"pickle_fallback": 1}}`:              "checkpointer.serde.pickle_fallback",
		`"checkpointer": {"serde": {"allowed_json_modules": "x"}}`:       "allowed_json_modules",
		`"auth": {"path": "./auth.py"}`:                                  `auth.path is "./auth.py"`,
		`"auth": {"openapi": {"security": {}}}`:                          "auth.openapi.security",
		`"auth": {"cache": {"ttl_seconds": "60"}}`:                       `auth.cache.ttl_seconds is "60"`,
		`"auth": {"cache": {"max_size": 0}}`:                             "auth.cache.max_size",
		`"encryption": {}`:                                               "encryption.path is missing",
		`"encryption": {"path": "x"}`:                                    `encryption.path is "x"`,
		`"http": {"app": "./web.py"}`:                                    `http.app is "./web.py"`,
		`"http": {"disable_mcp": "true"}`:                                "http.disable_mcp",
		`"http": {"cors": {"allow_origins": "*"}}`:                       `http.cors.allow_origins is "*": it must be an array`,
		`"http": {"cors": {"max_age": -1}}`:                              "http.cors.max_age is -1",
		`"http": {"middleware_order": "first"}`:                          "http.middleware_order",
		`"http": {"mount_prefix": "x"}`:                                  "http.mount_prefix",
		`"http": {"configurable_headers": {"includes": "x"}}`:            "http.configurable_headers.includes",
		`"webhooks": {"headers": {"a": "${{ env.SECRET }}"}}`:            "env.LG_WEBHOOK_NAME",
		`"webhooks": {"headers": {"a": "${{ secrets.X }}"}}`:             "webhooks.headers.a",
		`"webhooks": {"url": {"allowed_ports": [0]}}`:                    "webhooks.url.allowed_ports[0] is 0",
		`"webhooks": {"url": {"max_url_length": -1}}`:                    "webhooks.url.max_url_length",
		`"ui": {"card": 1}`:                                              "ui.card",
		`"ui_config": []`:                                                "ui_config is an array: it must be an object",
		`"keep_pkg_tools": ["conda"]`:                                    "keep_pkg_tools",
		`"package": "x"`:                                                 "source.package",
		`"disable_persistence": "no"`:                                    "disable_persistence",
	} {
		app := nodeApp
		if strings.HasPrefix(member, `"graphs"`) {
			app = `"env": {}`
		}
		_, err := graphconfig.Parse([]byte(`{` + app + `, ` + member + `}`))
		if slipway.ErrorCode(err) != slipway.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", member, err, want)
		}
	}
}

// TestTheTableIsComplete holds the keys that are known to those of the reference.
func TestTheTableIsComplete(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"graphs", "dependencies", "env", "python_version", "node_version", "api_version", "base_image", "image_distro", "pip_config_file",
		"pip_installer", "source", "dockerfile_lines", "store", "checkpointer", "auth", "encryption", "http", "webhooks", "ui", "ui_config",
		"keep_pkg_tools", "_INTERNAL_docker_tag", "project_root", "package", "disable_persistence",
	} {
		c, _ := graphconfig.Parse([]byte(`{` + `"` + key + `": null}`))
		if len(c.Warnings) > 0 {
			t.Errorf("%s: got %v", key, c.Warnings)
		}
		c, _ = graphconfig.Parse([]byte(`{"` + key + `x": null}`))
		if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "did you mean") {
			t.Errorf("%sx: got %v, want a suggestion", key, c.Warnings)
		}
	}
}

func TestFindingsAreAllToldAndBounded(t *testing.T) {
	t.Parallel()
	_, found := graphconfig.Read([]byte(`{"graphs": {"a": "x"}, "env": 1, "http": {"app": 1, "cors": 1}, "python_version": 3}`))
	var keys []string
	for _, f := range found {
		keys = append(keys, f.Key)
	}
	if want := []string{"env", "graphs.a", "http.app", "http.cors", "python_version"}; !slices.Equal(keys, want) {
		t.Errorf("got %q, want %q", keys, want)
	}
	many := `{"graphs": {"a": "./a.js:g"}, "dependencies": [` + strings.Repeat("1,", 5000) + `1]}`
	if _, found = graphconfig.Read([]byte(many)); len(found) > 50 {
		t.Errorf("got %d findings, want a bound", len(found))
	}
	if _, err := graphconfig.Parse([]byte(`{"x": "` + strings.Repeat("x", 2<<20) + `"}`)); err == nil || !strings.Contains(err.Error(), "is the limit") {
		t.Errorf("a huge file: got %.100v", err)
	}
}

func TestEffectiveIsOneForm(t *testing.T) {
	t.Parallel()
	c, err := graphconfig.Parse([]byte(`{"dependencies": ["."], "graphs": {"a": "src\\a.py:g", "b": {"path": "pkg.mod:g", "description": "d"}, "c": "../up/c.mjs"},
		"auth": {"path": "auth/auth.py:auth", "keep": 1}, "encryption": {"path": ".//e.py:e"}, "checkpointer": {"path": "../c.py:c", "backend": "custom"},
		"store": {"path": "pkg.store:open", "index": {"dims": 3, "embed": "lib/embed.py:f"}}, "http": {"app": "web/app.ts:app"}, "ui": {"x": "ui/x.tsx"},
		"env": {"A": 1}, "unknown": {"big": 12345678901234567890}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"auth":{"keep":1,"path":"./auth/auth.py:auth"},"checkpointer":{"backend":"custom","path":"../c.py:c"},"dependencies":["."],"encryption":{"path":"./e.py:e"},` +
		`"env":{"A":1},"graphs":{"a":"./src/a.py:g","b":{"description":"d","path":"pkg.mod:g"},"c":"../up/c.mjs:default"},"http":{"app":"./web/app.ts:app"},` +
		`"store":{"index":{"dims":3,"embed":"./lib/embed.py:f"},"path":"pkg.store:open"},"ui":{"x":"./ui/x.tsx"},"unknown":{"big":12345678901234567890}}`
	if got := string(c.Effective()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if again, err := graphconfig.Parse(c.Effective()); err != nil || string(again.Effective()) != want {
		t.Errorf("it does not stay: %v, %s", err, again.Effective())
	}
	if got := string(c.Raw); !strings.Contains(got, `src\\a.py`) {
		t.Errorf("the file as written changed: %s", got)
	}
	plain, _ := graphconfig.Parse([]byte(`{"graphs": {"a": "./a.js:g"}, "store": {"index": {"dims": 3, "embed": "openai:text-embedding-3-small"}}}`))
	if !strings.Contains(string(plain.Effective()), `"openai:text-embedding-3-small"`) {
		t.Errorf("got %s, want provider:model as it is", plain.Effective())
	}
}

func TestOverride(t *testing.T) {
	t.Parallel()
	file := json.RawMessage(`{"graphs": {"a": "./a.js:g"}, "http": {"mount_prefix": "/x", "disable_mcp": true}, "auth": {"path": "./a.ts:a"}}`)
	env := func(values map[string]string) func(string) string {
		return func(name string) string { return values[name] }
	}
	got, names, err := graphconfig.Override(file, env(map[string]string{
		"LANGGRAPH_HTTP": `{"app": "web/app.mjs:app"}`, "LANGSERVE_GRAPHS": `{"b": "b.py:g"}`, "LANGGRAPH_STORE": `{"ttl": {"default_ttl": 5}}`,
	}))
	want := `{"auth":{"path":"./a.ts:a"},"graphs":{"b":"./b.py:g"},"http":{"app":"./web/app.mjs:app"},"store":{"ttl":{"default_ttl":5}}}`
	if err != nil || string(got) != want || !slices.Equal(names, []string{"LANGGRAPH_HTTP", "LANGGRAPH_STORE", "LANGSERVE_GRAPHS"}) {
		t.Errorf("got %s of %q, %v, want %s", got, names, err, want)
	}
	graphs, err := graphconfig.BundleGraphs(got)
	if want := (slipway.BundleGraph{Spec: "./b.py:g", Language: slipway.Python}); err != nil || len(graphs) != 1 || graphs["b"] != want {
		t.Errorf("got the graphs %+v, %v, want %+v", graphs, err, want)
	}
	for name, value := range map[string]string{"LANGGRAPH_HTTP": "{", "LANGGRAPH_STORE": `{"ttl": {"default_ttl": -1}}`, "LANGSERVE_GRAPHS": "[]", "LANGGRAPH_WEBHOOKS": `{"headers": 1}`} {
		if _, _, err := graphconfig.Override(file, env(map[string]string{name: value})); slipway.ErrorCode(err) != slipway.CodeInvalid || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: got %v, want its name", name, value, err)
		}
	}
	if got, names, err := graphconfig.Override(file, env(nil)); err != nil || string(got) != string(file) || len(names) > 0 {
		t.Errorf("without variables: got %s, %q, %v", got, names, err)
	}
}
