package controlapi_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestTenantsWithTheSameNameHaveTheirOwnAddresses(t *testing.T) {
	t.Parallel()
	s := newStormServer(t)
	first := s.admin().TenantID
	other := s.want(201, "POST", "/v2/tenants", `{"name":"other"}`)["id"].(string)
	create := func(tenant string) map[string]any {
		t.Helper()
		rec := s.asTenant(tenant, "POST", "/v2/deployments", createSource)
		if rec.Code != 201 {
			t.Fatalf("create in %s: %d %s", tenant, rec.Code, rec.Body)
		}
		return decoded(t, rec.Body.Bytes())
	}
	name := decoded(t, []byte(createSource))["name"].(string)
	urls := map[string]string{}
	for _, tenant := range []string{other, first} { // the newcomer first: who came first must not matter
		urls[tenant] = create(tenant)["url"].(string)
	}
	if want := base + "/d/" + name; urls[first] != want {
		t.Errorf("in the first tenant the address is %s, want %s", urls[first], want)
	}
	if want := fmt.Sprintf("%s/d/%s~%s", base, name, other[len(other)-12:]); urls[other] != want {
		t.Errorf("in another tenant the address is %s, want %s", urls[other], want)
	}
	state, err := s.Desired(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range state.Deployments {
		if want := urls[d.TenantID]; !strings.HasSuffix(want, "/d/"+d.Route()) {
			t.Errorf("the gateway routes %s, but the address is %s", d.Route(), want)
		}
	}
	if rec := s.asTenant(other, "DELETE", "/v2/tenants/"+first, ""); rec.Code != 409 {
		t.Errorf("deleting the first tenant: %d %s, want 409: its plain addresses would become another's", rec.Code, rec.Body)
	}
}
