package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// tools are what the scenarios use besides the standard commands: the binary under test and the clients' packages.
type tools struct {
	bin      string // directory that holds slipway
	warm     string // a data directory whose layers and caches later installations start from
	clientJS string // the project that drives the JavaScript SDK, with its node_modules
	clientPy string // the project that drives the Python SDK, with its venv
	stockJS  string // directory with node_modules of the stock JavaScript command line
	stockPy  string // directory with a venv that holds the stock Python command line
	graphs   string // testdata/graphs
}

func TestMain(m *testing.M) {
	code, err := withTools(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

// shared is set once, before any test runs.
var shared tools

func withTools(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "slipway-e2e-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	shared.bin = dir
	if err := command("..", "go", "build", "-o", filepath.Join(dir, "slipway"), "./cmd/slipway"); err != nil {
		return 1, err
	}
	for _, project := range []struct {
		into *string
		name string
		lock string
		make func(into string) error
	}{
		{&shared.clientJS, "js", "package-lock.json", npmInstall},
		{&shared.clientPy, "py", "requirements.txt", pipInstall},
		{&shared.stockJS, "cli-js", "package-lock.json", npmInstall},
		{&shared.stockPy, "cli-py", "requirements.txt", pipInstall},
	} {
		from := "testdata/clients/" + project.name
		packages, err := installed(from, project.lock, project.make)
		if err != nil {
			return 1, err
		}
		*project.into = filepath.Join(dir, project.name)
		if err := lay(*project.into, from, packages); err != nil {
			return 1, err
		}
	}
	if shared.graphs, err = filepath.Abs("testdata/graphs"); err != nil {
		return 1, err
	}
	if shared.warm, err = warmed(); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func npmInstall(into string) error {
	return command(into, "npm", "ci", "--no-audit", "--no-fund")
}

func pipInstall(into string) error {
	if err := command(into, "python3", "-m", "venv", "venv"); err != nil {
		return err
	}
	return command(into, "venv/bin/python", "-m", "pip", "install", "-q", "-r", "requirements.txt")
}

// warmed returns a data directory, kept in the user's cache, in which the graphs of both languages and an application with
// components were deployed once.
func warmed() (string, error) {
	sum := sha256.New()
	files, err := filepath.Glob("../toolchain/*/*.go") // they decide how a layer is made and named
	if err != nil {
		return "", err
	}
	files = append(files, filepath.Join(shared.graphs, "js/package-lock.json"), filepath.Join(shared.graphs, "py/requirements.txt"), "testdata/components/js/package-lock.json")
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		sum.Write(raw)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "slipway-e2e", "warm-"+hex.EncodeToString(sum.Sum(nil)[:8]))
	if _, err := os.Stat(filepath.Join(dir, ".ready")); err == nil {
		return dir, nil
	}
	slipway := filepath.Join(shared.bin, "slipway")
	port, err := freePort()
	if err != nil {
		return "", err
	}
	if err := command(".", slipway, "up", "--detach", "--no-example", "--data-dir", dir, "--listen", fmt.Sprint("127.0.0.1:", port)); err != nil {
		return "", err
	}
	defer stopEverything(dir)
	for name, source := range map[string]string{"js": filepath.Join(shared.graphs, "js"), "py": filepath.Join(shared.graphs, "py"), "components": "testdata/components/js"} {
		if err := command(".", slipway, "deploy", source, "--name", name, "--data-dir", dir); err != nil {
			return "", err
		}
	}
	return dir, os.WriteFile(filepath.Join(dir, ".ready"), nil, 0o644)
}

// installed copies a client project into the user's cache and installs it there, once for each content of its lock file.
func installed(project, lock string, install func(into string) error) (string, error) {
	raw, err := os.ReadFile(filepath.Join(project, lock))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	into := filepath.Join(cache, "slipway-e2e", filepath.Base(project)+"-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(filepath.Join(into, ".ready")); err == nil {
		return into, nil
	}
	if err := os.RemoveAll(into); err != nil {
		return "", err
	}
	if err := os.CopyFS(into, os.DirFS(project)); err != nil {
		return "", err
	}
	if err := install(into); err != nil {
		return "", err
	}
	return into, os.WriteFile(filepath.Join(into, ".ready"), nil, 0o644)
}

// lay copies a client project as it is now and links the packages to it that were installed for its lock file.
func lay(into, project, packages string) error {
	if err := os.CopyFS(into, os.DirFS(project)); err != nil {
		return err
	}
	for _, name := range []string{"node_modules", "venv"} {
		if _, err := os.Stat(filepath.Join(packages, name)); err == nil {
			return os.Symlink(filepath.Join(packages, name), filepath.Join(into, name))
		}
	}
	return fmt.Errorf("%s: no packages are installed in %s", project, packages)
}

func command(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return nil
}

// TestScripts runs every scenario of testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		Setup:               setup,
		Cmds:                commands(),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
