package robust_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/store/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// patience bounds a wait that should never end by it.
const patience = 4 * time.Minute

// stepsNode counts in steps of its own, each of which takes its time; what a step leaves in the state shows how often it
// counted, and the file of its run how often it ran.
const stepsNode = `
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  total: Annotation(), pause: Annotation(), log: Annotation(),
  done: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
async function step(state, config) {
  if (state.log) appendFileSync(state.log, config.configurable.run_id + " " + state.done.length + "\n");
  await sleep(state.pause ?? 0, undefined, { signal: config.signal });
  return { done: [state.done.length] };
}
export const steps = new StateGraph(State).addNode("step", step).addEdge(START, "step")
  .addConditionalEdges("step", (s) => (s.done.length < s.total ? "step" : END)).compile();
`

const stepsPython = `
import asyncio, operator
from typing import Annotated, Any, TypedDict
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

class State(TypedDict, total=False):
    total: int
    pause: int
    log: Any
    done: Annotated[list, operator.add]

async def step(state: State, config: RunnableConfig):
    if state.get("log"):
        with open(state["log"], "a") as f:
            f.write(f"{config['configurable']['run_id']} {len(state.get('done', []))}\n")
    await asyncio.sleep((state.get("pause") or 0) / 1000)
    return {"done": [len(state.get("done", []))]}

g = StateGraph(State)
g.add_node("step", step)
g.add_edge(START, "step")
g.add_conditional_edges("step", lambda s: "step" if len(s["done"]) < s["total"] else END)
steps = g.compile()
`

// fleet is one deployment whose agent servers are processes of the real binary.
type fleet struct {
	t       *testing.T
	bundle  string
	data    string
	url     string // of the database; "" = SQLite in data
	env     []string
	mu      sync.Mutex
	servers []*member
}

// member is one agent server.
type member struct {
	cmd     *exec.Cmd
	address string
	log     *os.File
	ended   chan struct{}
}

// onBothDatabases runs a test over SQLite and over a database of its own in PostgreSQL.
func onBothDatabases(t *testing.T, languages []slipway.Language, test func(t *testing.T, f *fleet)) {
	for _, language := range languages {
		for _, database := range []string{"sqlite", "postgres"} {
			t.Run(string(language)+"/"+database, func(t *testing.T) {
				t.Parallel()
				url := ""
				if database == "postgres" {
					url = pgtest.URL(t)
				}
				test(t, newFleet(t, language, url, nil))
			})
		}
	}
}

var both = []slipway.Language{slipway.Node, slipway.Python} //nolint:gochecknoglobals // a table

// newFleet makes the bundle of an application with the graph "steps" of the language, and whatever change makes of it.
func newFleet(t *testing.T, language slipway.Language, url string, change func(b *slipway.Bundle, dir string)) *fleet {
	t.Helper()
	f := &fleet{t: t, bundle: t.TempDir(), data: t.TempDir(), url: url}
	b := slipway.Bundle{Version: 1, Dir: "app", Config: json.RawMessage(`{}`), Graphs: map[string]slipway.BundleGraph{}}
	app := filepath.Join(f.bundle, b.Dir)
	if err := os.Mkdir(app, 0o755); err != nil {
		t.Fatal(err)
	}
	if language == slipway.Python {
		write(t, filepath.Join(app, "graphs.py"), stepsPython)
		b.Python = &slipway.PythonBundle{Interpreter: python(t)}
		b.Graphs["steps"] = slipway.BundleGraph{Spec: "./graphs.py:steps", Language: language}
	} else {
		write(t, filepath.Join(app, "graphs.mjs"), stepsNode)
		write(t, filepath.Join(app, "package.json"), `{"type":"module"}`)
		if err := os.Symlink(filepath.Join(node(t), "node_modules"), filepath.Join(app, "node_modules")); err != nil {
			t.Fatal(err)
		}
		b.Node = &slipway.NodeBundle{Interpreter: "node"}
		b.Graphs["steps"] = slipway.BundleGraph{Spec: "./graphs.mjs:steps", Language: language}
	}
	if change != nil {
		change(&b, app)
	}
	raw, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(f.bundle, slipway.BundleFile), string(raw))
	t.Cleanup(f.stop)
	return f
}

// start starts one more server; ready waits until it serves.
func (f *fleet) start(env ...string) *member {
	f.t.Helper()
	m, err := f.begin(env...)
	if err == nil {
		err = m.ready()
	}
	if err != nil {
		f.t.Fatalf("start a server: %v\n%s", err, m.said())
	}
	return m
}

func (f *fleet) begin(env ...string) (*member, error) {
	log, err := os.CreateTemp(f.data, "log-")
	if err != nil {
		return nil, err
	}
	ready := log.Name() + ".ready"
	cmd := exec.Command(binary(f.t), "serve", "--bundle", f.bundle, "--data", f.data, "--listen", "127.0.0.1:0", "--ready-file", ready)
	cmd.Env = append(os.Environ(), "BG_JOB_MAX_RETRIES=100")
	if f.url != "" {
		cmd.Env = append(cmd.Env, "SLIPWAY_DATABASE_URL="+f.url, "SLIPWAY_DATABASE_SCHEMA=agent_robust")
	}
	cmd.Env = append(append(cmd.Env, f.env...), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	m := &member{cmd: cmd, log: log, ended: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(m.ended) }()
	f.mu.Lock()
	f.servers = append(f.servers, m)
	f.mu.Unlock()
	return m, eventually(func() error {
		raw, err := os.ReadFile(ready)
		if err != nil {
			return m.dead(err)
		}
		var told struct{ Endpoint string }
		err = json.Unmarshal(raw, &told)
		m.address = told.Endpoint
		return err
	})
}

// errDead ends a wait for a server that will never answer.
var errDead = errors.New("the server has ended")

func (m *member) dead(err error) error {
	select {
	case <-m.ended:
		return errDead
	default:
		return err
	}
}

// ready waits until the server's workers are up.
func (m *member) ready() error {
	return eventually(func() error {
		status, body, err := call(http.MethodGet, m.address+"/ok?check_db=1", "")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, body)
		}
		if err != nil {
			return m.dead(err)
		}
		return nil
	})
}

func (m *member) said() string {
	if m == nil {
		return ""
	}
	raw, _ := os.ReadFile(m.log.Name())
	return string(raw[max(0, len(raw)-6000):])
}

func (m *member) signal(s syscall.Signal) { _ = m.cmd.Process.Signal(s) }

// kill kills the server, with no chance to say anything.
func (m *member) kill() {
	m.signal(syscall.SIGKILL)
	<-m.ended
}

// stop ends every server, frozen ones too; those that still live must end in order.
func (f *fleet) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.servers {
		m.signal(syscall.SIGCONT)
		m.kill()
		_ = m.log.Close()
		if f.t.Failed() {
			f.t.Logf("a server said:\n%s", m.said())
		}
	}
}

// eventually repeats probe until it succeeds.
func eventually(probe func() error) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := probe()
		if err == nil || errors.Is(err, errDead) || time.Now().After(deadline) {
			return err
		}
	}
}

func call(method, address, body string) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer a.Body.Close()
	answer, err = io.ReadAll(a.Body)
	return a.StatusCode, answer, err
}

// ask calls and decodes a 2xx answer.
func ask(method, address, body string, into any) error {
	status, answer, err := call(method, address, body)
	if err != nil {
		return err
	}
	if status < 200 || status > 299 {
		return fmt.Errorf("%s %s: %d %.300s", method, address, status, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(bytes.TrimSpace(answer), into)
}

var building struct { //nolint:gochecknoglobals // the binary is built once
	once sync.Once
	path string
	err  error
}

// binary is the real one.
func binary(t *testing.T) string {
	t.Helper()
	building.once.Do(func() {
		cache, err := os.UserCacheDir()
		if err != nil {
			building.err = err
			return
		}
		building.path = filepath.Join(cache, "slipway-robust", "slipway-"+strconv.Itoa(os.Getuid()))
		building.err = run("..", "go", "build", "-o", building.path, "./cmd/slipway")
	})
	if building.err != nil {
		t.Fatal(building.err)
	}
	return building.path
}

// acknowledged is a run that a server said it has taken.
type acknowledged struct {
	ThreadID string `json:"thread_id"`
	RunID    string `json:"run_id"`
	Status   string `json:"status"`
	total    int
}

// run makes a thread and a background run on it.
func (m *member) run(total, pause int, more string) (acknowledged, error) {
	return m.begin(fmt.Sprintf(`{"total":%d,"pause":%d}`, total, pause), total, more)
}

func (m *member) begin(input string, total int, more string) (acknowledged, error) {
	var thread struct {
		ThreadID string `json:"thread_id"`
	}
	if err := ask(http.MethodPost, m.address+"/threads", `{}`, &thread); err != nil {
		return acknowledged{}, err
	}
	a := acknowledged{total: total}
	body := fmt.Sprintf(`{"assistant_id":"steps","input":%s%s}`, input, more)
	err := ask(http.MethodPost, m.address+"/threads/"+thread.ThreadID+"/runs", body, &a)
	return a, err
}

// whole says what is wrong with a run that should have ended well.
func (m *member) whole(a acknowledged) error {
	var joined struct {
		Done  []int
		Error *struct{ Error, Message string } `json:"__error__"`
	}
	if err := ask(http.MethodGet, m.address+"/threads/"+a.ThreadID+"/runs/"+a.RunID+"/join", "", &joined); err != nil {
		return err
	}
	var r acknowledged
	if err := ask(http.MethodGet, m.address+"/threads/"+a.ThreadID+"/runs/"+a.RunID, "", &r); err != nil {
		return err
	}
	if r.Status != "success" || len(joined.Done) != a.total {
		_, history, _ := call(http.MethodGet, m.address+"/threads/"+a.ThreadID+"/history", "")
		return fmt.Errorf("run %s: status %s with the steps %v of %d (%v); the thread's history is %s", a.RunID, r.Status, joined.Done, a.total, joined.Error, history)
	}
	for i, n := range joined.Done {
		if i != n {
			return fmt.Errorf("run %s: steps %v are not in order, once each", a.RunID, joined.Done)
		}
	}
	var thread struct{ Status string }
	err := ask(http.MethodGet, m.address+"/threads/"+a.ThreadID, "", &thread)
	if err == nil && thread.Status != "idle" {
		err = fmt.Errorf("thread %s is %s", a.ThreadID, thread.Status)
	}
	return err
}
