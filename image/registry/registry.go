package registry

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
)

// User is the name that clients log in with; the password is a push token.
const User = "oauth2accesstoken"

// Config holds the settings of a registry.
type Config struct {
	// Root is the directory of the images; it is made when missing. At most one Registry may use it.
	Root string
	// Authorize returns the tenant that a push token is for; CodeUnauthenticated if it is none or has expired.
	Authorize func(token string) (tenantID string, err error)
	// MaxBlob bounds one layer in bytes; 0 = 10 GiB.
	MaxBlob int64
	// MaxTenant bounds what all images and open uploads of one tenant take, in bytes; 0 = 50 GiB.
	MaxTenant int64
	// MaxUploads bounds the open uploads of one tenant; 0 = 64.
	MaxUploads int
	// UploadTTL is how long an upload that nobody writes to is kept; 0 = 24 h.
	UploadTTL time.Duration
}

const (
	maxManifest = 4 << 20 // bytes, as every registry has it
	maxTags     = 1000    // of one page
)

// Registry is the http.Handler of everything below /v2/ that is a registry's, and resolves image names. It is safe for
// concurrent use.
type Registry struct {
	cfg   Config
	clock slipway.Clock
	ids   slipway.IDs
	log   *slog.Logger

	mu     sync.Mutex
	spaces map[string]*space // by tenant id
}

var _ slipway.ImageResolver = (*Registry)(nil)

// New returns a registry over cfg.Root.
func New(cfg Config, clock slipway.Clock, ids slipway.IDs, log *slog.Logger) (*Registry, error) {
	if err := os.MkdirAll(cfg.Root, 0o700); err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	if cfg.MaxBlob == 0 {
		cfg.MaxBlob = 10 << 30
	}
	if cfg.MaxTenant == 0 {
		cfg.MaxTenant = 50 << 30
	}
	if cfg.MaxUploads == 0 {
		cfg.MaxUploads = 64
	}
	if cfg.UploadTTL == 0 {
		cfg.UploadTTL = 24 * time.Hour
	}
	return &Registry{cfg: cfg, clock: clock, ids: ids, log: log, spaces: map[string]*space{}}, nil
}

// space returns the part of a tenant, whose id must be one that authentication or the store knows.
func (r *Registry) space(tenantID string) (*space, error) {
	if !tenantForm.MatchString(tenantID) {
		return nil, fmt.Errorf("registry: tenant id %q is no name of a directory", tenantID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.spaces[tenantID]
	if !ok {
		var err error
		if s, err = openSpace(filepath.Join(r.cfg.Root, tenantID), r.cfg); err != nil {
			return nil, err
		}
		r.spaces[tenantID] = s
	}
	return s, nil
}

// ServeHTTP implements http.Handler.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Docker-Distribution-API-Version", "registry/2.0")
	if err := r.serve(w, req); err != nil {
		r.refuse(w, req, err)
	}
}

func (r *Registry) serve(w http.ResponseWriter, req *http.Request) error {
	tenant, err := r.authenticate(req)
	if err != nil {
		w.Header().Set("WWW-Authenticate", `Basic realm="slipway"`)
		return err
	}
	if req.URL.Path == "/v2/" {
		return ping(w, req)
	}
	t, err := parseTarget(req.URL.Path)
	if err != nil {
		return err
	}
	if t.tenant != tenant {
		return refusal{http.StatusForbidden, denied, "the push token is not for " + slipway.RegistryPrefix + "/" + t.tenant + "; push below the registry_url that came with it"}
	}
	s, err := r.space(tenant)
	if err != nil {
		return err
	}
	return r.dispatch(w, req, &call{target: t, space: s})
}

func ping(w http.ResponseWriter, req *http.Request) error {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		return unsupported(req)
	}
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write([]byte("{}"))
	return ignored(err)
}

func (r *Registry) authenticate(req *http.Request) (string, error) {
	user, token, ok := req.BasicAuth()
	if !ok || user != User {
		return "", refusal{http.StatusUnauthorized, unauthorized, "log in as " + User + " with a token of POST /v2/deployments/ID/push-token as the password"}
	}
	tenant, err := r.cfg.Authorize(token)
	if slipway.ErrorCode(err) == slipway.CodeUnauthenticated {
		return "", refusal{http.StatusUnauthorized, unauthorized, err.Error()}
	}
	return tenant, err
}

// call is one request about something of a tenant.
type call struct {
	target
	space *space
}

// dispatch finds the handler of a request.
func (r *Registry) dispatch(w http.ResponseWriter, req *http.Request, c *call) error {
	read := req.Method == http.MethodGet || req.Method == http.MethodHead
	switch {
	case c.kind == kindTags && req.Method == http.MethodGet:
		return c.listTags(w, req)
	case c.kind == kindBlob && read:
		return c.getBlob(w, req)
	case c.kind == kindManifest && read:
		return c.getManifest(w, req)
	case c.kind == kindManifest && req.Method == http.MethodPut:
		return r.putManifest(w, req, c)
	case c.kind == kindUploads && req.Method == http.MethodPost:
		return r.startUpload(w, req, c)
	case c.kind == kindUpload:
		return r.upload(w, req, c)
	}
	return unsupported(req)
}

// upload answers what is asked about one open upload. Looking is free; one request at a time changes it.
func (r *Registry) upload(w http.ResponseWriter, req *http.Request, c *call) error {
	if req.Method == http.MethodGet {
		return c.uploadStatus(w)
	}
	release, err := c.space.hold(c.reference)
	if err != nil {
		return err
	}
	defer release()
	switch req.Method {
	case http.MethodPatch:
		return r.appendUpload(w, req, c)
	case http.MethodPut:
		return r.finishUpload(w, req, c)
	case http.MethodDelete:
		return c.giveUp(w)
	}
	return unsupported(req)
}

func unsupported(req *http.Request) error {
	return refusal{http.StatusMethodNotAllowed, "UNSUPPORTED", "this registry has no " + req.Method + " here; images are kept as long as their installation"}
}

// path returns the address of something in the call's repository.
func (c *call) path(parts ...string) string {
	return "/v2/" + slipway.RegistryPrefix + "/" + c.tenant + "/" + c.name + "/" + strings.Join(parts, "/")
}
