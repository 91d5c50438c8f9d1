package beaconapi_test

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

const golden = "../../openapi/beacon.json"

func TestDescriptionIsCheckedIn(t *testing.T) {
	t.Parallel()
	got := newServer(t).get("/openapi.json")
	if *update {
		if err := os.WriteFile(golden, got.body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.body, want) {
		t.Error("/openapi.json differs from openapi/beacon.json; look at the difference, then: go test ./api/beaconapi -run Description -update")
	}
}
