package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/image"
	"github.com/slipway-dev/slipway/image/registry"
	"github.com/slipway-dev/slipway/image/remote"
)

// defaultSources are the sources that a machine without containers can deploy.
func defaultSources() []string {
	return []string{string(slipway.SourceGithost), string(slipway.SourceInternalSource), string(slipway.SourceInternalTemplate)}
}

// served reads --sources.
func (s upSettings) served() ([]slipway.Source, error) {
	out := make([]slipway.Source, 0, len(s.sources))
	for _, name := range s.sources {
		source := slipway.Source(strings.TrimSpace(name))
		if !source.Known() {
			return nil, fmt.Errorf("--sources names %q; choose among githost, internal_source, internal_template, internal_container and external_container", name)
		}
		out = append(out, source)
	}
	return out, nil
}

// takesImages says whether deployments may run images that are pushed here.
func (s upSettings) takesImages() bool {
	return slices.Contains(s.sources, string(slipway.SourceInternalContainer))
}

// openRegistry opens the installation's own registry, unless nothing is pushed here.
func (p *platform) openRegistry(where installation, s upSettings) error {
	if !s.takesImages() {
		return nil
	}
	authorize := func(token string) (string, error) { return p.control.AuthorizePush(token) }
	var err error
	p.registry, err = registry.New(registry.Config{Root: where.path("registry"), Authorize: authorize}, now, newID, p.log)
	return err
}

// resolver finds out what image names stand for; nil where no images are taken.
func (p *platform) resolver(s upSettings) slipway.ImageResolver {
	if p.registry == nil {
		return nil
	}
	return image.Resolver{
		Host: control.RegistryHost(s.base(p.url)), Own: p.registry, Foreign: remote.New(remote.Config{Hosts: s.allowRegistries}),
	}
}

// handleImages lets container clients in; their protocol begins at /v2/ on whatever host it is.
func (p *platform) handleImages(mux *http.ServeMux) {
	if p.registry == nil {
		return
	}
	mux.Handle("/v2/{$}", p.registry)
	mux.Handle("/v2/"+slipway.RegistryPrefix+"/", p.registry)
}
