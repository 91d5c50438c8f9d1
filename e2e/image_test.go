package e2e_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/slipway-dev/slipway/cli"
	"github.com/slipway-dev/slipway/client"
)

// TestPushedImage walks the way of `deploy` with an image: create, ask for a token, push, PATCH. A machine without
// containers cannot run it, and says so.
func TestPushedImage(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	out, err := exec.Command(shared.bin+"/slipway", "up", "--detach", "--no-example", "--data-dir", m.data, "--listen", m.listen,
		"--sources", "internal_container,internal_source").CombinedOutput()
	if err != nil {
		t.Fatalf("slipway up: %v\n%s", err, out)
	}
	key, err := cli.ReadCredentials(m.data)
	check(t, err)
	c := client.New(m.url, key.APIKey)
	d, err := c.CreateDeployment(t.Context(), client.DeploymentCreate{Name: "boat", Source: "internal_container"})
	check(t, err)
	token, err := c.PushToken(t.Context(), d.ID)
	check(t, err)

	tagged := pushImage(t, token.RegistryURL+"/boat:v1", token.Token)
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
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{OS: "linux", Architecture: "amd64"})
	check(t, err)
	ref, err := name.ParseReference(to, name.StrictValidation)
	check(t, err)
	check(t, remote.Write(ref, image, remote.WithAuth(&authn.Basic{Username: "oauth2accesstoken", Password: token})))
	digest, err := image.Digest()
	check(t, err)
	return digest.String()
}
