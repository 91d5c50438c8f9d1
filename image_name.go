package slipway

import (
	"context"
	"regexp"
	"strings"
)

// ImageResolver finds out what an image name stands for. Implementations are safe for concurrent use.
type ImageResolver interface {
	// Resolve returns the digest ("sha256:…") of the image that name stands for now, having seen that it runs on
	// linux/amd64. CodeInvalid: there is no such image, the tenant may not use it, or it is for other machines;
	// CodeUnavailable: its registry does not answer in time. It ends with ctx.
	Resolve(ctx context.Context, tenantID string, name ImageName) (digest string, err error)
}

// ImageName is the name of a container image, taken apart.
type ImageName struct {
	Registry   string // host with an optional port; "docker.io" where the text names none
	Repository string // path below the registry
	Tag        string // "" = none given
	Digest     string // "sha256:…"; "" = none given
}

// RegistryPrefix begins the repositories of the installation's own registry: RegistryPrefix/TENANT/NAME.
const RegistryPrefix = "registry"

// maxImageName bounds an image name in bytes, as registries do.
const maxImageName = 512

var (
	repositoryForm = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	registryForm   = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?$`)
	tagForm        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	digestForm     = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// ParseImageName takes the name of an image apart: [REGISTRY/]REPOSITORY[:TAG][@sha256:DIGEST]. CodeInvalid says what is
// wrong with it.
func ParseImageName(text string) (ImageName, error) {
	rest, digest, pinned := strings.Cut(text, "@")
	var n ImageName
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, '/') {
		n.Tag, rest = rest[i+1:], rest[:i]
		if !tagForm.MatchString(n.Tag) {
			return ImageName{}, badImageName(text)
		}
	}
	n.Registry, n.Repository = splitRegistry(rest)
	n.Digest = digest
	if pinned && !digestForm.MatchString(digest) || !registryForm.MatchString(n.Registry) ||
		!repositoryForm.MatchString(n.Repository) || len(text) > maxImageName {
		return ImageName{}, badImageName(text)
	}
	return n, nil
}

// splitRegistry tells the registry from the repository the way container clients do: the first part is a registry if it
// looks like a host.
func splitRegistry(name string) (registry, repository string) {
	first, rest, nested := strings.Cut(name, "/")
	if nested && (strings.ContainsAny(first, ".:") || first == "localhost") {
		return first, rest
	}
	if !nested {
		name = "library/" + name
	}
	return "docker.io", name
}

func badImageName(text string) error {
	return Errorf(CodeInvalid, "image_uri %q is no image name; use registry/name:tag or registry/name@sha256:…", short(text))
}

// Pinned is the name of exactly the image with this digest, whatever its tags come to stand for.
func (n ImageName) Pinned(digest string) string {
	return n.Registry + "/" + n.Repository + "@" + digest
}

// imageDigest returns the digest that an image name is pinned to, "" without one.
func imageDigest(uri *string) string {
	if uri == nil {
		return ""
	}
	_, digest, _ := strings.Cut(*uri, "@")
	return digest
}
