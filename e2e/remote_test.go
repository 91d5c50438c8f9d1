package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRemoteGraphs uses deployments of both languages through the RemoteGraph of both libraries.
func TestRemoteGraphs(t *testing.T) {
	t.Parallel()
	modules, err := installed("testdata/clients/remote-js", "package-lock.json", npmInstall)
	check(t, err)
	python, err := installed("testdata/clients/remote-py", "requirements.txt", pipInstall)
	check(t, err)
	js, py := project(t, "testdata/clients/remote-js"), project(t, "testdata/clients/remote-py")
	check(t, os.Symlink(filepath.Join(modules, "node_modules"), filepath.Join(js, "node_modules")))
	m := newMachine(t)
	for _, deployment := range m.bothLanguages() {
		m.in(js, "node", "remote.mjs", deployment)
		m.in(py, filepath.Join(python, "venv/bin/python"), "remote.py", deployment)
	}
}
