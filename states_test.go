package slipway_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
)

var update = flag.Bool("update", false, "write the generated documents instead of comparing with them")

const stateMachines = "docs/state-machines.md"

// TestStateMachinesAreDocumented draws the tables of revision_lifecycle.go and deployment_lifecycle.go.
func TestStateMachinesAreDocumented(t *testing.T) {
	t.Parallel()
	got := drawn()
	if *update {
		if err := os.WriteFile(stateMachines, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(stateMachines)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the tables say; look at the difference, then: go test . -run StateMachines -update", stateMachines)
	}
}

func drawn() string {
	var b strings.Builder
	b.WriteString("# State machines\n\nGenerated from the transition tables by `go test . -run StateMachines -update`; do not edit.\n")
	b.WriteString("\n## Revision\n\n```mermaid\nstateDiagram-v2\n    [*] --> " + string(slipway.Creating) + "\n")
	eachMove(func(from, to slipway.RevisionStatus) { fmt.Fprintf(&b, "    %s --> %s\n", from, to) })
	for _, s := range slipway.RevisionStatuses() {
		if s.Terminal() {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	b.WriteString("```\n\n| Status | Next | Terminal | In progress |\n|---|---|---|---|\n")
	for _, s := range slipway.RevisionStatuses() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s, nextOf(s), yes(s.Terminal()), yes(s.InProgress()))
	}
	b.WriteString("\nOne revision of a deployment is in progress at a time. When it ends, the newest QUEUED one goes on and older QUEUED ones\nbecome SKIPPED. A replaced revision stays DEPLOYED; the deployment's active revision tells which one serves.\n")
	b.WriteString("\n## Deployment\n\nThe status follows from what is active, what is under way and whether anybody can tell.\n\n| Active revision | Unfinished revision | Listener offline | Deleted | Status |\n|---|---|---|---|---|\n")
	for _, deleted := range []bool{false, true} {
		for _, offline := range []bool{false, true} {
			for _, active := range []bool{false, true} {
				for _, unfinished := range []bool{false, true} {
					status := deploymentStatus(active, unfinished, offline, deleted)
					fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", yes(active), yes(unfinished), yes(offline), yes(deleted), status)
				}
			}
		}
	}
	return b.String()
}

func eachMove(fn func(from, to slipway.RevisionStatus)) {
	for _, from := range slipway.RevisionStatuses() {
		for _, to := range from.NextStatuses() {
			fn(from, to)
		}
	}
}

func nextOf(s slipway.RevisionStatus) string {
	var names []string
	for _, next := range s.NextStatuses() {
		names = append(names, string(next))
	}
	if names == nil {
		return "—"
	}
	return strings.Join(names, ", ")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func deploymentStatus(active, unfinished, offline, deleted bool) slipway.DeploymentStatus {
	d := slipway.Deployment{Unreachable: offline}
	if active {
		d.ActiveRevisionID = "r"
	}
	if deleted {
		d = d.Deleted(at, slipway.DeletionTerms{})
	}
	return d.Settled(unfinished, at).Status
}
