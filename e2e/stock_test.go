package e2e_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/controlapi"
	"github.com/slipway-dev/slipway/api/dialect"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/seal"
)

// TestStockClientsAskForTheTenant holds that both stock command lines know the answer to an organisation-wide key without a
// tenant: they ask for the tenant and then get their list.
func TestStockClientsAskForTheTenant(t *testing.T) {
	t.Parallel()
	sealer, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	check(t, err)
	w := controltest.New(t, controltest.NewStore(), sealer, "http://slipway.test")
	_, err = w.Create(t.Context(), w.Admin, slipway.DeploymentCreate{Name: "behind-the-tenant", Source: slipway.SourceInternalSource})
	check(t, err)
	wide, err := w.IssueKey(t.Context(), "", slipway.RoleAdmin)
	check(t, err)
	api := controlapi.New(w.Service, controlapi.Config{BaseURL: "http://slipway.test", Version: "test", Log: slog.New(slog.DiscardHandler)})
	srv := httptest.NewServer(dialect.New(api, controlapi.DocsPage))
	t.Cleanup(srv.Close)
	host := srv.URL + dialect.Mount
	for language, cli := range map[string][]string{
		"python":     {filepath.Join(shared.stockPy, "venv/bin/langgraph"), "deploy", "list"},
		"javascript": {filepath.Join(shared.stockJS, "node_modules/.bin/langgraphjs"), "deploy", "list", "--host-url", host},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, cli[0], cli[1:]...)
			home := t.TempDir()
			cmd.Dir, cmd.Stdin = home, strings.NewReader(w.Admin.TenantID+"\n")
			cmd.Env = append(cmd.Environ(), "HOME="+home, "LANGGRAPH_HOST_URL="+host, "LANGGRAPH_HOST_API_KEY="+wide, "LANGGRAPH_CLI_NO_ANALYTICS=1")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range []string{"requires a workspace ID", "behind-the-tenant"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("%q is not in\n%s", want, out)
				}
			}
		})
	}
}
