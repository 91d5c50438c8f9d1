package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestReactPageInABrowser drives deployments of both languages as a React page with the stock useStream hook does, in a
// real Chromium and from another origin.
func TestReactPageInABrowser(t *testing.T) {
	t.Parallel()
	chromium, err := browser()
	check(t, err)
	modules, err := installed("testdata/clients/react", "package-lock.json", npmInstall)
	check(t, err)
	page := filepath.Join(t.TempDir(), "page")
	check(t, lay(page, "testdata/clients/react", modules))
	m := newMachine(t)
	for i, deployment := range m.bothLanguages() {
		language := []string{"js", "py"}[i]
		source, err := filepath.Abs(filepath.Join("testdata/components", language))
		check(t, err)
		_, err = m.slipway("deploy", source, "--name", "ui-"+language)
		check(t, err)
		m.in(page, "node", "drive.mjs", chromium, t.TempDir(), deployment, m.url+"/d/ui-"+language)
	}
}

// bothLanguages starts the platform, deploys the graphs of each language and returns where they are served.
func (m *machine) bothLanguages() (urls []string) {
	m.t.Helper()
	m.up()
	for _, language := range []string{"js", "py"} {
		_, err := m.slipway("deploy", filepath.Join(shared.graphs, language), "--name", language)
		check(m.t, err)
		urls = append(urls, m.url+"/d/"+language)
	}
	return urls
}

// browser finds Chromium; the Debian package is installed where there is none.
func browser() (string, error) {
	if path, err := exec.LookPath("chromium"); err == nil {
		return path, nil
	}
	install := exec.Command("apt-get", "install", "-y", "--no-install-recommends", "chromium")
	install.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("chromium is absent and cannot be installed: %w: %s; install the Debian package chromium", err, out)
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		return "", errors.New("the package chromium is installed but its program is not in the PATH")
	}
	return path, nil
}
