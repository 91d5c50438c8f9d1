package graphconfig

import (
	"strings"

	"github.com/slipway-dev/slipway"
)

// ParseEnvFile reads the dotenv syntax: NAME=value lines, `export`, comments, single and double quotes.
func ParseEnvFile(raw string) (map[string]string, error) {
	values := map[string]string{}
	for i, line := range strings.Split(raw, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "export "))
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !found || name == "" || strings.ContainsAny(name, " \t") {
			return nil, slipway.Errorf(slipway.CodeInvalid, "line %d of the .env file is not NAME=value", i+1)
		}
		values[name] = unquote(strings.TrimSpace(value))
	}
	return values, nil
}

func unquote(v string) string {
	if len(v) > 1 && (v[0] == '"' || v[0] == '\'') {
		if end := strings.LastIndexByte(v, v[0]); end > 0 {
			inner := v[1:end]
			if v[0] == '"' {
				inner = strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\\`, `\`).Replace(inner)
			}
			return inner
		}
	}
	if i := strings.Index(v, " #"); i >= 0 {
		v = strings.TrimSpace(v[:i])
	}
	return v
}
