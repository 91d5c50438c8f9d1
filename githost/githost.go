// Package githost opens integrations: it knows which adapter speaks with which kind of host.
package githost

import (
	"context"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/githost/generic"
	"github.com/slipway-dev/slipway/githost/gitea"
	"github.com/slipway-dev/slipway/githost/github"
	"github.com/slipway-dev/slipway/githost/gitlab"
)

// Hosts opens git hosts of every kind. It is safe for concurrent use.
type Hosts struct{ clock slipway.Clock }

var _ slipway.GitHosts = Hosts{}

// New returns Hosts; the clock tells when tokens expire.
func New(clock slipway.Clock) Hosts { return Hosts{clock} }

// Open implements slipway.GitHosts.
func (h Hosts) Open(i slipway.Integration, secrets slipway.IntegrationSecrets) (slipway.GitHost, error) {
	switch i.Kind {
	case slipway.HostGitHub:
		return github.New(i, secrets, h.clock)
	case slipway.HostGitea:
		return gitea.New(i, secrets), nil
	case slipway.HostGitLab:
		return gitlab.New(i, secrets), nil
	case slipway.HostGeneric:
		return generic.New(i, secrets), nil
	}
	return nil, slipway.Errorf(slipway.CodeInvalid, "git hosts of kind %q are unknown to this version of slipway", i.Kind)
}

// ConvertManifest implements slipway.GitHosts.
func (Hosts) ConvertManifest(ctx context.Context, i slipway.Integration, code string) (slipway.App, error) {
	return github.Convert(ctx, i, code)
}
