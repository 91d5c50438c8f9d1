package cli

import (
	"fmt"
	"strings"

	"github.com/slipway-dev/slipway/client"
)

// envLines reads KEY=VALUE lines: blank lines and # comments are skipped, `export ` and matching quotes are taken off, and
// empty values are left out, as stock clients do (control-plane reference 6).
func envLines(text string) ([]client.Secret, error) {
	var secrets []client.Secret
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "export "))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, val, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Errorf("line %d is not KEY=VALUE", i+1)
		}
		if val = unquoted(strings.TrimSpace(val)); val != "" {
			secrets = append(secrets, client.Secret{Name: name, Value: val})
		}
	}
	return secrets, nil
}

// unquoted takes off matching quotes; without them a comment behind the value goes.
func unquoted(val string) string {
	if len(val) >= 2 && (val[0] == '"' || val[0] == '\'') {
		if end := strings.LastIndexByte(val, val[0]); end > 0 {
			return val[1:end]
		}
	}
	if i := strings.Index(val, " #"); i >= 0 {
		return strings.TrimSpace(val[:i])
	}
	return val
}
