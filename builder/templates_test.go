package builder_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/builder"
	"github.com/slipway-dev/slipway/source/template"
	"github.com/slipway-dev/slipway/templates"
)

// TestTemplatesWithRealPackages builds each template with the real installers and imports its graph.
func TestTemplatesWithRealPackages(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	root := f.root
	q := queue{jobs: make(chan slipway.BuildJob, 1), done: make(chan report, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	b := builder.New(builder.Config{Root: root}, builder.Deps{
		Queue: q, Clock: time.Now, Log: slog.New(slog.DiscardHandler),
		Fetchers:   map[slipway.Source]slipway.SourceFetcher{slipway.SourceInternalTemplate: template.New(templates.FS)},
		Toolchains: f.tool,
	})
	go func() { ended <- b.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	for id, probe := range map[string][]string{
		"agent-js": {"node", "-e", `import("./agent.mjs").then(async (m) => {
			const r = await m.graph.invoke({messages: [{role: "user", content: "hi"}]}); if (r.messages.length !== 4) process.exit(1) })`},
		"agent-python": {"../python/bin/python", "-c", `import agent
assert len(agent.graph.invoke({"messages": [{"role": "user", "content": "hi"}]})["messages"]) == 4`},
	} {
		q.jobs <- slipway.BuildJob{Source: slipway.SourceInternalTemplate, TemplateID: id}
		r := <-q.done
		if r.reason != "" {
			t.Errorf("%s: %s", id, r.reason)
			continue
		}
		app := filepath.Join(slipway.BundlePath(filepath.Join(root, "bundles"), r.result.ArtifactDigest), "app")
		if probe[0] != "node" {
			probe[0] = filepath.Join(app, probe[0])
		}
		cmd := exec.Command(probe[0], probe[1:]...)
		cmd.Dir, cmd.Env = app, append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", id, err, out)
		}
	}
}
