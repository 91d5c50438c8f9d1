package slipway_test

import (
	"testing"

	"github.com/slipway-dev/slipway"
)

// A variable has one value: it cannot be a secret and a reference to a cluster secret at once.
func TestNoVariableIsFilledTwice(t *testing.T) {
	t.Parallel()
	secrets := func(names ...string) *[]slipway.Secret {
		list := []slipway.Secret{}
		for _, name := range names {
			list = append(list, slipway.Secret{Name: name, Value: "v"})
		}
		return &list
	}
	references := func(names ...string) *[]slipway.SecretReference {
		list := []slipway.SecretReference{}
		for _, name := range names {
			list = append(list, slipway.SecretReference{Name: name, SecretName: "s", SecretKey: "k"})
		}
		return &list
	}
	in := valid(slipway.SourceExternalContainer)
	in.Secrets, in.SecretReferences = *secrets("A"), references("B", "A")
	if _, err := slipway.Create("t", in, everything, "", at, ids()); len(places(err)) != 1 || places(err)[0] != "body.secret_references.1.name" {
		t.Errorf("create: %v, want the place of the reference", err)
	}
	in.SecretReferences = references("B")
	made, err := slipway.Create("t", in, everything, "", at, ids())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		in   slipway.DeploymentPatch
		want slipway.Code
	}{
		{"both in the request", slipway.DeploymentPatch{Secrets: secrets("C"), SecretReferences: references("C")}, slipway.CodeInvalid},
		{"a stored secret", slipway.DeploymentPatch{SecretReferences: references("A")}, slipway.CodeBadRequest},
		{"a stored reference", slipway.DeploymentPatch{Secrets: secrets("A", "B")}, slipway.CodeBadRequest},
		{"swapped", slipway.DeploymentPatch{Secrets: secrets("B"), SecretReferences: references("A")}, ""},
		{"taken out", slipway.DeploymentPatch{Secrets: secrets(), SecretReferences: references("A")}, ""},
	} {
		_, err := slipway.Patch(made.Deployment, c.in, everything, slipway.Facts{SecretNames: []string{"A"}}, at, ids())
		if slipway.ErrorCode(err) != c.want {
			t.Errorf("%s: %v, want code %q", c.name, err, c.want)
		}
	}
}
