package collector_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// binary is built once, before any test runs.
var binary = struct{ path string }{}

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "slipway-collector-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary.path = filepath.Join(dir, "slipway")
	if out, err := exec.Command("go", "build", "-o", binary.path, "../../cmd/slipway").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// slipway runs a command to its end.
func slipway(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(binary.path, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	return out.String() + errs.String(), err
}

func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := slipway(t, args...)
	if err != nil {
		t.Fatalf("slipway %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// process is a running collector.
type process struct {
	cmd *exec.Cmd
	url string
}

// start starts a collector and waits for the line that says where it is.
func start(t *testing.T, args ...string) process {
	t.Helper()
	cmd := exec.Command(binary.path, append([]string{"collector"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs := &bytes.Buffer{}
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line := make([]byte, 200)
	n, err := out.Read(line)
	if err != nil {
		_ = cmd.Wait()
		t.Fatalf("the collector did not start: %s", errs)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	_, url, _ := strings.Cut(strings.TrimSpace(string(line[:n])), " is at ")
	return process{cmd, url}
}

func (p process) kill() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() }

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func issue(t *testing.T, dir string, more ...string) (key string) {
	t.Helper()
	var got struct {
		Key       string    `json:"license_key"`
		ExpiresAt time.Time `json:"expires_at"`
		Kind      string    `json:"kind"`
	}
	out := must(t, append([]string{"license", "issue", "--data-dir", dir, "--customer", "Acme", "--days", "30", "--json"}, more...)...)
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Key == "" || time.Until(got.ExpiresAt) < 29*24*time.Hour {
		t.Fatalf("license issue printed %s (%v)", out, err)
	}
	if want := map[bool]string{true: "online", false: "offline"}[len(more) == 0]; got.Kind != want || strings.HasPrefix(got.Key, "lcl_") != (want == "online") {
		t.Fatalf("license issue printed %s, want kind %s", out, want)
	}
	return got.Key
}

func post(url, body string) (int, string, error) {
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

func TestLicencesOnTheCommandLine(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if out, err := slipway(t, "usage", "--data-dir", dir); err == nil || !strings.Contains(out, "holds no collector's data") {
		t.Errorf("usage without a collector: %v %s", err, out)
	}
	online, offline := issue(t, dir), issue(t, dir, "--offline")
	p := start(t, "--data-dir", dir, "--listen", "127.0.0.1:0")
	if status, text, err := post(p.url+"/v1/beacon/verify", `{"license":"`+online+`"}`); status != 200 || err != nil {
		t.Errorf("verify: %d %s %v", status, text, err)
	}
	must(t, "license", "rotate", "--data-dir", dir)
	fresh := issue(t, dir) // signed by the new key while the collector runs
	for name, key := range map[string]string{"old": online, "new": fresh} {
		if status, text, err := post(p.url+"/v1/beacon/verify", `{"license":"`+key+`"}`); status != 200 || err != nil {
			t.Errorf("verify of the %s licence after a rotation: %d %s %v", name, status, text, err)
		}
	}
	must(t, "license", "revoke", "--data-dir", dir, online)
	if status, text, _ := post(p.url+"/v1/beacon/verify", `{"license":"`+online+`"}`); status != 403 {
		t.Errorf("verify of a revoked licence: %d %s", status, text)
	}
	keys := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(keys, []byte(must(t, "license", "keys", "--data-dir", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := must(t, "license", "verify", "--keys", keys, offline); !strings.Contains(out, `"kind":"offline"`) {
		t.Errorf("offline verification printed %s", out)
	}
	if out, err := slipway(t, "license", "verify", "--keys", keys, offline[:len(offline)-8]+"AAAAAAAA"); err == nil {
		t.Errorf("an altered licence verifies: %s", out)
	}
	if out := must(t, "license", "list", "--data-dir", dir, "--json"); strings.Count(out, `"license_id"`) != 3 || strings.Count(out, `"revoked"`) != 1 {
		t.Errorf("list printed %s", out)
	}
	p.kill()
	if err := os.Remove(filepath.Join(dir, "issuer-keys.json")); err != nil {
		t.Fatal(err)
	}
	if out, err := slipway(t, "license", "issue", "--data-dir", dir, "--customer", "B"); err == nil || !strings.Contains(out, "restore it from a backup") {
		t.Errorf("new keys were made over lost ones: %v %s", err, out)
	}
}

// sender sends its transactions until each is acknowledged, as an installation does, and resends some that were.
type sender struct {
	url, key string
	acked    *atomic.Int64
	spans    *atomic.Int64
}

func (s sender) transactions(n int) {
	for sent := 0; sent < n; {
		var list []string
		for range 1 + rand.IntN(9) {
			list = append(list, fmt.Sprintf(`{"id":"%s","tenant_id":"%[2]s","session_id":"%[2]s","organization_id":"%[2]s","trace_count":3,
"start_insertion_time":"%[3]s","end_insertion_time":"%[3]s","start_interval_time":"%[3]s","end_interval_time":"%[3]s",
"status":"pending","num_failed_send_attempts":0,"transaction_type":"traces"}`, uuid.NewString(), uuid.Nil, time.Now().UTC().Format(time.RFC3339)))
		}
		body := `{"license":"` + s.key + `","trace_transactions":[` + strings.Join(list, ",") + `]}`
		for resend := rand.IntN(4) == 0; ; {
			if status, _, err := post(s.url+"/v1/beacon/ingest-traces", body); err == nil && status == 200 {
				if !resend {
					break
				}
				resend = false
			}
		}
		sent += len(list)
		s.acked.Add(int64(len(list)))
		s.span()
	}
}

func (s sender) span() {
	status, _, err := post(s.url+"/v1/beacon/v1/traces", `{"license":"`+s.key+`","resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"71699b6fe85982c7c8995ea3d9c95df2","spanId":"3c191d03fa8be065","name":"x"}]}]}]}`)
	if err == nil && status == 200 {
		s.spans.Add(1)
	}
}

// Nothing that was acknowledged is lost or counted twice, however often the collector is killed without warning.
func TestKilledDuringIngest(t *testing.T) {
	t.Parallel()
	const senders, each, kills = 4, 600, 15
	dir, address := filepath.Join(t.TempDir(), "data"), freeAddress(t)
	s := sender{url: "http://" + address, key: issue(t, dir), acked: &atomic.Int64{}, spans: &atomic.Int64{}}
	p := start(t, "--data-dir", dir, "--listen", address, "--rate", "1000000")
	var wg sync.WaitGroup
	for range senders {
		wg.Add(1)
		go func() { defer wg.Done(); s.transactions(each) }()
	}
	for n := range kills {
		// The moment is a count of what was acknowledged, not a time.
		for wait := s.acked.Load() + rand.Int64N(senders*each/kills); s.acked.Load() < min(wait, int64((n+1)*senders*each/(kills+1))); {
			time.Sleep(time.Millisecond)
		}
		p.kill()
		p = start(t, "--data-dir", dir, "--listen", address, "--rate", "1000000")
	}
	wg.Wait()
	var usage struct {
		Licenses []struct {
			Transactions int64 `json:"transactions"`
			TraceCount   int64 `json:"trace_count"`
			Spans        int64 `json:"spans"`
		} `json:"licenses"`
	}
	out := must(t, "usage", "--data-dir", dir, "--json") // while the collector runs
	if err := json.Unmarshal([]byte(out), &usage); err != nil {
		t.Fatal(err)
	}
	got := usage.Licenses[0]
	if got.Transactions != s.acked.Load() || got.TraceCount != 3*s.acked.Load() {
		t.Errorf("counted %d transactions of %d traces; %d were acknowledged", got.Transactions, got.TraceCount, s.acked.Load())
	}
	if got.Spans < s.spans.Load() {
		t.Errorf("counted %d spans; %d were acknowledged", got.Spans, s.spans.Load())
	}
	t.Logf("%d kills, %d transactions acknowledged and counted, %d spans acknowledged, %d counted", kills, s.acked.Load(), s.spans.Load(), got.Spans)
}
