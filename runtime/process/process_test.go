package process_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/runtime/process"
	"github.com/slipway-dev/slipway/runtime/runtimetest"
)

// TestMain lets this binary be the agent server too: the runtime starts it with these arguments.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "stand-in" {
		os.Exit(standIn(flagsOf(os.Args[2:])))
	}
	if len(os.Args) > 1 && os.Args[1] == "platform" {
		os.Exit(platform(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

func flagsOf(args []string) map[string]string {
	flags := map[string]string{}
	for i := 0; i+1 < len(args); i += 2 {
		flags[args[i]] = args[i+1]
	}
	return flags
}

// standIn is an agent server that behaves as the variable KIND says.
func standIn(flags map[string]string) int {
	stop := make(chan os.Signal, 2)
	signal.Notify(stop, syscall.SIGTERM)
	kind, dir := os.Getenv("KIND"), flags["--data"]
	if kind == string(runtimetest.Crashing) {
		fmt.Println(`{"time":"2026-01-02T03:04:05Z","level":"ERROR","message":"boom"}`)
		return 3
	}
	fmt.Printf("{\"time\":%q,\"level\":\"info\",\"message\":\"hello from %s, token %s\"}\n", time.Now().Format(time.RFC3339Nano), os.Getenv("REVISION"), os.Getenv("TOKEN"))
	fmt.Fprintln(os.Stderr, "plain text with "+os.Getenv("TOKEN"))
	env, _ := json.Marshal(os.Environ())
	_ = os.WriteFile(filepath.Join(dir, "env.json"), env, 0o600)
	if n, _ := strconv.Atoi(os.Getenv("LINES")); n > 0 {
		for i := range n {
			fmt.Printf("{\"level\":\"INFO\",\"message\":\"line %d\"}\n", i)
		}
	}
	if os.Getenv("CHILD") != "" { // a worker in a process group of its own
		child := exec.Command("/bin/sleep", "1000")
		child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := child.Start(); err != nil {
			return 9
		}
		_ = os.WriteFile(filepath.Join(dir, "child.pid"), []byte(strconv.Itoa(child.Process.Pid)), 0o600)
	}
	listener, err := net.Listen("tcp", flags["--listen"])
	if err != nil {
		return 9
	}
	go func() { _ = http.Serve(listener, health(kind)) }()
	ready := flags["--ready-file"]
	_ = os.WriteFile(ready+".new", fmt.Appendf(nil, `{"pid":%d,"endpoint":"http://%s"}`, os.Getpid(), listener.Addr()), 0o600)
	_ = os.Rename(ready+".new", ready)
	for range stop {
		if kind != string(runtimetest.Stubborn) {
			fmt.Print("bye without a line end")
			return 0
		}
	}
	return 0
}

func health(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if kind == string(runtimetest.Hopeless) && r.URL.Query().Get("check_db") != "" {
			w.WriteHeader(500)
			fmt.Fprint(w, `{"ok":false,"failures":{"agent":"no module named nope"}}`)
			return
		}
		if os.Getenv("SICK") != "" && r.URL.Query().Get("check_db") == "" {
			w.WriteHeader(503)
			return
		}
		fmt.Fprint(w, `{"ok":true}`)
	}
}

// platform is a slipway that starts one workload, says so, and waits to be killed.
func platform(root, workload string) int {
	rt, err := process.New(config(root, nil), slog.New(slog.DiscardHandler))
	if err != nil {
		return 9
	}
	var w slipway.Workload
	if err := json.Unmarshal([]byte(workload), &w); err != nil {
		return 9
	}
	ctx := signalContext()
	if _, err := rt.Recover(ctx); err != nil {
		return 9
	}
	fmt.Println("starting")
	if err := rt.Ensure(ctx, w); err != nil {
		fmt.Println(err)
		return 9
	}
	fmt.Println("started")
	<-ctx.Done()
	return 0
}

func config(root string, sink process.Sink) process.Config {
	self, _ := os.Executable()
	return process.Config{
		Command: []string{self, "stand-in"}, Root: root, BundleDir: filepath.Join(root, "bundles"),
		BaseEnv: process.BaseEnv(os.Environ()), Sink: sink,
		PunchLogBehind: 256 << 10, LiveInterval: 20 * time.Millisecond, LiveFailures: 3, ProbeTimeout: 5 * time.Second, FlushTimeout: 10 * time.Second,
	}
}

func TestProcessPassesTheSuite(t *testing.T) {
	t.Parallel()
	runtimetest.Run(t, func(t *testing.T) runtimetest.Harness { return open(t) })
}

type harness struct {
	t    *testing.T
	root string
	sink *lines
	rt   *process.Runtime
	made int
}

func open(t *testing.T) *harness {
	h := &harness{t: t, root: t.TempDir(), sink: &lines{grown: make(chan struct{}, 1)}}
	if err := os.MkdirAll(filepath.Join(h.root, "bundles", "abc"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.root, "bundles", "abc", slipway.BundleFile), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.begin()
	t.Cleanup(func() { h.removeAll(); h.rt.Close() })
	return h
}

func (h *harness) begin() {
	rt, err := process.New(config(h.root, h.sink.take), slog.New(slog.DiscardHandler))
	if err != nil {
		h.t.Fatal(err)
	}
	h.rt = rt
}

func (h *harness) removeAll() {
	ctx := signalContext()
	for _, d := range []string{"d1", "d2"} {
		all, _ := h.rt.Observe(ctx, d)
		for _, o := range all {
			_ = h.rt.Remove(ctx, d, o.RevisionID)
		}
	}
}

func (h *harness) Runtime() slipway.Runtime { return h.rt }
func (h *harness) Restart(*testing.T)       { h.rt.Close(); h.begin() }

func (h *harness) Kill(t *testing.T, revisionID string) {
	t.Helper()
	if err := syscall.Kill(h.pid(t, revisionID), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func (h *harness) pid(t *testing.T, revisionID string) int {
	t.Helper()
	var s struct {
		PID int `json:"pid"`
	}
	data, err := os.ReadFile(filepath.Join(h.root, "run", revisionID, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &s); err != nil || s.PID == 0 {
		t.Fatalf("state %s: %v", data, err)
	}
	return s.PID
}

func (h *harness) HasData(deploymentID string) bool {
	_, err := os.Stat(filepath.Join(h.root, "deployments", deploymentID))
	return err == nil
}

func (h *harness) Workload(_ *testing.T, deploymentID string, kind runtimetest.Kind) slipway.Workload {
	h.made++
	id := fmt.Sprintf("r%d", h.made)
	digest := "sha256:abc"
	if kind == runtimetest.Invalid {
		digest = "sha256:missing"
	}
	return slipway.Workload{DeploymentID: deploymentID, Name: "desk", Blueprint: slipway.Blueprint{
		RevisionID: id, ArtifactDigest: digest, Redact: []string{"s3cr3t-value"},
		Env: map[string]string{"KIND": string(kind), "REVISION": id, "TOKEN": "s3cr3t-value"},
	}}
}

// lines collects what the sink was given.
type lines struct {
	mu    sync.Mutex
	all   []slipway.LogEntry
	grown chan struct{}
}

func (l *lines) has(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, e := range l.all {
		if strings.Contains(e.Message, text) {
			n++
		}
	}
	return n
}
