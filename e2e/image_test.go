package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/slipway-dev/slipway/cli"
	"github.com/slipway-dev/slipway/client"
)

// TestPushedImage walks the way of `deploy` with an image: create, ask for a token, push, PATCH; between push and PATCH
// the platform is killed. A machine without
// containers cannot run it, and says so.
func TestPushedImage(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.flags = []string{"--sources", "internal_container,internal_source"}
	m.up()
	key, err := cli.ReadCredentials(m.data)
	check(t, err)
	c := client.New(m.url, key.APIKey)
	d, err := c.CreateDeployment(t.Context(), client.DeploymentCreate{Name: "boat", Source: "internal_container"})
	check(t, err)
	token, err := c.PushToken(t.Context(), d.ID)
	check(t, err)

	tagged := pushImage(t, token.RegistryURL+"/boat:v1", token.Token)
	m.kill()
	m.up()
	pullImage(t, token.RegistryURL+"/boat:v1", token.Token, tagged) // what was pushed survives, and so does the token
	source, uri := "internal_container", token.RegistryURL+"/boat:v1"
	_, err = c.PatchDeployment(t.Context(), d.ID, client.DeploymentPatch{RevisionSource: &source, SourceRevisionConfig: &client.SourceRevisionConfig{ImageURI: &uri}})
	check(t, err)
	var r client.Revision
	m.eventually("the revision ends", func() error {
		page, err := c.Revisions(t.Context(), d.ID, 1)
		if err != nil || len(page) == 0 || !page[0].Ended() {
			return fmt.Errorf("revisions %v, %w", page, err)
		}
		r = page[0]
		return nil
	})
	if r.Status != "DEPLOY_FAILED" || !strings.Contains(r.Reason(), "cannot run the container image") {
		t.Errorf("revision = %s, %q; want DEPLOY_FAILED that says that this machine runs no containers", r.Status, r.Reason())
	}
	if got, want := *r.SourceRevisionConfig.ImageURI, token.RegistryURL+"/boat@"+tagged; got != want {
		t.Errorf("image_uri = %q, want %q", got, want)
	}
	res, err := http.Get(m.url + "/v2/")
	check(t, err)
	res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("GET /v2/ = %d, want 401, which is how a client learns that it must log in", res.StatusCode)
	}
}

// pushImage pushes a small image and returns its digest.
func pushImage(t *testing.T, to, token string) string {
	t.Helper()
	image, err := random.Image(1000, 3)
	check(t, err)
	config, err := image.ConfigFile()
	check(t, err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	image, err = mutate.ConfigFile(image, config)
	check(t, err)
	ref, err := name.ParseReference(to, name.StrictValidation)
	check(t, err)
	check(t, remote.Write(ref, image, remote.WithAuth(&authn.Basic{Username: "oauth2accesstoken", Password: token})))
	digest, err := image.Digest()
	check(t, err)
	return digest.String()
}

// pullImage reads all of an image, which must have the digest.
func pullImage(t *testing.T, from, token, want string) {
	t.Helper()
	ref, err := name.ParseReference(from, name.StrictValidation)
	check(t, err)
	image, err := remote.Image(ref, remote.WithAuth(&authn.Basic{Username: "oauth2accesstoken", Password: token}))
	check(t, err)
	check(t, validate.Image(image))
	digest, err := image.Digest()
	check(t, err)
	if digest.String() != want {
		t.Errorf("%s is %s, want %s", from, digest, want)
	}
}
