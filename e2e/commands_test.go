package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience is how long a scenario waits for something that must come; reaching it is a failure, not a measurement.
const patience = 120 * time.Second

// setup gives a scenario its own port, data directory and environment.
func setup(env *testscript.Env) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	data := filepath.Join(env.WorkDir, "data")
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	env.Setenv("PATH", shared.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
	env.Setenv("npm_config_cache", filepath.Join(home, ".npm"))
	env.Setenv("DATA", data)
	env.Setenv("URL", "http://127.0.0.1:"+strconv.Itoa(port))
	env.Setenv("LISTEN", "127.0.0.1:"+strconv.Itoa(port))
	env.Setenv("GRAPHS", shared.graphs)
	env.Setenv("CLIENT_JS", shared.clientJS)
	env.Setenv("CLIENT_PY", shared.clientPy)
	env.Setenv("STOCK_JS", filepath.Join(shared.stockJS, "node_modules/.bin/langgraphjs"))
	env.Setenv("STOCK_PY", filepath.Join(shared.stockPy, "venv/bin/langgraph"))
	env.Setenv("PYTHON", filepath.Join(shared.clientPy, "venv/bin/python"))
	env.Setenv("SLIPWAY_DATA_DIR", data)
	env.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"} {
		env.Setenv(name, "e2e")
	}
	for _, name := range []string{"GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"} {
		env.Setenv(name, "e2e@localhost")
	}
	if err := os.MkdirAll(filepath.Join(env.WorkDir, "home"), 0o755); err != nil {
		return err
	}
	env.Defer(func() { stopEverything(data) })
	return warm(data)
}

// warm gives a fresh data directory the dependency layers of earlier scenarios, as hard links.
func warm(data string) error {
	if _, err := os.Stat(filepath.Join(shared.warm, "layers")); err != nil {
		return nil
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	for _, dir := range []string{"layers", "tools"} {
		if _, err := os.Stat(filepath.Join(shared.warm, dir)); err == nil {
			if err := command(".", "cp", "-al", filepath.Join(shared.warm, dir), filepath.Join(data, dir)); err != nil {
				return err
			}
		}
	}
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// stopEverything ends the platform of a data directory and all its workloads.
func stopEverything(data string) {
	_ = exec.Command(filepath.Join(shared.bin, "slipway"), "down", "--data-dir", data).Run()
}

func commands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"up":      up,
		"http":    httpCommand,
		"capture": capture,
		"await":   await,
		"kill9":   kill9,
		"same":    same,
		"apikey":  apiKey,
		"exits":   exits,
	}
}

// up starts slipway in the background and waits until it answers: up [args...]
func up(ts *testscript.TestScript, neg bool, args []string) {
	log, err := os.OpenFile(ts.MkAbs("up.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	ts.Check(err)
	all := append([]string{"up", "--data-dir", ts.Getenv("DATA"), "--listen", ts.Getenv("LISTEN"), "--no-example"}, args...)
	cmd := exec.Command(filepath.Join(shared.bin, "slipway"), all...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = environ(ts)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait(); log.Close() }()
	ts.Setenv("UP_PID", strconv.Itoa(cmd.Process.Pid))
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		select {
		case err := <-ended:
			raw, _ := os.ReadFile(ts.MkAbs("up.log"))
			ts.Fatalf("slipway up ended: %v\n%s", err, raw)
		default:
		}
		if res, err := http.Get(ts.Getenv("URL") + "/ok"); err == nil {
			res.Body.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("slipway up does not answer at %s", ts.Getenv("URL"))
}

// environ is the machine's environment, as an operator would have it, with the scenario's own home.
func environ(ts *testscript.TestScript) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "SLIPWAY_") })
	for _, name := range []string{"PATH", "HOME", "npm_config_cache", "GIT_CONFIG_GLOBAL"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return env
}

// httpCommand sends a request and prints the body; paths are below $URL: http METHOD STATUS PATH [BODY]
// A path that does not start with /d/ is sent with the installation's API key.
func httpCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: http METHOD STATUS PATH [BODY]")
	}
	status, body, err := request(ts, args[0], args[2], strings.Join(args[3:], " "))
	ts.Check(err)
	fmt.Fprintln(ts.Stdout(), body)
	if strconv.Itoa(status) != args[1] {
		ts.Fatalf("%s %s answered %d, want %s: %s", args[0], args[2], status, args[1], body)
	}
}

func request(ts *testscript.TestScript, method, path, body string) (int, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, ts.Getenv("URL")+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if !strings.HasPrefix(path, "/d/") {
		req.Header.Set("X-Api-Key", credential(ts, "api_key"))
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return res.StatusCode, string(bytes.TrimSpace(raw)), err
}

func credential(ts *testscript.TestScript, name string) string {
	raw, err := os.ReadFile(filepath.Join(ts.Getenv("DATA"), "credentials.json"))
	ts.Check(err)
	var c map[string]string
	ts.Check(json.Unmarshal(raw, &c))
	return c[name]
}

// capture sets an environment variable from the JSON printed last: capture NAME path.to.member
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: capture NAME PATH")
	}
	v, err := member(ts.ReadFile("stdout"), args[1])
	ts.Check(err)
	ts.Setenv(args[0], v)
}

// member walks a JSON document by a dotted path whose numeric parts are positions; -1 is the last.
func member(doc, path string) (string, error) {
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		return "", fmt.Errorf("not JSON: %w: %s", err, doc)
	}
	for _, part := range strings.Split(path, ".") {
		switch here := v.(type) {
		case map[string]any:
			v = here[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || len(here) == 0 || i >= len(here) {
				return "", fmt.Errorf("no %q in %s", path, doc)
			}
			v = here[(i+len(here))%len(here)]
		default:
			return "", fmt.Errorf("no %q in %s", path, doc)
		}
	}
	if s, ok := v.(string); ok {
		return s, nil
	}
	raw, err := json.Marshal(v)
	return string(raw), err
}

// await repeats a GET until its body matches: await PATH REGEXP
func await(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: await PATH REGEXP")
	}
	want, err := regexp.Compile(args[1])
	ts.Check(err)
	last := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		status, body, err := request(ts, http.MethodGet, args[0], "")
		last = fmt.Sprint(status, " ", body, " ", err)
		if err == nil && want.MatchString(body) {
			fmt.Fprintln(ts.Stdout(), body)
			return
		}
	}
	ts.Fatalf("GET %s never matched %q; last answer: %s", args[0], args[1], last)
}

// kill9 kills processes without warning: kill9 platform | kill9 server NAME | kill9 worker NAME
func kill9(ts *testscript.TestScript, neg bool, args []string) {
	pids, err := victims(ts, args)
	ts.Check(err)
	if len(pids) == 0 {
		ts.Fatalf("no process to kill for %v", args)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			ts.Check(err)
		}
	}
	for _, pid := range pids {
		awaitGone(pid)
	}
}

// awaitGone waits until a killed process is gone or a zombie.
func awaitGone(pid int) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(raw), ") Z ") {
			return
		}
	}
}

// victims finds the processes of this scenario, by their parents and command lines.
func victims(ts *testscript.TestScript, args []string) ([]int, error) {
	platform, err := strconv.Atoi(ts.Getenv("UP_PID"))
	if err != nil {
		return nil, errors.New("kill9 needs a platform started with up")
	}
	if len(args) == 1 && args[0] == "platform" {
		return []int{platform}, nil
	}
	var servers, workers []int
	for _, p := range processes() {
		if strings.Contains(p.cmdline, "\x00serve\x00") && strings.Contains(p.cmdline, ts.Getenv("DATA")) {
			servers = append(servers, p.pid)
		}
	}
	for _, p := range processes() {
		if below(p, servers) {
			workers = append(workers, p.pid)
		}
	}
	switch args[0] {
	case "server":
		return servers, nil
	case "worker":
		return workers, nil
	}
	return nil, fmt.Errorf("kill9 knows platform, server and worker, not %q", args[0])
}

// below says whether a process is a worker of one of the agent servers: there is a keeper between them.
func below(p process, servers []int) bool {
	for _, keeper := range processes() {
		if keeper.pid == p.parent && strings.HasPrefix(keeper.cmdline, "slipway-keeper\x00") && slices.Contains(servers, keeper.parent) {
			return true
		}
	}
	return false
}

type process struct {
	pid, parent int
	cmdline     string
}

func processes() []process {
	var all []process
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range entries {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		parent, _ := strconv.Atoi(fields[1])
		all = append(all, process{pid: pid, parent: parent, cmdline: string(cmdline)})
	}
	return all
}

// same compares two values: same A B, ! same A B
func same(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same A B")
	}
	if (args[0] == args[1]) == neg {
		ts.Fatalf("%q and %q: equal is %v", args[0], args[1], args[0] == args[1])
	}
}

// apiKey sets an environment variable to the installation's API key: apikey NAME
func apiKey(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: apikey NAME")
	}
	ts.Setenv(args[0], credential(ts, "api_key"))
}

// exits runs a command that must end with the given exit code: exits CODE COMMAND [ARGS...]
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGS...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		got = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("%s exited with %d, want %s", args[1], got, args[0])
	}
}
