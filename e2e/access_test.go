package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// identityProvider issues tokens and publishes the key they are signed with.
func identityProvider(t *testing.T) (url string, issue func(claims map[string]any) string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": server.URL, "jwks_uri": server.URL + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Use: "sig"}}})
	})
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
	check(t, err)
	return server.URL, func(claims map[string]any) string {
		all := map[string]any{"iss": server.URL, "aud": "slipway", "exp": time.Now().Add(time.Hour).Unix()}
		for name, value := range claims {
			all[name] = value
		}
		token, err := jwt.Signed(signer).Claims(all).Serialize()
		check(t, err)
		return token
	}
}

// TestAccess lets in the users of an identity provider, by settings from a file and the environment, and manages tenants and
// keys by the command line.
func TestAccess(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	issuer, issue := identityProvider(t)
	config := filepath.Join(t.TempDir(), "slipway.yaml")
	check(t, os.WriteFile(config, []byte("oidc-issuer: "+issuer+"\noidc-role-claim: realm.roles\noidc-role-map: {devs: viewer}\noidc-tenant: '*'\n"), 0o600))
	m.up("SLIPWAY_CONFIG="+config, "SLIPWAY_OIDC_AUDIENCE=slipway,other")
	slipway := func(args ...string) string {
		t.Helper()
		out, err := m.slipway(args...)
		check(t, err)
		return out
	}
	slipway("tenants", "create", "team")
	slipway("tenants", "use", "team")
	var who struct {
		Principal  string `json:"principal"`
		Role       string `json:"role"`
		TenantID   string `json:"tenant_id"`
		TenantName string `json:"tenant_name"`
	}
	check(t, json.Unmarshal([]byte(slipway("whoami", "--json")), &who))
	if who.TenantName != "team" || who.Role != "admin" {
		t.Errorf("after `tenants use team` whoami says %+v", who)
	}
	as := func(method, path, token, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, m.url+path, strings.NewReader(body))
		check(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("X-Tenant-Id", who.TenantID)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		check(t, err)
		defer res.Body.Close()
		var text json.RawMessage
		check(t, json.NewDecoder(res.Body).Decode(&text))
		return res.StatusCode, string(text)
	}
	ann := issue(map[string]any{"sub": "ann", "realm": map[string]any{"roles": []string{"devs"}}})
	if status, text := as("GET", "/v2/whoami", ann, ""); status != 200 || !strings.Contains(text, `"user:ann"`) || !strings.Contains(text, `"viewer"`) {
		t.Errorf("whoami of a token = %d %s", status, text)
	}
	if status, text := as("POST", "/v2/api-keys", ann, `{"role":"admin"}`); status != 403 {
		t.Errorf("a viewer's token makes a key: %d %s", status, text)
	}
	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"no role":        {issue(map[string]any{"sub": "bob"}), 403},
		"wrong audience": {issue(map[string]any{"sub": "bob", "aud": "billing"}), 401},
		"nonsense":       {"x.y.z", 401},
	} {
		if status, text := as("GET", "/v2/deployments", c.token, ""); status != c.want {
			t.Errorf("%s: %d %s, want %d", name, status, text, c.want)
		}
	}
	var made struct {
		Key string `json:"key"`
		ID  string `json:"id"`
	}
	check(t, json.Unmarshal([]byte(slipway("keys", "create", "--role", "viewer", "--name", "ci", "--json")), &made))
	if out := slipway("--api-key", made.Key, "whoami"); !strings.Contains(out, "team") || !strings.Contains(out, "viewer") {
		t.Errorf("the new key is %s", out)
	}
	slipway("keys", "revoke", made.ID)
	if _, err := m.slipway("--api-key", made.Key, "whoami"); err == nil {
		t.Error("a revoked key is let in")
	}
	out := slipway("audit", "--since", "1h")
	for _, want := range []string{"create_tenant", "create_api_key", "revoke_api_key", "user:ann", "refused"} {
		if !strings.Contains(out, want) {
			t.Errorf("the audit log lacks %s:\n%s", want, out)
		}
	}
	m.kill()
	m.up()
	if out := slipway("whoami"); !strings.Contains(out, "team") {
		t.Errorf("after a restart whoami says %s", out)
	}
	if status, text := as("GET", "/v2/whoami", ann, ""); status != 401 {
		t.Errorf("without the setting a token is %d %s, want 401", status, text)
	}
}
