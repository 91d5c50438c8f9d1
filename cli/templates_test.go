package cli_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/cli"
	"github.com/spf13/cobra"
)

func TestTemplatesAreListedToTheLast(t *testing.T) {
	t.Parallel()
	const total = 150
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var limit, offset int
		fmt.Sscan(r.URL.Query().Get("limit"), &limit)
		fmt.Sscan(r.URL.Query().Get("offset"), &offset)
		page := []any{}
		for i := offset; i < min(offset+limit, total); i++ {
			page = append(page, map[string]any{"id": fmt.Sprint("chat-", i), "title": "Chat", "description": "Chats.", "language": "node"})
		}
		answer(w, map[string]any{"resources": page, "offset": offset + len(page)})
	}))
	defer server.Close()
	var out bytes.Buffer
	root := &cobra.Command{Use: "slipway", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(cli.Commands(root, cli.Environment{Out: &out, Getenv: func(string) string { return "" }})...)
	root.SetArgs([]string{"templates", "--url", server.URL, "--api-key", "k"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if !strings.Contains(text, "chat-0 ") || !strings.Contains(text, "chat-149 ") || strings.Count(text, "node") != total {
		t.Errorf("templates = %d lines: %.300s", strings.Count(text, "\n"), text)
	}
}
