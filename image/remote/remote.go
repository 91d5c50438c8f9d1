// Package remote resolves image names at other registries, those and only those that the operator allowed, with the
// credentials that `docker login` left on this machine.
package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/slipway-dev/slipway"
)

// Config holds the settings of a Resolver.
type Config struct {
	// Hosts that may be asked, with their port where it is not the usual one.
	Hosts []string
	// Timeout bounds one look-up; 0 = 5 s.
	Timeout time.Duration
	// Keychain holds the credentials; nil = what `docker login` left.
	Keychain authn.Keychain
}

// Resolver is a slipway.ImageResolver. It keeps nothing between calls.
type Resolver struct{ cfg Config }

var _ slipway.ImageResolver = (*Resolver)(nil)

// New returns a Resolver.
func New(cfg Config) *Resolver {
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.Keychain == nil {
		cfg.Keychain = authn.DefaultKeychain
	}
	return &Resolver{cfg}
}

// Resolve implements slipway.ImageResolver. Every tenant may name the images that the operator's credentials can read.
func (r *Resolver) Resolve(ctx context.Context, _ string, image slipway.ImageName) (string, error) {
	if !slices.Contains(r.cfg.Hosts, image.Registry) {
		return "", invalid("images of the registry %s may not be used here%s; push the image to the registry_url of POST push-token, or let the operator allow that registry", image.Registry, r.allowed())
	}
	ref, err := reference(image)
	if err != nil {
		return "", invalid("%s/%s is no image of a registry: %w", image.Registry, image.Repository, err)
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	found, err := remote.Get(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(r.cfg.Keychain))
	if err == nil {
		err = runsHere(ref, found)
	}
	if err != nil {
		return "", explained(ref, err)
	}
	return found.Digest.String(), nil
}

func (r *Resolver) allowed() string {
	if len(r.cfg.Hosts) == 0 {
		return ""
	}
	return " (only those of " + strings.Join(r.cfg.Hosts, ", ") + ")"
}

func reference(image slipway.ImageName) (name.Reference, error) {
	repository := image.Registry + "/" + image.Repository
	switch {
	case image.Digest != "":
		return name.NewDigest(repository + "@" + image.Digest)
	case image.Tag != "":
		return name.NewTag(repository + ":" + image.Tag)
	}
	return name.NewTag(repository + ":latest")
}

func runsHere(ref name.Reference, found *remote.Descriptor) error {
	if found.MediaType.IsIndex() {
		index, err := found.ImageIndex()
		if err != nil {
			return err
		}
		list, err := index.IndexManifest()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(list.Manifests, func(d v1.Descriptor) bool {
			return d.Platform != nil && d.Platform.OS == "linux" && d.Platform.Architecture == "amd64"
		}) {
			return nil
		}
		return invalid("%s has no image for linux/amd64; build it with --platform linux/amd64", ref)
	}
	image, err := found.Image()
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err == nil && (config.OS != "linux" || config.Architecture != "amd64") {
		err = invalid("%s is for %s/%s; build it with --platform linux/amd64", ref, config.OS, config.Architecture)
	}
	return err
}

// explained turns the registry's answer into one about the image name.
func explained(ref name.Reference, err error) error {
	var answer *transport.Error
	switch {
	case slipway.ErrorCode(err) == slipway.CodeInvalid:
		return err
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		return invalid("the registry %s has no image %s; check its name", ref.Context().RegistryStr(), ref)
	case errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		return invalid("the registry %s does not let this installation read %s; check the name, or let the operator log in to it", ref.Context().RegistryStr(), ref)
	}
	return &slipway.Error{
		Code: slipway.CodeUnavailable, Err: err,
		Message: fmt.Sprintf("the registry %s did not say in time what %s is; try again", ref.Context().RegistryStr(), ref),
	}
}

func invalid(format string, args ...any) error {
	return slipway.Errorf(slipway.CodeInvalid, format, args...)
}
