package image_test

import (
	"context"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/image"
)

// known answers with itself.
type known string

// Resolve implements slipway.ImageResolver.
func (k known) Resolve(context.Context, string, slipway.ImageName) (string, error) {
	return string(k), nil
}

func TestResolverAsksTheRegistryOfTheName(t *testing.T) {
	t.Parallel()
	r := image.Resolver{Host: "own.test:7400", Own: known("own"), Foreign: known("foreign")}
	for text, want := range map[string]string{
		"own.test:7400/registry/t/a:v1": "own", "own.test/registry/t/a:v1": "foreign", "elsewhere.test/a": "foreign", "a": "foreign",
	} {
		name, err := slipway.ParseImageName(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Resolve(t.Context(), "t", name); got != want || err != nil {
			t.Errorf("%s goes to %s, %v; want %s", text, got, err, want)
		}
	}
}
