package robust_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/store/postgres"
	"github.com/slipway-dev/slipway/store/postgres/pgtest"
	"github.com/slipway-dev/slipway/store/sqlite"
	"github.com/slipway-dev/slipway/worker/supervise"
	"github.com/slipway-dev/slipway/worker/workertest"
	"github.com/slipway-dev/slipway/workers"
)

const graphsPython = `
import asyncio
from typing import TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict, total=False):
    x: int

def one(node):
    g = StateGraph(State)
    g.add_node("n", node)
    g.add_edge(START, "n")
    return g.compile()

def no(state):
    raise RuntimeError("no")

async def wait(state):
    await asyncio.sleep(600)

echo, fail, hang = one(lambda state: {}), one(no), one(wait)
`

const graphsNode = `
import { setTimeout as sleep } from "node:timers/promises";
import { Annotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ x: Annotation() });
const one = (node) => new StateGraph(State).addNode("n", node).addEdge(START, "n").compile();
export const echo = one(() => ({}));
export const fail = one(() => { throw new Error("no"); });
export const hang = one(async (_state, config) => { await sleep(600_000, undefined, { signal: config.signal }); return {}; });
`

// The real workers with the real packages, supervised as an agent server does it, keep the pool's promises.
func TestRealWorkersPassTheSuiteOfPools(t *testing.T) {
	t.Parallel()
	for _, language := range []slipway.Language{slipway.Python, slipway.Node} {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			p := program(t, language)
			workertest.Run(t, func(t *testing.T) agent.Workers { return pool(t, p, nil) })
		})
	}
}

// program says how to start the worker of a language, with graphs of its own and installed packages.
func program(t *testing.T, language slipway.Language) supervise.Program {
	t.Helper()
	installed, err := workers.Install(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := supervise.Program{Language: language, Dir: dir, Slots: 4, Env: os.Environ()}
	if language == slipway.Python {
		write(t, filepath.Join(dir, "graphs.py"), graphsPython)
		var env []string
		p.Argv, env = installed.Python(slipway.PythonBundle{Interpreter: python(t)}, dir)
		p.Env = append(p.Env, env...)
		p.Graphs = specs("./graphs.py")
		return p
	}
	write(t, filepath.Join(dir, "graphs.mjs"), graphsNode)
	write(t, filepath.Join(dir, "package.json"), `{"type":"module"}`)
	if err := os.Symlink(filepath.Join(node(t), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	p.Argv, p.Graphs = installed.Node(slipway.NodeBundle{}, dir), specs("./graphs.mjs")
	return p
}

func specs(file string) map[string]string {
	return map[string]string{"echo": file + ":echo", "fail": file + ":fail", "hang": file + ":hang"}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pool supervises a program over a real store of its own.
func pool(t *testing.T, p supervise.Program, lines func(supervise.Line)) *supervise.Pool {
	t.Helper()
	if lines == nil {
		lines = func(supervise.Line) {}
	}
	return poolOver(agentStore(t), p, lines)
}

func agentStore(t *testing.T) agent.Store {
	t.Helper()
	store, err := sqlite.OpenAgent(filepath.Join(t.TempDir(), "agent.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func poolOver(store agent.Store, p supervise.Program, lines func(supervise.Line)) *supervise.Pool {
	return supervise.New(supervise.Config{Programs: []supervise.Program{p}}, store, time.Now, slog.New(slog.DiscardHandler), lines)
}

// The saver of each language passes the published conformance suite of its library, through the link, on either database.
func TestSaversPassTheirSuitesOnTheRealStore(t *testing.T) {
	t.Parallel()
	for _, language := range []slipway.Language{slipway.Python, slipway.Node} {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			saverPasses(t, language, agentStore(t))
		})
		t.Run(string(language)+" on Postgres", func(t *testing.T) {
			t.Parallel()
			store, err := postgres.OpenAgent(t.Context(), pgtest.URL(t), "agent_test")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			saverPasses(t, language, store)
		})
	}
}

func saverPasses(t *testing.T, language slipway.Language, store agent.Store) {
	t.Helper()
	h := listener{said: make(chan string, 1), all: &strings.Builder{}, mu: &sync.Mutex{}, store: store}
	p := poolOver(h.store, conformance(t, language), h.line)
	t.Cleanup(p.Stop)
	if err := p.Start(h); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-h.said:
		if !strings.HasSuffix(got, "missed {}") {
			t.Errorf("got %s", got)
		}
	case <-time.After(4 * time.Minute):
		h.mu.Lock()
		defer h.mu.Unlock()
		t.Errorf("the suite did not end; it said\n%s", h.all)
	}
}

func conformance(t *testing.T, language slipway.Language) supervise.Program {
	t.Helper()
	root, err := filepath.Abs("../workers")
	if err != nil {
		t.Fatal(err)
	}
	if language == slipway.Python {
		script := filepath.Join(root, "python", "tests", "conformance_worker.py")
		return supervise.Program{
			Language: language, Dir: t.TempDir(), Argv: []string{python(t), script},
			Env: append(os.Environ(), "PYTHONPATH="+filepath.Join(root, "python"), "PYTHONDONTWRITEBYTECODE=1"),
		}
	}
	dir := node(t)
	return supervise.Program{Language: language, Dir: dir, Argv: []string{"node", "test/conformance/worker.mjs"}, Env: os.Environ()}
}

// listener hears the line in which a suite says what became of it.
type listener struct {
	said  chan string
	all   *strings.Builder
	mu    *sync.Mutex
	store agent.Store
}

// StoreBatch is what an engine without rules for items does.
func (h listener) StoreBatch(ctx context.Context, ops []agent.StoreOp) ([]agent.StoreResult, error) {
	return h.store.StoreBatch(ctx, ops, time.Now())
}

func (h listener) line(l supervise.Line) {
	h.mu.Lock()
	fmt.Fprintln(h.all, l.Text)
	h.mu.Unlock()
	if strings.HasPrefix(l.Text, "conformance:") {
		select {
		case h.said <- l.Text:
		default:
		}
	}
}

// WorkerUp is of no interest.
func (h listener) WorkerUp(agent.Worker) {}

// WorkerDown follows when the suite has ended.
func (h listener) WorkerDown(agent.Worker, error) {}

// WorkerFailed tells why there will be no result.
func (h listener) WorkerFailed(_ string, err error) {
	select {
	case h.said <- "conformance: did not start: " + err.Error():
	default:
	}
}

// python is an interpreter with the packages the Python worker is tested with.
func python(t *testing.T) string {
	t.Helper()
	dir := installed(t, "../workers/python", "requirements-dev.txt", func(into string) error {
		if err := run(into, "python3", "-m", "venv", "venv"); err != nil {
			return err
		}
		return run(into, "venv/bin/python", "-m", "pip", "install", "-q", "-r", "requirements-dev.txt")
	})
	return filepath.Join(dir, "venv", "bin", "python")
}

// node is a copy of the Node worker's project with its packages.
func node(t *testing.T) string {
	t.Helper()
	return installed(t, "../workers/node", "package-lock.json", func(into string) error {
		return run(into, "npm", "ci", "--no-audit", "--no-fund")
	})
}

var installing sync.Mutex //nolint:gochecknoglobals // tests install one after another

// installed keeps a project's packages in the user's cache, once for each content of the lock file; its sources are
// copied anew each time.
func installed(t *testing.T, project, lock string, install func(into string) error) string {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	raw, err := os.ReadFile(filepath.Join(project, lock))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	into := filepath.Join(cache, "slipway-robust", filepath.Base(project)+"-"+hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(into, 0o755); err != nil {
		t.Fatal(err)
	}
	defer alone(t, into+".lock")()
	for _, part := range []string{lock, "package.json", "src", "test"} {
		if _, err := os.Stat(filepath.Join(project, part)); err != nil {
			continue
		}
		if err := run(".", "cp", "-R", filepath.Join(project, part), into+"/"); err != nil {
			t.Fatal(err)
		}
	}
	ready := filepath.Join(into, ".ready")
	if _, err := os.Stat(ready); err == nil {
		return into
	}
	if err := install(into); err != nil {
		t.Fatal(err)
	}
	write(t, ready, "")
	return into
}

// alone waits until no other process holds the lock: tests of several checkouts share the cache.
func alone(t *testing.T, path string) (release func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatalf("lock the cache: %v", err)
	}
	return func() { _ = f.Close() }
}

func run(dir, name string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return nil
}
