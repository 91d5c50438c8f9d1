package registry

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/slipway-dev/slipway"
)

type kind int

const (
	kindTags     kind = iota + 1 // NAME/tags/list
	kindBlob                     // NAME/blobs/DIGEST
	kindManifest                 // NAME/manifests/TAG or DIGEST
	kindUploads                  // NAME/blobs/uploads/
	kindUpload                   // NAME/blobs/uploads/ID
)

// maxName bounds a repository's name below its tenant in bytes: it becomes the name of one directory.
const maxName = 200

var (
	tenantForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`)
	nameForm   = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagForm    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	uploadForm = regexp.MustCompile(`^[0-9a-f-]{36}$`)
)

// target is what the path of a request names. Every part has been checked to be fit for the name of a file.
type target struct {
	tenant, name string
	kind         kind
	reference    string // digest, tag or upload id
}

// parseTarget reads a path /v2/registry/TENANT/NAME/….
func parseTarget(path string) (target, error) {
	rest, ok := strings.CutPrefix(path, "/v2/"+slipway.RegistryPrefix+"/")
	tenant, rest, nested := strings.Cut(rest, "/")
	if !ok || !nested || !tenantForm.MatchString(tenant) {
		return target{}, badName("a repository of this registry is called " + slipway.RegistryPrefix + "/TENANT/NAME; use the registry_url that came with the push token")
	}
	t := target{tenant: tenant}
	if t.name, ok = strings.CutSuffix(rest, "/tags/list"); ok {
		t.kind = kindTags
		return t, t.check()
	}
	for _, place := range []struct {
		mark string
		kind kind
	}{{"/blobs/uploads/", kindUpload}, {"/manifests/", kindManifest}, {"/blobs/", kindBlob}} {
		if i := strings.LastIndex(rest, place.mark); i >= 0 {
			t.name, t.kind, t.reference = rest[:i], place.kind, rest[i+len(place.mark):]
			break
		}
	}
	if t.kind == kindUpload && t.reference == "" {
		t.kind = kindUploads
	}
	return t, t.check()
}

func (t target) check() error {
	if len(t.name) > maxName || !nameForm.MatchString(t.name) {
		return badName("a repository's name has lower-case letters and digits with single '.', '_' and '-' between, and at most 200 characters")
	}
	switch t.kind {
	case kindBlob:
		if !digestForm.MatchString(t.reference) {
			return badDigest(t.reference)
		}
	case kindManifest:
		if !digestForm.MatchString(t.reference) && !tagForm.MatchString(t.reference) {
			return refusal{http.StatusNotFound, "MANIFEST_UNKNOWN", "there is no manifest of this name; a reference is a tag or sha256:…"}
		}
	case kindUpload:
		if !uploadForm.MatchString(t.reference) {
			return unknownUpload()
		}
	}
	return nil
}

// directory is the repository's name as the name of one directory; "+" occurs in no repository's name.
func directory(name string) string { return strings.ReplaceAll(name, "/", "+") }
