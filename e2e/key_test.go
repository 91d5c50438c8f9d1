package e2e_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnotherMasterKey starts an installation with a master key that cannot open what is stored: a deployment with secrets
// says so and goes on serving, the others do not notice, and setting the secrets again mends it.
func TestAnotherMasterKey(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.up()
	for _, args := range [][]string{{"--name", "fine"}, {"--name", "closed", "--secret", "MARK=before"}} {
		_, err := m.slipway(append([]string{"deploy", m.source("v1")}, args...)...)
		check(t, err)
	}
	m.kill()
	other := make([]byte, 32)
	_, _ = rand.Read(other)
	check(t, os.WriteFile(filepath.Join(m.data, "master.key"), other, 0o600))
	m.up()
	for _, name := range []string{"fine", "closed"} {
		m.eventually(name+" serves", func() error { return m.settled(name, "v1") })
	}
	_, err := m.slipway("deploy", m.source("v2"), "--name", "fine")
	check(t, err)
	_, err = m.slipway("deploy", m.source("v2"), "--name", "closed")
	if err == nil || !strings.Contains(err.Error(), "MARK") || !strings.Contains(err.Error(), "master.key") {
		t.Errorf("a deploy with a secret that cannot be opened: %v; want the secret and the remedy", err)
	}
	m.eventually("the old revision still serves", func() error { return m.greets(m.url+"/d/closed", "v1") })
	for _, pid := range m.servers() { // it cannot be started again either, and says so
		check(t, killPID(pid))
	}
	m.eventually("the log says why", func() error {
		out, err := m.slipway("logs", "closed")
		if err == nil && !strings.Contains(out, "master key") {
			err = fmt.Errorf("logs: %s", out)
		}
		return err
	})
	m.eventually("the other one is up again", func() error { return m.greets(m.url+"/d/fine", "v2") })
	_, err = m.slipway("secrets", "set", "closed", "MARK=after")
	check(t, err)
	m.eventually("it serves again", func() error { return m.greets(m.url+"/d/closed", "v2") })
}
