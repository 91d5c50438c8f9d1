package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestKilledWhileCollecting kills the platform at every moment of a collection (docs/failpoints.md): what serves goes on
// serving, what can be redeployed is there after the next start, and the leftovers go with the next collection.
func TestKilledWhileCollecting(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.flags = []string{"--keep-revisions", "2"}
	m.up()
	last := ""
	ship := func(greeting string) {
		t.Helper()
		_, err := m.slipway("deploy", m.source(greeting), "--name", "app")
		check(t, err)
		m.eventually("it serves", func() error { return m.settled("app", greeting) })
		last = greeting
	}
	ship("start")
	ship("second")
	for _, point := range []string{"collect.marked", "collect.taken", "collect.doomed", "collect.removing", "collect.removed"} {
		ship(strings.ReplaceAll(point, ".", "-")) // the third newest is what nobody needs from now on
		endpoints := m.endpoints()
		m.kill()
		m.up("SLIPWAY_FAILPOINT=" + point)
		_, _ = m.slipway("gc", "--all")
		m.awaitDeath()
		m.someGreets(point, endpoints, last)
		m.up()
		m.eventually(point+": it serves after the start", func() error { return m.settled("app", last) })
		check(t, m.noHalves())
		out, err := m.slipway("gc", "--all")
		check(t, err)
		if got := len(m.bundles()); got != 2 {
			t.Errorf("%s: after the next collection there are %d bundles, want 2: the active one and the one before it\n%s", point, got, out)
		}
		if out, err = m.slipway("gc", "--all", "--dry-run"); err != nil || !strings.Contains(out, "would free 0.0 MiB") {
			t.Errorf("%s: something is left to collect: %v\n%s", point, err, out)
		}
		m.eventually(point+": nothing is left", func() error { return m.tidy(1) })
	}
	_, err := m.slipway("redeploy", "app", m.newest("app")[1])
	check(t, err)
	m.eventually("what was to stay redeployable is", func() error { return m.settled("app", "collect-removing") })
	_, err = m.slipway("redeploy", "app", m.newest("app")[3]) // its bundle was given up; its archive is young
	check(t, err)
	m.eventually("what was given up is built again", func() error { return m.settled("app", "collect-doomed") })
}

// newest lists the revisions of a deployment, the newest first.
func (m *machine) newest(name string) (ids []string) {
	m.t.Helper()
	found, err := m.deployments(name)
	check(m.t, err)
	var list struct {
		Resources []struct {
			ID string `json:"id"`
		} `json:"resources"`
	}
	_, err = m.call("GET", m.url+"/v2/deployments/"+found[0].ID+"/revisions", "", &list)
	check(m.t, err)
	for _, r := range list.Resources {
		ids = append(ids, r.ID)
	}
	return ids
}

// noHalves says what of an interrupted removal or fetch is left.
func (m *machine) noHalves() error {
	for _, room := range []string{"bundles", "layers", "tools", "cache", "blobs"} {
		for _, mark := range []string{".gone-*", ".dead-*", ".tmp-*"} {
			if left, _ := filepath.Glob(filepath.Join(m.data, room, mark)); len(left) > 0 {
				return fmt.Errorf("left: %q", left)
			}
		}
	}
	return nil
}
