package registry_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/uuid"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/image/registry"
)

const (
	tenant  = "01900000-0000-7000-8000-000000000001"
	another = "01900000-0000-7000-8000-000000000002"
)

// host is a registry that is served.
type host struct {
	*registry.Registry
	t    *testing.T
	cfg  registry.Config
	url  string // of the server
	name string // its host and port
}

// authorize takes "TENANT" for a token of that tenant.
func authorize(token string) (string, error) {
	if token != tenant && token != another {
		return "", slipway.Errorf(slipway.CodeUnauthenticated, "the push token has expired")
	}
	return token, nil
}

func newHost(t *testing.T, cfg registry.Config) *host {
	t.Helper()
	cfg.Authorize = authorize
	if cfg.Root == "" {
		cfg.Root = t.TempDir()
	}
	r, err := registry.New(cfg, time.Now, uuid.NewString, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return &host{Registry: r, t: t, cfg: cfg, url: server.URL, name: strings.TrimPrefix(server.URL, "http://")}
}

// again is the same registry after a restart.
func (h *host) again() *host { return newHost(h.t, h.cfg) }

func as(token string) remote.Option {
	return remote.WithAuth(&authn.Basic{Username: registry.User, Password: token})
}

func (h *host) ref(owner, text string) name.Reference {
	h.t.Helper()
	ref, err := name.ParseReference(h.name+"/registry/"+owner+"/"+text, name.StrictValidation)
	if err != nil {
		h.t.Fatal(err)
	}
	return ref
}

// picture makes an image of some layers for linux/amd64.
func picture(t *testing.T, layers int, size int64) v1.Image {
	t.Helper()
	image, err := random.Image(size, int64(layers))
	if err != nil {
		t.Fatal(err)
	}
	return built(t, image, "linux", "amd64")
}

func built(t *testing.T, image v1.Image, os, arch string) v1.Image {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = os, arch
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func digest(t *testing.T, x interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	d, err := x.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

func (h *host) resolve(owner, text string) (string, error) {
	h.t.Helper()
	image, err := slipway.ParseImageName(h.name + "/registry/" + owner + "/" + text)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.Resolve(h.t.Context(), owner, image)
}

func TestPushAndPullByTagAndDigest(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{})
	image := picture(t, 4, 20000)
	if err := remote.Write(h.ref(tenant, "team/agent:v1"), image, as(tenant)); err != nil {
		t.Fatalf("push: %v", err)
	}
	want := digest(t, image)
	h = h.again()
	for _, text := range []string{"team/agent:v1", "team/agent@" + want} {
		pulled, err := remote.Image(h.ref(tenant, text), as(tenant))
		if err != nil {
			t.Fatalf("pull %s: %v", text, err)
		}
		layers, err := pulled.Layers()
		if err != nil || len(layers) != 4 {
			t.Fatalf("layers of %s = %d, %v; want 4", text, len(layers), err)
		}
		for _, layer := range layers {
			compressed, err := layer.Compressed() // verifies the digest while it is read
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, compressed); err != nil {
				t.Errorf("read a layer of %s: %v", text, err)
			}
		}
		if got, err := h.resolve(tenant, text); err != nil || got != want {
			t.Errorf("%s resolves to %q, %v; want %s", text, got, err, want)
		}
	}
	if tags, err := remote.List(h.ref(tenant, "team/agent:v1").Context(), as(tenant)); err != nil || fmt.Sprint(tags) != "[v1]" {
		t.Errorf("tags = %v, %v; want [v1]", tags, err)
	}
}

func TestABigLayer(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{})
	image := picture(t, 1, 64<<20)
	if err := remote.Write(h.ref(tenant, "big:v1"), image, as(tenant)); err != nil {
		t.Fatalf("push: %v", err)
	}
	if got, err := h.resolve(tenant, "big:v1"); err != nil || got != digest(t, image) {
		t.Errorf("resolves to %q, %v", got, err)
	}
}

func TestATagMovesAndWhatItStoodForStays(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{})
	first, second := picture(t, 1, 100), picture(t, 1, 100)
	for _, image := range []v1.Image{first, second} {
		if err := remote.Write(h.ref(tenant, "agent:latest"), image, as(tenant)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := h.resolve(tenant, "agent"); err != nil || got != digest(t, second) {
		t.Errorf("no tag resolves to %q, %v; want the second image", got, err)
	}
	if _, err := remote.Image(h.ref(tenant, "agent@"+digest(t, first)), as(tenant)); err != nil {
		t.Errorf("the first image: %v, want it kept", err)
	}
}

func TestWhoMayPush(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{})
	image := picture(t, 1, 100)
	if err := remote.Write(h.ref(tenant, "agent:v1"), image, as(tenant)); err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]func() error{
		"push with another tenant's token": func() error { return remote.Write(h.ref(tenant, "agent:v1"), image, as(another)) },
		"pull with another tenant's token": func() error { _, err := remote.Get(h.ref(tenant, "agent:v1"), as(another)); return err },
		"push with an expired token":       func() error { return remote.Write(h.ref(tenant, "agent:v1"), image, as("expired")) },
		"pull with an expired token":       func() error { _, err := remote.Get(h.ref(tenant, "agent:v1"), as("expired")); return err },
		"push without a token":             func() error { return remote.Write(h.ref(tenant, "agent:v1"), image) },
		"push as another user": func() error {
			return remote.Write(h.ref(tenant, "agent:v1"), image, remote.WithAuth(&authn.Basic{Username: "root", Password: tenant}))
		},
		"push beside the prefix": func() error {
			ref, _ := name.ParseReference(h.name + "/elsewhere/agent:v1")
			return remote.Write(ref, image, as(tenant))
		},
	} {
		if err := try(); err == nil {
			t.Errorf("%s is allowed", what)
		}
	}
	if got, err := h.resolve(another, "agent:v1"); slipway.ErrorCode(err) != slipway.CodeInvalid {
		t.Errorf("another tenant's own agent:v1 = %q, %v; want CodeInvalid", got, err)
	}
	foreign, _ := slipway.ParseImageName(h.name + "/registry/" + tenant + "/agent:v1")
	if got, err := h.Resolve(t.Context(), another, foreign); slipway.ErrorCode(err) != slipway.CodeInvalid {
		t.Errorf("an image of another tenant = %q, %v; want CodeInvalid as if it did not exist", got, err)
	}
}

func TestMountTakesNothingFromAnotherTenant(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{})
	blob := []byte("a layer")
	h.want(201, tenant, "POST", "/blobs/uploads/?digest="+sum(blob), blob)
	h.want(201, tenant, "POST", "/blobs/uploads/?mount="+sum(blob)+"&from=registry/"+tenant+"/agent", nil)
	res := h.want(202, another, "POST", "/blobs/uploads/?mount="+sum(blob)+"&from=registry/"+tenant+"/agent", nil)
	if res.Header.Get("Location") == "" {
		t.Error("no address to upload to")
	}
	h.want(404, another, "HEAD", "/blobs/"+sum(blob), nil)
}

func TestOnlyImagesForThisPlatform(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{})
	arm := built(t, picture(t, 1, 100), "linux", "arm64")
	amd := picture(t, 1, 100)
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: arm, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}},
		mutate.IndexAddendum{Add: amd, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}})
	if err := remote.Write(h.ref(tenant, "arm:v1"), arm, as(tenant)); err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(h.ref(tenant, "both:v1"), index, as(tenant)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.resolve(tenant, "arm:v1"); slipway.ErrorCode(err) != slipway.CodeInvalid || !strings.Contains(err.Error(), "linux/arm64") {
		t.Errorf("an image for another machine: %v, want CodeInvalid that says so", err)
	}
	if got, err := h.resolve(tenant, "both:v1"); err != nil || got != digest(t, index) {
		t.Errorf("an index with linux/amd64 = %q, %v; want its digest", got, err)
	}
}

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(s[:])
}

// call makes a request as a tenant; the path is below its repository "agent", or absolute where it begins with /v2.
func (h *host) call(owner, method, path string, body io.Reader, header ...string) *http.Response {
	h.t.Helper()
	if !strings.HasPrefix(path, "/v2") {
		path = "/v2/registry/" + owner + "/agent" + path
	}
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, body)
	if err != nil {
		h.t.Fatal(err)
	}
	req.SetBasicAuth(registry.User, owner)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { res.Body.Close() })
	return res
}

func (h *host) want(status int, owner, method, path string, body []byte, header ...string) *http.Response {
	h.t.Helper()
	res := h.call(owner, method, path, bytes.NewReader(body), header...)
	if res.StatusCode != status {
		text, _ := io.ReadAll(res.Body)
		h.t.Fatalf("%s %s = %d %s, want %d", method, path, res.StatusCode, text, status)
	}
	return res
}

func TestAnUploadGoesOnAfterACutAndARestart(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{})
	blob := bytes.Repeat([]byte("0123456789"), 100)
	at := h.want(202, tenant, "POST", "/blobs/uploads/", nil).Header.Get("Location")
	h.want(202, tenant, "PATCH", at, blob[:300], "Content-Range", "0-299")
	h = h.again()
	if got := h.want(204, tenant, "GET", at, nil).Header.Get("Range"); got != "0-299" {
		t.Errorf("range = %q, want 0-299", got)
	}
	h.want(416, tenant, "PATCH", at, blob[:300], "Content-Range", "0-299")
	h.want(416, tenant, "PATCH", at, blob[400:], "Content-Range", "400-999")
	h.want(202, tenant, "PATCH", at, blob[300:900], "Content-Range", "300-899")
	h.want(400, tenant, "PUT", at, nil) // no digest
	h.want(201, tenant, "PUT", at+"?digest="+sum(blob), blob[900:])
	h.want(404, tenant, "GET", at, nil)
	res := h.want(206, tenant, "GET", "/blobs/"+sum(blob), nil, "Range", "bytes=10-14")
	if part, _ := io.ReadAll(res.Body); string(part) != "01234" {
		t.Errorf("part = %q, want 01234", part)
	}
}

// brokenBody yields some bytes and fails.
type brokenBody struct{ rest int }

func (b *brokenBody) Read(p []byte) (int, error) {
	if b.rest == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n := min(len(p), b.rest)
	b.rest -= n
	return n, nil
}

func TestWhatArrivedOfACutBodyStays(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{})
	at := h.want(202, tenant, "POST", "/blobs/uploads/", nil).Header.Get("Location")
	req := httptest.NewRequest("PATCH", at, &brokenBody{5000})
	req.SetBasicAuth(registry.User, tenant)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	if rec.Code != 400 || !strings.Contains(rec.Body.String(), "BLOB_UPLOAD_INVALID") {
		t.Errorf("a cut body = %d %s, want 400", rec.Code, rec.Body)
	}
	if got := h.want(204, tenant, "GET", at, nil).Header.Get("Range"); got != "0-4999" {
		t.Errorf("range = %q, want 0-4999", got)
	}
	h.want(204, tenant, "DELETE", at, nil)
	h.want(404, tenant, "PATCH", at, nil)
}

func TestAWrongDigestIsRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{})
	h.want(400, tenant, "POST", "/blobs/uploads/?digest="+sum([]byte("other")), []byte("this"))
	h.want(404, tenant, "HEAD", "/blobs/"+sum([]byte("other")), nil)
	h.want(404, tenant, "HEAD", "/blobs/"+sum([]byte("this")), nil)
}

func TestBounds(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{MaxBlob: 1000, MaxTenant: 40000, MaxUploads: 3})
	big := bytes.Repeat([]byte("x"), 1001)
	at := h.want(202, tenant, "POST", "/blobs/uploads/", nil).Header.Get("Location")
	h.want(413, tenant, "PATCH", at, big)
	h.want(404, tenant, "GET", at, nil) // and its room is free again
	at = h.want(202, tenant, "POST", "/blobs/uploads/", nil).Header.Get("Location")
	if res := h.call(tenant, "PATCH", at, struct{ io.Reader }{bytes.NewReader(big)}); res.StatusCode != 413 { // of unknown length
		t.Errorf("a stream that is too long = %d, want 413", res.StatusCode)
	}
	h.want(413, tenant, "PUT", "/manifests/v1", bytes.Repeat([]byte(" "), 5<<20))
	for range 3 {
		h.want(202, tenant, "POST", "/blobs/uploads/", nil)
	}
	h.want(429, tenant, "POST", "/blobs/uploads/", nil)

	status, n := 201, 0
	for ; status == 201 && n < 100; n++ {
		blob := fmt.Appendf(nil, "blob %d", n)
		status = h.call(another, "POST", "/blobs/uploads/?digest="+sum(blob), bytes.NewReader(blob)).StatusCode
	}
	if status != 403 || n > 10 {
		t.Errorf("after %d blobs: %d, want 403 once the room is used up", n, status)
	}
}

func TestGivenUpUploadsGo(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{MaxUploads: 1, UploadTTL: time.Nanosecond})
	at := h.want(202, tenant, "POST", "/blobs/uploads/", nil).Header.Get("Location")
	h.want(202, tenant, "POST", "/blobs/uploads/", nil)
	h.want(404, tenant, "GET", at, nil)
}

func TestManifestsAreChecked(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{})
	config := []byte(`{"os":"linux","architecture":"amd64"}`)
	h.want(201, tenant, "POST", "/blobs/uploads/?digest="+sum(config), config)
	descriptor := `{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"` + sum(config) + `","size":1}`
	good := `{"schemaVersion":2,"config":` + descriptor + `,"layers":[]}`
	const ociImage = "application/vnd.oci.image.manifest.v1+json"
	for _, c := range []struct {
		what, reference, body, contentType string
		status                             int
	}{
		{"nonsense", "v1", `nonsense`, "", 400},
		{"schema 1", "v1", `{"schemaVersion":1}`, "", 400},
		{"nothing at all", "v1", `{"schemaVersion":2}`, "", 400},
		{"another type than it says", "v1", good, "application/vnd.docker.distribution.manifest.v2+json", 400},
		{"an unknown type", "v1", `{"schemaVersion":2,"mediaType":"text/html","config":` + descriptor + `}`, "text/html", 400},
		{"a layer that is not there", "v1", `{"schemaVersion":2,"config":` + descriptor + `,"layers":[{"digest":"sha256:` + strings.Repeat("0", 64) + `"}]}`, ociImage, 404},
		{"a digest that leads elsewhere", "v1", `{"schemaVersion":2,"config":{"digest":"sha256:../../x","urls":["u"]},"layers":[]}`, ociImage, 404},
		{"a config without a digest", "v1", `{"schemaVersion":2,"config":{},"layers":[]}`, ociImage, 404},
		{"an index of nothing here", "v1", `{"schemaVersion":2,"manifests":[{"digest":"` + sum(config) + `"}]}`, "", 404},
		{"another digest", "sha256:" + strings.Repeat("1", 64), good, ociImage, 400},
		{"a tag that is none", "-x", good, ociImage, 404},
		{"by its digest", sum([]byte(good)), good, ociImage, 201},
		{"by a tag", "v1", good, ociImage + "; charset=utf-8", 201},
	} {
		res := h.call(tenant, "PUT", "/manifests/"+c.reference, strings.NewReader(c.body), "Content-Type", c.contentType)
		if text, _ := io.ReadAll(res.Body); res.StatusCode != c.status {
			t.Errorf("%s: %d %s, want %d", c.what, res.StatusCode, text, c.status)
		}
	}
	res := h.want(200, tenant, "GET", "/manifests/v1", nil)
	if text, _ := io.ReadAll(res.Body); string(text) != good || res.Header.Get("Content-Type") != ociImage || res.Header.Get("Docker-Content-Digest") != sum([]byte(good)) {
		t.Errorf("manifest = %s %v", text, res.Header)
	}
}

func TestHostileNames(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{})
	own := "/v2/registry/" + tenant
	for _, path := range []string{
		own + "/%2e%2e/blobs/uploads/", own + "/..%2f..%2fx/blobs/uploads/", own + "/A/blobs/uploads/", own + "/a%00/blobs/uploads/",
		own + "/a%5cb/blobs/uploads/", own + "/-a/blobs/uploads/", own + "/a+b/blobs/uploads/", own + "/" + strings.Repeat("a", 300) + "/blobs/uploads/",
		own + "/a%0a/blobs/uploads/", own + "/é/blobs/uploads/", own + "/a/blobs/uploads/../../x", own + "/a/blobs/uploads/%2e%2e%2fblobs",
		own + "//blobs/uploads/", own + "/blobs/uploads/", "/v2/registry/%2e%2e/a/blobs/uploads/", "/v2/registry//a/blobs/uploads/",
		"/v2/registry/" + another + "/a/blobs/uploads/", "/v2/registry/" + tenant + "%2f..%2f" + another + "/a/blobs/uploads/", "/v2/registry/", "/v2/other/a/blobs/uploads/",
	} {
		for _, method := range []string{"POST", "GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"} {
			if got := h.call(tenant, method, path, strings.NewReader("{}")).StatusCode; got < 400 || got >= 500 {
				t.Errorf("%s %s = %d, want a 4xx", method, path, got)
			}
		}
	}
	for _, path := range []string{"/tags/list", "/blobs/sha256:..%2f..%2fx", "/manifests/..%2f..%2fmaster.key", "/blobs/" + sum(nil)} {
		if got := h.call(tenant, "GET", path, nil).StatusCode; got < 400 || got >= 500 {
			t.Errorf("GET %s = %d, want a 4xx", path, got)
		}
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{})
	res := h.call("nobody", "GET", "/v2/", nil)
	if res.StatusCode != 401 || !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Basic ") {
		t.Errorf("without a token: %d %v, want 401 that asks for a password", res.StatusCode, res.Header)
	}
	res = h.want(200, tenant, "GET", "/v2/", nil)
	if got := res.Header.Get("Docker-Distribution-API-Version"); got != "registry/2.0" {
		t.Errorf("version = %q", got)
	}
}

func TestTagsPage(t *testing.T) {
	t.Parallel()
	h := newHost(t, registry.Config{})
	image := picture(t, 1, 10)
	for _, tag := range []string{"a", "b", "c"} {
		if err := remote.Write(h.ref(tenant, "agent:"+tag), image, as(tenant)); err != nil {
			t.Fatal(err)
		}
	}
	res := h.want(200, tenant, "GET", "/tags/list?n=2", nil)
	text, _ := io.ReadAll(res.Body)
	link := res.Header.Get("Link")
	next, _, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
	if !strings.Contains(string(text), `"tags":["a","b"]`) || next == "" {
		t.Fatalf("first page = %s, link %q", text, link)
	}
	res = h.want(200, tenant, "GET", next, nil)
	if text, _ := io.ReadAll(res.Body); !strings.Contains(string(text), `"tags":["c"]`) || res.Header.Get("Link") != "" {
		t.Errorf("second page = %s, link %q", text, res.Header.Get("Link"))
	}
}
