package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/worker/supervise"
	"github.com/slipway-dev/slipway/workers"
)

// programs says how to start the workers of the bundle's languages.
func (s agentServer) programs(parts map[slipway.Language]agent.Parts) ([]supervise.Program, error) {
	installed, err := workers.Install(filepath.Join(s.options.data, "workers"))
	if err != nil {
		return nil, err
	}
	var list []supervise.Program
	for _, language := range []slipway.Language{slipway.Python, slipway.Node} {
		graphs, processes := s.graphsOf(language), s.settings.workers
		if len(graphs) == 0 {
			processes = 1 // only parts
		}
		if len(graphs) == 0 && len(parts[language].Names()) == 0 {
			continue
		}
		p := supervise.Program{
			Language: language, Dir: filepath.Join(s.options.bundle, filepath.FromSlash(s.bundle.Dir)), Env: s.environment(),
			Graphs: graphs, Parts: parts[language], Workers: processes, Slots: s.settings.slots,
		}
		if err := s.start(&p, installed); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// start fills in the command.
func (s agentServer) start(p *supervise.Program, installed workers.Installed) error {
	switch {
	case p.Language == slipway.Python && s.bundle.Python != nil:
		var env []string
		p.Argv, env = installed.Python(*s.bundle.Python, s.options.bundle)
		p.Env = append(p.Env, env...)
	case p.Language == slipway.Node && s.bundle.Node != nil:
		p.Argv = installed.Node(*s.bundle.Node, s.options.bundle)
		p.Env = append(p.Env, "SLIPWAY_SCHEMA_CACHE="+filepath.Join(s.options.data, "schemas"))
	default:
		return fmt.Errorf("the bundle has %s code but does not say how to start its worker; build it again", p.Language)
	}
	return nil
}

func (s agentServer) graphsOf(language slipway.Language) map[string]string {
	graphs := map[string]string{}
	for id, g := range s.bundle.Graphs {
		if g.Language == language {
			graphs[id] = g.Spec
		}
	}
	return graphs
}

// environment is the bundle's env below this process's own environment, which holds the deployment's secrets. What is the
// agent server's alone is not in it.
func (s agentServer) environment() []string {
	own := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return private(name)
	})
	set := map[string]bool{}
	for _, kv := range own {
		name, _, _ := strings.Cut(kv, "=")
		set[name] = true
	}
	for name, value := range s.bundle.Env {
		if !set[name] {
			own = append(own, name+"="+value)
		}
	}
	return own
}

// workerLines writes what user code prints and what workers say to the log.
func workerLines(log *slog.Logger) func(supervise.Line) {
	levels := map[string]slog.Level{
		"debug": slog.LevelDebug, "warning": slog.LevelWarn, "warn": slog.LevelWarn, "error": slog.LevelError, "critical": slog.LevelError,
	}
	return func(l supervise.Line) {
		attrs := []slog.Attr{slog.String("logger", l.Logger), slog.String("worker", l.WorkerID)}
		if l.RunID != "" {
			attrs = append(attrs, slog.String("run_id", l.RunID))
		}
		if l.ThreadID != "" {
			attrs = append(attrs, slog.String("thread_id", l.ThreadID))
		}
		log.LogAttrs(context.Background(), levels[strings.ToLower(l.Level)], l.Text, attrs...)
	}
}
