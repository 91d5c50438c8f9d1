package remote_test

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	stock "github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/image/remote"
)

// elsewhere is another registry that wants a password.
func elsewhere(t *testing.T) string {
	t.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="elsewhere"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

type keychain string

// Resolve implements authn.Keychain.
func (k keychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	return &authn.Basic{Username: "u", Password: string(k)}, nil
}

func push(t *testing.T, host, text, arch string) string {
	t.Helper()
	image, err := random.Image(100, 2)
	if err != nil {
		t.Fatal(err)
	}
	if image, err = mutate.ConfigFile(image, &v1.ConfigFile{OS: "linux", Architecture: arch}); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(host + "/" + text)
	if err != nil {
		t.Fatal(err)
	}
	if err := stock.Write(ref, image, stock.WithAuthFromKeychain(keychain("secret"))); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func TestResolve(t *testing.T) {
	t.Parallel()
	host := elsewhere(t)
	digest := push(t, host, "acme/agent:v1", "amd64")
	push(t, host, "acme/agent:arm", "arm64")
	allowed := remote.New(remote.Config{Hosts: []string{host}, Keychain: keychain("secret")})
	for _, c := range []struct {
		what, image, says string
		by                *remote.Resolver
	}{
		{"by tag", host + "/acme/agent:v1", "", allowed},
		{"by digest", host + "/acme/agent@" + digest, "", allowed},
		{"unknown", host + "/acme/agent:v9", "has no image", allowed},
		{"for another machine", host + "/acme/agent:arm", "linux/arm64", allowed},
		{"without the password", host + "/acme/agent:v1", "does not let", remote.New(remote.Config{Hosts: []string{host}, Keychain: keychain("wrong")})},
		{"at a registry that is not allowed", "elsewhere.test/acme/agent:v1", "may not be used here", allowed},
		{"where none is allowed", host + "/acme/agent:v1", "may not be used here", remote.New(remote.Config{Keychain: keychain("secret")})},
	} {
		image, err := slipway.ParseImageName(c.image)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.by.Resolve(t.Context(), "t", image)
		switch {
		case c.says == "" && (err != nil || got != digest):
			t.Errorf("%s: %q, %v; want %s", c.what, got, err, digest)
		case c.says != "" && (slipway.ErrorCode(err) != slipway.CodeInvalid || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %q, %v; want CodeInvalid with %q", c.what, got, err, c.says)
		}
	}
}

func TestARegistryThatDoesNotAnswerHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := remote.New(remote.Config{Hosts: []string{l.Addr().String()}, Timeout: 50 * time.Millisecond, Keychain: keychain("x")})
	image, err := slipway.ParseImageName(l.Addr().String() + "/acme/agent:v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resolve(t.Context(), "t", image); slipway.ErrorCode(err) != slipway.CodeUnavailable {
		t.Errorf("%v, want CodeUnavailable", err)
	}
}
