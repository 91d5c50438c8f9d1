package e2e_test

import (
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
	js, py := filepath.Join(t.TempDir(), "js"), filepath.Join(t.TempDir(), "py")
	check(t, lay(js, "testdata/clients/remote-js", modules))
	check(t, lay(py, "testdata/clients/remote-py", python))
	m := newMachine(t)
	for _, deployment := range m.bothLanguages() {
		m.in(js, "node", "remote.mjs", deployment)
		m.in(py, filepath.Join(py, "venv/bin/python"), "remote.py", deployment)
	}
}
