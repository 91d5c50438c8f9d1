package registry_test

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/image/registry"
)

// TestNothingBreaks sends some thousand requests that are nearly right: none may be answered with a 5xx, and nothing may
// appear anywhere but in the directory of the tenant whose token it is.
func TestNothingBreaks(t *testing.T) {
	t.Parallel()
	outer := t.TempDir()
	h := newHost(t, registry.Config{Root: filepath.Join(outer, "a", "registry"), MaxBlob: 2000, MaxTenant: 1 << 20})
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	one := func(choices ...string) string { return choices[r.IntN(len(choices))] }
	var locations []string
	for range 4000 {
		part := func() string {
			return one("agent", "a/b", "..", "%2e%2e", "A", "", "a+b", "blobs", "manifests", "uploads", "tags", "list", "v1", sum(nil), "sha256:", "\x00", "é",
				strings.Repeat("a", 300), "..%2f..%2fx", another, tenant, "0000-00")
		}
		path := "/v2/" + one("registry", "registry", "registry", "x") + "/" + one(tenant, tenant, tenant, another, part()) + "/" + one("agent", part()) + "/" +
			one("blobs/uploads/", "blobs/uploads/"+part(), "blobs/"+part(), "manifests/"+part(), "tags/list", part())
		if len(locations) > 0 && r.IntN(3) == 0 {
			path = locations[r.IntN(len(locations))]
		}
		body := one("", "x", "{}", `{"schemaVersion":2,"config":{"digest":"`+sum(nil)+`"},"layers":[]}`, `{"schemaVersion":2,"manifests":[]}`, strings.Repeat("y", 2500), "\xff")
		query := one("", "?digest="+sum([]byte(body)), "?digest="+part(), "?mount="+sum(nil)+"&from="+part(), "?n=-1&last=x")
		req := httptest.NewRequest(one("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"), "/", io.NopCloser(strings.NewReader(body)))
		req.URL.Path = path // as a mux that cleans nothing would hand it on
		req.URL.RawQuery = strings.TrimPrefix(query, "?")
		req.SetBasicAuth(registry.User, tenant)
		if r.IntN(3) == 0 {
			req.Header.Set("Content-Range", one("0-10", "bytes 5-", "-", "99999999999999999999-1", "x"))
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		if rec.Code >= http.StatusInternalServerError {
			t.Fatalf("%s %q%s = %d %s (seed %d)", req.Method, path, query, rec.Code, rec.Body, seed)
		}
		if at := rec.Header().Get("Location"); at != "" {
			locations = append(locations, at)
		}
	}
	own := filepath.Join(h.cfg.Root, tenant)
	err := filepath.WalkDir(outer, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && !strings.HasPrefix(path, own+string(os.PathSeparator)) {
			err = fmt.Errorf("%s is outside the tenant's directory (seed %d)", path, seed)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestOneRequestAtATimeWritesToAnUpload(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{})
	at := h.want(202, tenant, "POST", "/blobs/uploads/", nil).Header.Get("Location")
	first, feed := io.Pipe()
	done := make(chan int)
	go func() { done <- h.call(tenant, "PATCH", at, first).StatusCode }()
	if _, err := feed.Write([]byte("the beginning")); err != nil {
		t.Fatal(err)
	}
	for h.want(204, tenant, "GET", at, nil).Header.Get("Range") != "0-12" { // until the first is being served
	}
	if got := h.call(tenant, "PATCH", at, strings.NewReader("x")).StatusCode; got != http.StatusConflict {
		t.Errorf("a second writer = %d, want 409", got)
	}
	feed.Close()
	if got := <-done; got != http.StatusAccepted {
		t.Errorf("the first writer = %d, want 202", got)
	}
	if got := h.want(204, tenant, "GET", at, nil).Header.Get("Range"); got != "0-12" {
		t.Errorf("range = %q, want the first writer's 13 bytes", got)
	}
}
