package controlapi_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/controlapi"
	"github.com/slipway-dev/slipway/control"
)

// keyed makes a request with an Idempotency-Key.
func (s *server) keyed(apiKey, key, method, path, body string) *httptest.ResponseRecorder {
	s.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("X-Api-Key", apiKey)
	req.Header.Set("Idempotency-Key", key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	rec := httptest.NewRecorder()
	s.handler.ServeHTTP(rec, req)
	return rec
}

// admin is the principal of s.Key.
func (s *server) admin() slipway.Principal {
	s.t.Helper()
	who, err := s.Authenticate(context.Background(), control.Credential{Key: s.Key})
	if err != nil {
		s.t.Fatal(err)
	}
	return who
}

func TestAKeyedRequestHappensOnce(t *testing.T) {
	t.Parallel()
	s := newStormServer(t)
	id := s.want(201, "POST", "/v2/deployments", createGit)["id"].(string)
	path := "/v2/deployments/" + id
	first := s.keyed(s.Key, "k1", "PATCH", path, `{"source_revision_config":{"repo_ref":"one"}}`)
	again := s.keyed(s.Key, "k1", "PATCH", path, `{"source_revision_config":{"repo_ref":"one"}}`)
	if first.Code != 200 || again.Code != 200 || !bytes.Equal(first.Body.Bytes(), again.Body.Bytes()) || again.Header().Get("Content-Type") != first.Header().Get("Content-Type") {
		t.Errorf("first %d %s\nagain %d %s", first.Code, first.Body, again.Code, again.Body)
	}
	if first.Header().Get("Idempotency-Replayed") != "" || again.Header().Get("Idempotency-Replayed") != "true" {
		t.Error("the repetition is not told from the first")
	}
	revisions := func() int { return len(s.want(200, "GET", path+"/revisions", "")["resources"].([]any)) }
	if got := revisions(); got != 2 {
		t.Errorf("%d revisions, want 2", got)
	}
	for name, c := range map[string]struct {
		key, method, path, body string
		want                    int
	}{
		"another body":       {"k1", "PATCH", path, `{"source_revision_config":{"repo_ref":"two"}}`, 422},
		"another query":      {"k1", "PATCH", path + "?x=1", `{"source_revision_config":{"repo_ref":"one"}}`, 422},
		"another path":       {"k1", "POST", path + "/revisions", `{}`, 201},
		"a key too long":     {strings.Repeat("k", 256), "PATCH", path, `{}`, 422},
		"a key with a space": {"k 1", "PATCH", path, `{}`, 422},
		"a failing request":  {"k2", "PATCH", path, `{"secrets":[{"name":"PATH","value":"x"}]}`, 422},
		"an unknown one":     {"k2", "PATCH", "/v2/deployments/01900000-0000-7000-8000-999999999999", `{}`, 404},
	} {
		if got := s.keyed(s.Key, c.key, c.method, c.path, c.body); got.Code != c.want {
			t.Errorf("%s: %d %s, want %d", name, got.Code, got.Body, c.want)
		}
	}
	if got := s.keyed(s.Key, "k1", "PATCH", path, `{"x":1}`); !strings.Contains(got.Body.String(), `"loc":["header","Idempotency-Key"]`) {
		t.Errorf("another body: %s, want the header named", got.Body)
	}
	other := s.keyed(s.keyOf("editor"), "k1", "PATCH", path, `{"source_revision_config":{"repo_ref":"one"}}`)
	if other.Code != 200 || other.Header().Get("Idempotency-Replayed") != "" {
		t.Errorf("another principal: %d, replayed %q; want its own answer", other.Code, other.Header().Get("Idempotency-Replayed"))
	}
	s.Advance(25 * time.Hour)
	if _, err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if late := s.keyed(s.Key, "k1", "PATCH", path, `{"source_revision_config":{"repo_ref":"late"}}`); late.Code != 200 || late.Header().Get("Idempotency-Replayed") != "" {
		t.Errorf("after a day: %d %s, want it carried out", late.Code, late.Body)
	}
}

func TestAKeyedCreateIsRepeatedNotRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	first := s.keyed(s.Key, "c", "POST", "/v2/deployments", createGit)
	again := s.keyed(s.Key, "c", "POST", "/v2/deployments", createGit)
	if first.Code != 201 || again.Code != 201 || first.Body.String() != again.Body.String() {
		t.Errorf("first %d, again %d %s", first.Code, again.Code, again.Body)
	}
}

func TestAKeyOfADeadAttempt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		effect bool
		after  func(*server)
		want   int
	}{
		{"runs still", false, func(*server) {}, 409},
		{"lease over", false, func(s *server) { s.Advance(2 * time.Minute) }, 201},
		{"restarted", false, func(s *server) { _ = s.Recover(context.Background()) }, 201},
		{"carried out, then restarted", true, func(s *server) { _ = s.Recover(context.Background()) }, 409},
	} {
		s := newStormServer(t)
		body := strings.Replace(createGit, `"git"`, `"other"`, 1)
		attempt, _, err := s.BeginKeyed(t.Context(), s.admin(), control.KeyedRequest{
			Method: "POST", Path: "/v2/deployments", Key: "k", Body: []byte(body),
		})
		if err != nil {
			t.Fatal(err)
		}
		if c.effect {
			if _, err := s.Create(attempt.Context(t.Context()), s.Admin, slipway.DeploymentCreate{Name: "other", Source: slipway.SourceInternalSource}); err != nil {
				t.Fatal(err)
			}
		}
		c.after(s)
		s.Restart() // the process that held the attempt is gone
		s.handler = truthful(t, controlapi.New(s.Service, controlapi.Config{BaseURL: base, Version: "test", Log: slog.New(slog.DiscardHandler)}))
		if got := s.keyed(s.Key, "k", "POST", "/v2/deployments", body); got.Code != c.want {
			t.Errorf("%s: %d %s, want %d", c.name, got.Code, got.Body, c.want)
		}
	}
}

func TestALostRoleGetsNoAnswerOfTheOldOne(t *testing.T) {
	t.Parallel()
	s := newStormServer(t)
	asked := control.KeyedRequest{Method: "POST", Path: "/v2/api-keys", Key: "k", Body: []byte(`{"role":"viewer"}`)}
	who := s.admin()
	attempt, _, err := s.BeginKeyed(t.Context(), who, asked)
	if err != nil {
		t.Fatal(err)
	}
	if err := attempt.Answered(t.Context(), control.Answer{Status: 201, Body: []byte("the new key")}); err != nil {
		t.Fatal(err)
	}
	who.Role = slipway.RoleEditor // the same user, whom the identity provider says to be less now
	again, answer, err := s.BeginKeyed(t.Context(), who, asked)
	if err != nil || answer != nil || again == nil {
		t.Fatalf("the same user with a lesser role is answered %+v, %v; want it carried out, and so refused", answer, err)
	}
	again.Abandoned(t.Context())
}

func TestViewersLeaveNoKeyedAnswers(t *testing.T) {
	t.Parallel()
	s := newStormServer(t)
	path := "/v2/deployments/" + s.want(201, "POST", "/v2/deployments", createGit)["id"].(string)
	viewer := s.keyOf("viewer")
	for range 2 {
		rec := s.keyed(viewer, "v", "PATCH", path, `{"secrets":5}`)
		if rec.Code < 400 || rec.Header().Get("Idempotency-Replayed") != "" {
			t.Errorf("%d %s, replayed %q; want a refusal that is not kept", rec.Code, rec.Body, rec.Header().Get("Idempotency-Replayed"))
		}
	}
}
