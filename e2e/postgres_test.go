package e2e_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/store/postgres/pgtest"
)

// TestPlatformOnPostgres runs an installation whose records are all in PostgreSQL through deploys, a kill of the platform
// and a restart of the database, and looks that user code does not get the database's address.
func TestPlatformOnPostgres(t *testing.T) {
	t.Parallel()
	cluster, err := pgtest.Start()
	check(t, err)
	m := newMachine(t) // stops the platform, after which the cluster may go
	t.Cleanup(func() { check(t, cluster.Stop()) })
	t.Cleanup(func() { stopEverything(m.data) })
	url, _, err := cluster.Database()
	check(t, err)
	up := func() { m.up("SLIPWAY_DATABASE_URL=" + url) }
	up()
	_, err = m.slipway("deploy", m.source("v1"), "--name", "kept")
	check(t, err)
	check(t, m.greets(m.url+"/d/kept", "v1"))
	if files, _ := filepath.Glob(filepath.Join(m.data, "*.db")); len(files) > 0 {
		t.Errorf("there are SQLite files beside PostgreSQL: %q", files)
	}
	for _, pid := range m.servers() {
		for _, p := range processes() {
			env, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "environ"))
			if below(p, []int{pid}) && bytes.Contains(env, []byte("SLIPWAY_DATABASE")) {
				t.Errorf("worker %d has the database's address: %s", p.pid, strings.ReplaceAll(p.cmdline, "\x00", " "))
			}
		}
	}
	m.kill()
	up()
	m.eventually("it serves after a kill of the platform", func() error { return m.settled("kept", "v1") })
	check(t, cluster.Restart())
	m.eventually("it serves after a restart of the database", func() error { return m.greets(m.url+"/d/kept", "v1") })
	_, err = m.slipway("deploy", m.source("v2"), "--name", "kept")
	check(t, err)
	m.eventually("the second revision serves", func() error { return m.settled("kept", "v2") })
	found, err := m.deployments("kept")
	check(t, err)
	status, err := m.call(http.MethodDelete, m.url+"/v2/deployments/"+found[0].ID, "", nil)
	if err != nil || status >= 300 {
		t.Errorf("delete: %d, %v", status, err)
	}
	m.eventually("no agent server is left", func() error { return m.tidy(0) })
}
