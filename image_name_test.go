package slipway_test

import (
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
)

func TestImageNames(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("0a", 32)
	for text, want := range map[string]slipway.ImageName{
		"nginx":                              {Registry: "docker.io", Repository: "library/nginx"},
		"acme/agent:1.2":                     {Registry: "docker.io", Repository: "acme/agent", Tag: "1.2"},
		"localhost/agent":                    {Registry: "localhost", Repository: "agent"},
		"ghcr.io/acme/agent@" + digest:       {Registry: "ghcr.io", Repository: "acme/agent", Digest: digest},
		"127.0.0.1:7400/registry/t/a:v1":     {Registry: "127.0.0.1:7400", Repository: "registry/t/a", Tag: "v1"},
		"[::1]:7400/a:v1@" + digest:          {Registry: "[::1]:7400", Repository: "a", Tag: "v1", Digest: digest},
		"host.example:443/a/b__c/d.e-f--g:_": {Registry: "host.example:443", Repository: "a/b__c/d.e-f--g", Tag: "_"},
	} {
		if got, err := slipway.ParseImageName(text); err != nil || got != want {
			t.Errorf("%q = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "a b", "UPPER/case", "https://host/a", "host.example/", "a//b", "../a", "host.example/a/../b", "a:", "a:b:c", "a@", "a@sha256:12",
		"a@sha512:" + strings.Repeat("0", 128), "a:-x", "a\x00b", "a\nb", "host_x.y/a", strings.Repeat("a", 600), "é/a", "a@" + digest + "@" + digest,
	} {
		if got, err := slipway.ParseImageName(text); slipway.ErrorCode(err) != slipway.CodeInvalid {
			t.Errorf("%q = %+v, %v; want CodeInvalid", text, got, err)
		}
	}
	name, _ := slipway.ParseImageName("ghcr.io/acme/agent:v1")
	if got, want := name.Pinned(digest), "ghcr.io/acme/agent@"+digest; got != want {
		t.Errorf("pinned = %q, want %q", got, want)
	}
}
