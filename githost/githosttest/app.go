package githosttest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// installationID is where the app of a Server is installed.
const installationID = 4711

// app is GitHub's side of a GitHub App: it checks the app's signature and hands out installation tokens.
type app struct {
	id  int64
	key *rsa.PrivateKey
	pem string

	mu     sync.Mutex
	tokens map[string]time.Time // until when they are good
	ttl    time.Duration
	code   string // of a manifest, good once
}

func newApp(t testing.TB) *app {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return &app{id: 99, key: key, pem: string(text), tokens: map[string]time.Time{}, ttl: time.Hour}
}

// knows says whether a password is a token that is good now.
func (a *app) knows(token string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.tokens[token])
}

// token is what a request has to bear: its own, if that is one of ours.
func (a *app) token(r *http.Request) string {
	if own, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && a.knows(own) {
		return own
	}
	return "none is good"
}

// appCall answers what an app does for itself, and says whether the request was such.
func (s *Server) appCall(w http.ResponseWriter, r *http.Request) bool {
	path := strings.TrimPrefix(r.URL.Path, "/api/v3")
	switch {
	case strings.HasPrefix(path, "/app-manifests/"):
		s.convert(w, strings.Split(path, "/")[2])
	case path == "/app/installations" && s.app.signed(r):
		answer(w, http.StatusOK, []any{map[string]any{"id": installationID}})
	case path == fmt.Sprintf("/app/installations/%d/access_tokens", installationID) && s.app.signed(r):
		token, until := s.app.issue()
		answer(w, http.StatusCreated, map[string]any{"token": token, "expires_at": until})
	case strings.HasPrefix(path, "/app/"):
		answer(w, http.StatusUnauthorized, map[string]string{"message": "A JSON web token could not be decoded"})
	default:
		return false
	}
	return true
}

func (a *app) issue() (string, time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	token, until := fmt.Sprintf("ghs_canary%d", len(a.tokens)), time.Now().Add(a.ttl).UTC()
	a.tokens[token] = until
	return token, until
}

// signed checks the app's JSON Web Token as GitHub does: signature, issuer, and ten minutes at most.
func (a *app) signed(r *http.Request) bool {
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || rsa.VerifyPKCS1v15(&a.key.PublicKey, crypto.SHA256, sum[:], signature) != nil {
		return false
	}
	var claims struct {
		Iat, Exp int64
		Iss      string
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return false
	}
	now := time.Now().Unix()
	return claims.Iss == fmt.Sprint(a.id) && claims.Iat <= now && claims.Exp > now && claims.Exp-now <= 600
}

// ManifestCode is what GitHub gives a browser for a manifest: good once.
func (s *Server) ManifestCode(code string) {
	s.app.mu.Lock()
	defer s.app.mu.Unlock()
	s.app.code = code
}

func (s *Server) convert(w http.ResponseWriter, code string) {
	s.app.mu.Lock()
	defer s.app.mu.Unlock()
	if code == "" || code != s.app.code {
		answer(w, http.StatusNotFound, map[string]string{"message": "Not Found"})
		return
	}
	s.app.code = ""
	answer(w, http.StatusCreated, map[string]any{"id": s.app.id, "slug": "scripted", "pem": s.app.pem, "webhook_secret": Secret})
}

// Expire lets the tokens that are handed out from now on be good for so long only.
func (s *Server) Expire(ttl time.Duration) {
	s.app.mu.Lock()
	defer s.app.mu.Unlock()
	s.app.ttl = ttl
}

// InstallationDelivery is what GitHub sends when the app was installed or removed.
func (s *Server) InstallationDelivery(action string) Delivery {
	d := Delivery{Header: http.Header{"Content-Type": {"application/json"}}}
	d.Body, _ = json.Marshal(map[string]any{"action": action, "installation": map[string]any{"id": installationID}})
	s.sign(&d, "installation", "installation-"+action)
	return d
}

// Ping is a delivery that tells nothing.
func (s *Server) Ping() Delivery {
	d := Delivery{Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"zen":"Keep it logically awesome."}`)}
	s.sign(&d, "ping", "ping-1")
	return d
}
