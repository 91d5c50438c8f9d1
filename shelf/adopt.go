package shelf

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/slipway-dev/slipway"
)

func readBundle(dir string) (slipway.Bundle, error) {
	var b slipway.Bundle
	raw, err := os.ReadFile(filepath.Join(dir, slipway.BundleFile))
	if err != nil {
		return b, err
	}
	return b, json.Unmarshal(raw, &b)
}

// adopt gives a bundle of another machine the interpreters of this one, where those it was built with lie elsewhere.
func adopt(dir string) error {
	b, err := readBundle(dir)
	if err != nil {
		return fmt.Errorf("read the bundle: %w", err)
	}
	if b.Node != nil && filepath.IsAbs(b.Node.Interpreter) && !there(b.Node.Interpreter) {
		if b.Node.Interpreter, err = exec.LookPath("node"); err != nil {
			return slipway.Errorf(slipway.CodeInvalid, "the artifact needs Node, which this machine lacks: install it where PATH finds it")
		}
		raw, err := json.MarshalIndent(b, "", "  ")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, slipway.BundleFile), raw, 0o644)
		}
		if err != nil {
			return fmt.Errorf("write the bundle: %w", err)
		}
	}
	if b.Python == nil || filepath.IsAbs(b.Python.Interpreter) {
		return nil
	}
	return adoptPython(filepath.Dir(filepath.Dir(filepath.Join(dir, b.Python.Interpreter))))
}

func there(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

var (
	versionLine = regexp.MustCompile(`(?m)^version = (\d+\.\d+)`)
	homeLine    = regexp.MustCompile(`(?m)^home = .*$`)
)

// adoptPython leads a virtual environment to this machine's Python of the same minor version.
func adoptPython(venv string) error {
	config, err := os.ReadFile(filepath.Join(venv, "pyvenv.cfg"))
	if err != nil {
		return fmt.Errorf("read the bundle: %w", err)
	}
	found := versionLine.FindSubmatch(config)
	if found == nil {
		return slipway.Errorf(slipway.CodeInvalid, "the artifact does not say which Python it needs; redeploy to build it again")
	}
	link := filepath.Join(venv, "bin", "python")
	at, err := filepath.EvalSymlinks(link)
	if err != nil {
		at, err = exec.LookPath("python" + string(found[1]))
	}
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	if err != nil {
		return slipway.Errorf(slipway.CodeInvalid, "the artifact needs Python %s, which this machine lacks: install it where PATH finds python%s", found[1], found[1])
	}
	config = homeLine.ReplaceAllLiteral(config, []byte("home = "+strings.TrimSuffix(filepath.Dir(at), "/")))
	if err := errors.Join(relink(at, link), os.WriteFile(filepath.Join(venv, "pyvenv.cfg"), config, 0o644)); err != nil {
		return fmt.Errorf("adopt the bundle: %w", err)
	}
	return nil
}

// relink leads the link to at, unless it leads there already.
func relink(at, link string) error {
	if now, err := filepath.EvalSymlinks(link); err == nil && now == at {
		return nil
	}
	return errors.Join(os.Remove(link), os.Symlink(at, link))
}
