package command

import "os"

// Base is the environment of every command: what finds programs, networks and package registries, and nothing of the
// platform's own. Operators give package managers their registries through these variables.
func Base(home string) []string {
	env := []string{"HOME=" + home, "CI=1", "NO_COLOR=1", "GIT_TERMINAL_PROMPT=0", "npm_config_update_notifier=false"}
	for _, name := range passed() {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func passed() []string {
	return []string{
		"PATH", "LANG", "LC_ALL", "TZ", "TMPDIR",
		"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
		"npm_config_registry", "NPM_CONFIG_REGISTRY", "npm_config_userconfig", "NPM_CONFIG_USERCONFIG",
		"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_TRUSTED_HOST", "PIP_CERT", "PIP_CONFIG_FILE", "PIP_DEFAULT_TIMEOUT",
		"UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_CONFIG_FILE", "UV_NATIVE_TLS", "UV_HTTP_TIMEOUT",
		"PYENV_ROOT", "PYENV_VERSION",
	}
}
