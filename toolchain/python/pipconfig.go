package python

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway"
)

// settings returns the environment of the installers. uv does not read pip's configuration: what it says of indexes and
// certificates is given to uv in its own variables, the configuration's pip_config_file over the operator's.
func (b build) settings() ([]string, error) {
	env := []string{
		"UV_CACHE_DIR=" + filepath.Join(b.cfg.Cache, "uv"), "PIP_CACHE_DIR=" + filepath.Join(b.cfg.Cache, "pip"), "UV_NO_PROGRESS=1",
		"UV_PYTHON_DOWNLOADS=never", "PIP_NO_INPUT=1", "PIP_ROOT_USER_ACTION=ignore", "PIP_PROGRESS_BAR=off",
	}
	set, project := map[string]string{}, map[string]string{}
	for _, file := range operatorFiles() {
		if raw, err := os.ReadFile(file); err == nil {
			pipSettings(string(raw), set)
		}
	}
	if b.PipConfigFile != "" {
		file := filepath.Join(b.dir, filepath.FromSlash(b.PipConfigFile))
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, slipway.Errorf(slipway.CodeInvalid, "pip_config_file names %q, which the source does not have: add it or correct the path", b.PipConfigFile)
		}
		pipSettings(string(raw), project)
		env = append(env, "PIP_CONFIG_FILE="+file)
	}
	for name, uv := range map[string]string{
		"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "trusted-host": "UV_INSECURE_HOST", "find-links": "UV_FIND_LINKS", "cert": "SSL_CERT_FILE",
	} {
		pip := "PIP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		switch operator := os.Getenv(pip); {
		case project[name] != "":
			env = append(env, uv+"="+project[name], pip+"="+project[name])
		case os.Getenv(uv) != "":
		case operator != "":
			env = append(env, uv+"="+operator)
		case set[name] != "":
			env = append(env, uv+"="+set[name])
		}
	}
	return env, nil
}

// operatorFiles are pip's own configuration files, the weakest first.
func operatorFiles() []string {
	home, _ := os.UserHomeDir()
	return []string{"/etc/pip.conf", filepath.Join(home, ".pip/pip.conf"), filepath.Join(home, ".config/pip/pip.conf"), os.Getenv("PIP_CONFIG_FILE")}
}

// pipSettings reads the sections of a pip configuration that matter to installing into set; several values become one with
// spaces.
func pipSettings(raw string, set map[string]string) {
	section, last := "", ""
	for line := range strings.Lines(raw) {
		text := strings.TrimSpace(line)
		switch {
		case text == "" || text[0] == '#' || text[0] == ';':
			continue
		case text[0] == '[':
			section, last = strings.Trim(text, "[]"), ""
			continue
		case section != "global" && section != "install":
			continue
		case last != "" && (line[0] == ' ' || line[0] == '\t'):
			set[last] = strings.TrimSpace(set[last] + " " + text)
			continue
		}
		if name, value, ok := strings.Cut(text, "="); ok {
			last = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), "_", "-"))
			set[last] = strings.TrimSpace(value)
		}
	}
}
