package cli_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestTier(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	c.exists = true
	var made string
	inner := c.Config.Handler
	c.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "-tier") {
			body, _ := io.ReadAll(r.Body)
			made = r.Method + " " + r.URL.Path + " " + string(body)
			r.Method, r.URL.Path = http.MethodGet, "/v2/deployments/d1"
		}
		inner.ServeHTTP(w, r)
	})
	for want, args := range map[string][]string{
		`PATCH /v2/deployments/d1/deployment-tier {"deployment_tier":"DEDICATED_M"}`:                            {"tier", "desk", "DEDICATED_M"},
		`PATCH /v2/deployments/d1/resource-tiers {"compute_tier":"DEDICATED_L"}`:                                {"tier", "desk", "--compute", "DEDICATED_L"},
		`PATCH /v2/deployments/d1/resource-tiers {"compute_tier":"SERVERLESS_S","database_tier":"DEDICATED_S"}`: {"tier", "desk", "--compute", "SERVERLESS_S", "--database", "DEDICATED_S"},
	} {
		if out, err := c.run(args...); err != nil || made != want {
			t.Errorf("%v makes %s, want %s (%v)\n%s", args, made, want, err, out)
		}
	}
	for _, args := range [][]string{{"tier", "desk"}, {"tier", "desk", "DEDICATED_M", "--compute", "DEDICATED_M"}} {
		if _, err := c.run(args...); err == nil || !strings.Contains(err.Error(), "either a tier") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
