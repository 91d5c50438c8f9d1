package github

import (
	"context"
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
	"time"

	"github.com/slipway-dev/slipway"
)

// What a token is asked for: all that the app may do, or reading only, for builders.
const (
	everything = ""
	reading    = "contents:read"
)

// margin is how long a token must still be good for when it is handed out: a long clone outlives it.
const margin = 10 * time.Minute

func privateKey(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, slipway.Errorf(slipway.CodeInvalid, "the app's private key is no PEM; make the integration again")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if key, ok := parsed.(*rsa.PrivateKey); ok && err == nil {
		return key, nil
	}
	return nil, slipway.Errorf(slipway.CodeInvalid, "the app's private key is no RSA key; make the integration again")
}

// signed is a JSON Web Token by which the app speaks for itself: for nine minutes, from one before now on, because clocks
// differ and GitHub takes ten at most.
func (h *Host) signed() (string, error) {
	now := h.clock()
	claims, err := json.Marshal(map[string]any{
		"iat": now.Add(-time.Minute).Unix(), "exp": now.Add(8 * time.Minute).Unix(), "iss": fmt.Sprint(h.of.AppID),
	})
	if err != nil {
		return "", fmt.Errorf("sign for the app: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, h.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign for the app: %w", err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// token returns an installation token that is good for a while. Callers that need one at the same time share the call.
func (h *Host) token(ctx context.Context, what string) (token, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t, ok := h.tokens[what]; ok && h.clock().Add(margin).Before(t.ExpiresAt) {
		return t, nil
	}
	if err := h.installation(ctx); err != nil {
		return token{}, err
	}
	var in any
	if what == reading {
		in = map[string]any{"permissions": map[string]string{"contents": "read"}}
	}
	var t token
	_, err := h.asApp.Call(ctx, http.MethodPost, fmt.Sprintf("/app/installations/%d/access_tokens", h.install), in, &t)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		h.install = h.of.InstallationID
		return t, h.notInstalled()
	}
	if err != nil {
		return t, err
	}
	if t.Token == "" {
		return t, slipway.Errorf(slipway.CodeUnavailable, "GitHub gave no token: try again")
	}
	h.tokens[what] = t
	return t, nil
}

// installation finds out where the app is installed, if its installation has not been heard of yet.
func (h *Host) installation(ctx context.Context) error {
	if h.install != 0 {
		return nil
	}
	var all []struct {
		ID int64 `json:"id"`
	}
	if _, err := h.asApp.Call(ctx, http.MethodGet, "/app/installations?per_page=1", nil, &all); err != nil {
		return err
	}
	if len(all) == 0 {
		return h.notInstalled()
	}
	h.install = all[0].ID
	return nil
}

func (h *Host) notInstalled() error {
	return slipway.Errorf(slipway.CodeBadRequest, "the GitHub App %q is not installed; POST /v2/integrations/githost/installation-link says where to", h.of.AppSlug)
}
