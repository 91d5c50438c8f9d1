package node

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/toolchain/command"
)

// uiVersion is that of @langchain/langgraph-ui, the bundler whose scripts the stock clients know how to run.
const uiVersion = "2.0.0"

// uiProgram runs the bundler: it names the component and the place of what is wrong, and leaves no path of the build in a
// result, so that equal sources become equal bundles.
//
//go:embed ui.mjs
var uiProgram []byte

// uiRequest is what the program is told.
type uiRequest struct {
	Modules string            `json:"modules"` // directory that has the bundler
	Out     string            `json:"out"`     // directory that gets a directory for each component
	UI      map[string]string `json:"ui"`
	Shared  []string          `json:"shared"`
	Answer  string            `json:"answer"` // file that gets the components: map of name to slipway.BundleUI
}

// BundleUI implements slipway.UIBundler. A source without package.json is bundled, too: what it needs lies beside the
// components or is brought by the page.
func (t *Toolchain) BundleUI(ctx context.Context, p slipway.Project, log func(string)) (map[string]slipway.BundleUI, error) {
	found, err := t.interpreter(ctx, p, log)
	if err != nil {
		return nil, err
	}
	b := build{Toolchain: t, Project: p, log: log, node: found, app: filepath.Join(p.Bundle, "app")}
	b.beside = filepath.Join(b.app, filepath.FromSlash(p.Dir))
	tool, err := b.tool(ctx, "@langchain/langgraph-ui", uiVersion)
	if err != nil {
		return nil, err
	}
	scratch := command.Scratch(p.Bundle)
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return nil, fmt.Errorf("build components: %w", err)
	}
	dir, err := os.MkdirTemp(scratch, "ui-*")
	if err != nil {
		return nil, fmt.Errorf("build components: %w", err)
	}
	defer os.RemoveAll(dir)
	return b.components(ctx, dir, tool)
}

// components runs the program in a scratch directory with the bundler of a tool.
func (b build) components(ctx context.Context, dir, tool string) (map[string]slipway.BundleUI, error) {
	program, request, answer := filepath.Join(dir, "ui.mjs"), filepath.Join(dir, "request.json"), filepath.Join(dir, "answer.json")
	asked, err := json.Marshal(uiRequest{
		Modules: filepath.Join(tool, "node_modules"), Out: filepath.Join(b.Bundle, "ui"), UI: b.UI, Shared: b.UIShared, Answer: answer,
	})
	if err = errors.Join(err, os.WriteFile(program, uiProgram, 0o644), os.WriteFile(request, asked, 0o644)); err != nil {
		return nil, fmt.Errorf("build components: %w", err)
	}
	if err := b.run(ctx, b.beside, nil, "langgraphjs-ui build", b.node.path, program, request); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(answer)
	if err != nil {
		return nil, fmt.Errorf("build components: %w", err)
	}
	var built map[string]slipway.BundleUI
	if err := json.Unmarshal(raw, &built); err != nil {
		return nil, fmt.Errorf("build components: %w", err)
	}
	return built, nil
}
