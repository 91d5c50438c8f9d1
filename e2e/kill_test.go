package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKilledInEveryPhase kills the platform at every moment of creating, uploading, patching, building and deploying
// (docs/failpoints.md), and expects that what served goes on serving and that a new start, after the client's retry of a
// call that got no answer, ends where an undisturbed deploy ends.
func TestKilledInEveryPhase(t *testing.T) {
	t.Parallel()
	groups := map[string][]string{
		"request": {"create.receiving", "create.recorded", "upload.receiving", "upload.reading", "upload.stored", "patch.receiving", "patch.recorded"},
		"build":   {"build.claimed", "build.fetched", "build.installing", "build.installed", "build.bundled", "build.completed"},
		"deploy": {
			"deploy.starting", "deploy.started", "deploy.switching", "deploy.switched", "deploy.reporting", "deploy.reported", "deploy.draining", "deploy.drained",
		},
	}
	for group, points := range groups {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.up()
			greeting := "start"
			_, err := m.slipway("deploy", m.source(greeting), "--name", "app")
			check(t, err)
			for _, point := range points {
				m.kill()
				next := strings.ReplaceAll(point, ".", "-")
				name := m.killedAt(point, greeting, next)
				if name == "app" {
					greeting = next
				}
			}
		})
	}
}

// killedAt deploys new code to a platform that dies at the point, and returns the name of the deployment it did that to.
func (m *machine) killedAt(point, greeting, next string) string {
	m.t.Helper()
	name, servers := "app", 1
	if strings.HasPrefix(point, "create.") {
		name = next
	}
	before := m.endpoints()
	if point == "build.installing" { // make it install once more
		check(m.t, os.RemoveAll(filepath.Join(m.data, "layers")))
	}
	m.up("SLIPWAY_FAILPOINT=" + point)
	source := m.source(next)
	_, _ = m.slipway("deploy", source, "--name", name)
	m.awaitDeath()
	if point != "deploy.drained" { // from there on it is the new one that serves
		m.someGreets(point, before, greeting)
	}
	m.up()
	if !strings.HasPrefix(point, "build.") && !strings.HasPrefix(point, "deploy.") {
		if _, err := m.slipway("deploy", source, "--name", name); err != nil {
			m.t.Fatalf("%s: the client tries again: %v", point, err)
		}
	}
	m.eventually(point+": it converges", func() error { return m.settled(name, next) })
	if name != "app" {
		_, err := m.slipway("delete", name, "--purge")
		check(m.t, err)
	}
	m.eventually(point+": nothing is left", func() error { return m.tidy(servers) })
	return name
}

// someGreets checks that what served before the platform died still does, without it.
func (m *machine) someGreets(point string, endpoints []string, greeting string) {
	m.t.Helper()
	err := errors.New("there is none")
	for _, endpoint := range endpoints {
		if err = m.greets(endpoint, greeting); err == nil {
			return
		}
	}
	m.t.Errorf("%s: the old revision no longer serves: %v", point, err)
}

// TestKilledWhileDeleting kills the platform at every moment of a deletion: nothing is left of the deployment, and its name is
// free again.
func TestKilledWhileDeleting(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.up()
	for _, point := range []string{"delete.receiving", "delete.recorded", "delete.removed", "delete.destroyed"} {
		_, err := m.slipway("deploy", m.source("start"), "--name", "app")
		check(t, err)
		found, err := m.deployments("app")
		check(t, err)
		m.kill()
		m.up("SLIPWAY_FAILPOINT=" + point)
		_, _ = m.slipway("delete", "app", "--purge")
		m.awaitDeath()
		m.up()
		if point != "delete.destroyed" { // the purge may not have been asked for yet, or be done already
			_, _ = m.slipway("delete", "app", "--purge")
		}
		m.eventually(point+": nothing is left", func() error {
			if left, err := m.deployments("app"); err != nil || len(left) > 0 {
				return fmt.Errorf("deployments %+v, %w", left, err)
			}
			if _, err := os.Stat(filepath.Join(m.data, "deployments", found[0].ID)); !os.IsNotExist(err) {
				return fmt.Errorf("its data is there still (%w)", errors.Join(err))
			}
			return m.tidy(0)
		})
	}
}
