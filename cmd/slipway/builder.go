package main

import (
	"log/slog"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/builder"
	"github.com/slipway-dev/slipway/source/git"
	"github.com/slipway-dev/slipway/source/tarball"
	"github.com/slipway-dev/slipway/source/template"
	"github.com/slipway-dev/slipway/templates"
	"github.com/slipway-dev/slipway/toolchain/node"
	"github.com/slipway-dev/slipway/toolchain/python"
)

// openBuilder puts together the builder of this machine.
func openBuilder(where installation, s upSettings, queue slipway.BuildQueue, blobs slipway.Blob, log *slog.Logger) *builder.Builder {
	return builder.New(builder.Config{Root: where.dir, Owner: newID(), Concurrency: s.builds}, s.failAt.deps(builder.Deps{
		Queue: queue,
		Fetchers: map[slipway.Source]slipway.SourceFetcher{
			slipway.SourceGithost:          git.New(git.Config{FileRoots: s.allowFileRepos, PlainHosts: s.allowHTTPGit}),
			slipway.SourceInternalSource:   tarball.New(blobs, tarball.Limits{}),
			slipway.SourceInternalTemplate: template.New(templates.FS),
		},
		Toolchains: map[slipway.Language]slipway.Toolchain{
			slipway.Node:   node.New(node.Config{Root: where.dir}),
			slipway.Python: python.New(python.Config{Root: where.dir}),
		},
		Clock: now,
		Log:   log,
	}))
}
