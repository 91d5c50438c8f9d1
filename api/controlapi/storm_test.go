package controlapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/api/controlapi"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/seal"
	"github.com/slipway-dev/slipway/store/sqlite"
)

// stormRequests is how many malformed requests TestNothingBreaksTheAPI sends; the seed of a failure is in its message.
const stormRequests = 3000

// TestNothingBreaksTheAPI sends what no client should, over every operation of the description, to a service on the real
// database: the answer is never the server's fault, and always JSON.
func TestNothingBreaksTheAPI(t *testing.T) {
	t.Parallel()
	for _, database := range []string{"sqlite", "postgres"} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			stormOn(t, newRealServer(t, database))
		})
	}
}

// stormOn sends the malformed requests to a server.
func stormOn(t *testing.T, s *server) {
	t.Helper()
	ids := []string{
		s.want(201, "POST", "/v2/deployments", createGit)["id"].(string),
		s.want(201, "POST", "/v2/deployments", createSource)["id"].(string),
	}
	all := s.described()
	for seed := range uint64(stormRequests) {
		storm := storm{rand.New(rand.NewPCG(seed, 1)), ids}
		op := all[storm.IntN(len(all))]
		target := storm.path(op)
		body := storm.body()
		req, err := http.NewRequest(op.method, base+target, strings.NewReader(body))
		if err != nil {
			continue // not even a URL
		}
		req.Header.Set("X-Api-Key", s.Key)
		req.Header.Set("Content-Type", pick(storm, "application/json", "application/json; charset=utf-8", "text/plain", "", "application/xml"))
		rec := httptest.NewRecorder()
		s.handler.ServeHTTP(rec, req)
		if rec.Code >= 500 {
			t.Errorf("seed %d: %s %s with %.200q = %d %s", seed, op.method, target, body, rec.Code, rec.Body)
		}
		if rec.Code != 204 && op.path != "/docs" && op.path != "/v2/audit-logs/export" && op.method != "PUT" && rec.Code/100 != 3 && !json.Valid(rec.Body.Bytes()) {
			t.Errorf("seed %d: %s %s answers no JSON: %d %q", seed, op.method, target, rec.Code, rec.Body)
		}
	}
}

func newStormServer(t *testing.T) *server {
	t.Helper()
	store, err := sqlite.OpenControl(filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	key, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	w := controltest.New(t, store, key, base)
	return &server{World: w, t: t, handler: truthful(t, controlapi.New(w.Service, controlapi.Config{BaseURL: base, Version: "test", Log: slog.New(slog.DiscardHandler)}))}
}

type operationParts struct {
	method, path string
	query        []string
}

// described lists the operations in a fixed order.
func (s *server) described() []operationParts {
	_, text := s.raw("", "GET", "/openapi.json", "")
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		s.t.Fatal(err)
	}
	var all []operationParts
	for path, methods := range doc.Paths {
		for method, op := range methods {
			parts := operationParts{method: strings.ToUpper(method), path: path}
			for _, p := range op.Parameters {
				if p.In == "query" {
					parts.query = append(parts.query, p.Name)
				}
			}
			all = append(all, parts)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].path+all[i].method < all[j].path+all[j].method })
	return all
}

// storm makes up what is sent.
type storm struct {
	*rand.Rand
	ids []string
}

func pick[T any](s storm, choices ...T) T { return choices[s.IntN(len(choices))] }

func (s storm) path(op operationParts) string {
	var out []string
	for _, part := range strings.Split(op.path, "/") {
		if strings.HasPrefix(part, "{") {
			part = pick(s, s.ids[0], s.ids[0], s.ids[1], strings.ToUpper(s.ids[1]), "00000000-0000-0000-0000-000000000000", url.PathEscape(s.text()))
		}
		out = append(out, part)
	}
	query := url.Values{}
	for _, name := range op.query {
		if s.IntN(2) == 0 {
			query.Add(name, pick(s, s.text(), "1", "-1", "99999999999999999999", "asc", "build", "READY", s.ids[0], "true", "2026-01-01T00:00:00Z", "9999999-01-01T00:00:00Z"))
		}
	}
	return strings.Join(out, "/") + "?" + query.Encode()
}

func (s storm) text() string {
	return pick(s, "", "x", "\x00", "\xff\xfe", "%", "' OR 1=1 --", "../../etc/passwd", strings.Repeat("a", 5000), "é́🜁", "••••••••", "null", "[]", "{}",
		"\u202e", "-", "a b", "refs/tags/v1", "refs/heads/x", "https://example.com/a.git", "ext::sh -c id", "--upload-pack=x", "uploads/x/y.tar.gz")
}

// body is JSON or nearly so.
func (s storm) body() string {
	switch s.IntN(12) {
	case 0:
		return ""
	case 1:
		return strings.Repeat("[", 20000)
	case 2:
		return strings.Repeat(`{"source_config":`, 5000) + "1" + strings.Repeat("}", 5000)
	case 3:
		return `{"name":"a","name":"b","source":"githost","source":"internal_source","secrets":[],"secrets":null}`
	case 4:
		return `{"source_config":{"resource_spec":{"cpu":1e999,"memory_mb":99999999999999999999}}}`
	case 5:
		return `{"a":1} trailing`
	case 6:
		return s.text()
	}
	raw, _ := json.Marshal(s.request())
	if s.IntN(6) == 0 && len(raw) > 2 {
		raw = raw[:s.IntN(len(raw))]
	}
	return string(raw)
}

// request is a create or patch request with some fields gone wrong.
func (s storm) request() map[string]any {
	out := map[string]any{}
	put := func(in map[string]any, name string, value any) {
		switch s.IntN(5) {
		case 0:
		case 1:
			in[name] = s.value(2)
		default:
			in[name] = value
		}
	}
	config, revision, spec := map[string]any{}, map[string]any{}, map[string]any{}
	put(spec, "cpu", pick[any](s, 1, 0.04, -1, 8.01, 1e308))
	put(spec, "memory_mb", pick[any](s, 1, 0, -5, int64(1)<<62))
	put(spec, "volumes", []any{map[string]any{"name": s.text()}})
	put(config, "resource_spec", spec)
	put(config, "repo_url", s.text())
	put(config, "build_on_push", true)
	put(config, "install_command", pick(s, "npm ci", "npm ci & rm", s.text()))
	put(config, "integration_id", s.text())
	put(revision, "repo_ref", s.text())
	put(revision, "agentgraph_config_path", s.text())
	put(revision, "source_tarball_path", s.text())
	put(revision, "image_uri", s.text())
	put(out, "name", pick(s, fmt.Sprint("n", s.IntN(50)), s.text()))
	put(out, "source", pick(s, "githost", "internal_source", "internal_template", "external_container", s.text()))
	put(out, "revision_source", pick(s, "githost", "internal_source", "internal_container"))
	put(out, "source_config", config)
	put(out, "source_revision_config", revision)
	put(out, "secrets", []any{map[string]any{"name": pick(s, "A", "PATH", s.text()), "value": s.text()}})
	put(out, "secret_references", []any{map[string]any{"name": "A", "secret_name": s.text(), "secret_key": s.text()}})
	put(out, "limit", s.IntN(2000)-10)
	put(out, "start_time", pick(s, "2026-01-01T00:00:00Z", "0000-00-00", s.text()))
	return out
}

// value is any JSON value.
func (s storm) value(depth int) any {
	switch s.IntN(7) {
	case 0:
		return nil
	case 1:
		return s.text()
	case 2:
		return s.Float64() * 1e300
	case 3:
		return s.IntN(2) == 0
	case 4:
		if depth > 0 {
			return []any{s.value(depth - 1), s.value(depth - 1)}
		}
		return []any{}
	case 5:
		if depth > 0 {
			return map[string]any{s.text(): s.value(depth - 1)}
		}
		return map[string]any{}
	}
	return -s.Int64()
}
