package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/slipway-dev/slipway"
)

// Resolve implements slipway.ImageResolver for names below this registry, whatever host they begin with. An image of
// another tenant is one that does not exist.
func (r *Registry) Resolve(_ context.Context, tenantID string, name slipway.ImageName) (string, error) {
	repository, ok := strings.CutPrefix(name.Repository, slipway.RegistryPrefix+"/"+tenantID+"/")
	reference := name.Tag
	if name.Digest != "" {
		reference = name.Digest
	}
	if reference == "" {
		reference = "latest"
	}
	t := target{tenant: tenantID, name: repository, kind: kindManifest, reference: reference}
	if !ok || t.check() != nil {
		return "", unknown(name, reference)
	}
	s, err := r.space(tenantID)
	if err != nil {
		return "", err
	}
	digest, content, err := s.lookUp(repository, reference)
	if missing(err) {
		return "", unknown(name, reference)
	}
	if err != nil {
		return "", fmt.Errorf("resolve image: %w", err)
	}
	return digest, s.runsHere(name, content)
}

func unknown(name slipway.ImageName, reference string) error {
	return invalid("there is no image %s in %s/%s; push it with a token of POST push-token first", reference, name.Registry, name.Repository)
}

// runsHere checks that an image, or one of an index, is for linux/amd64.
func (s *space) runsHere(name slipway.ImageName, content []byte) error {
	var m manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return fmt.Errorf("resolve image: %w", err)
	}
	if m.index() {
		for _, d := range m.Manifests {
			if d.Platform != nil && d.Platform.OS == "linux" && d.Platform.Architecture == "amd64" {
				return nil
			}
		}
		return invalid("%s/%s has no image for linux/amd64; build it with --platform linux/amd64", name.Registry, name.Repository)
	}
	platform, err := s.platform(*m.Config)
	if err == nil && platform != "linux/amd64" {
		err = invalid("%s/%s is for %s; build it with --platform linux/amd64", name.Registry, name.Repository, clip(platform))
	}
	return err
}

// maxConfig bounds the configuration of an image in bytes; real ones have some thousands.
const maxConfig = 4 << 20

func (s *space) platform(config descriptor) (string, error) {
	path := s.blob(config.Digest)
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("resolve image: %w", err)
	}
	if info.Size() > maxConfig {
		return "", invalid("the configuration of the image has more than %d bytes", maxConfig)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("resolve image: %w", err)
	}
	var c struct{ OS, Architecture string }
	if err := json.Unmarshal(text, &c); err != nil || c.OS == "" {
		return "", invalid("the configuration of the image does not say what machine it is for; push an image that runs")
	}
	return c.OS + "/" + c.Architecture, nil
}
