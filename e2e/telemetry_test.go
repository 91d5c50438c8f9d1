package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// transactionsWanted is how many trace transactions TestTelemetryLosesNothing makes; the full proof makes 10 000
// (make proof-telemetry).
func transactionsWanted(t *testing.T) int64 {
	text := os.Getenv("SLIPWAY_PROOF_TRANSACTIONS")
	if text == "" {
		return 300
	}
	n, err := strconv.ParseInt(text, 10, 64)
	check(t, err)
	return n
}

// station is a collector under test.
type station struct {
	m         *machine
	dir, url  string
	listen    string
	key       string
	process   *exec.Cmd
	processed chan struct{}
}

func newStation(m *machine) *station {
	m.t.Helper()
	port, err := freePort()
	check(m.t, err)
	c := &station{m: m, dir: filepath.Join(m.work, "collector"), listen: fmt.Sprint("127.0.0.1:", port)}
	c.url = "http://" + c.listen
	var issued struct {
		Key string `json:"license_key"`
	}
	check(m.t, c.command(&issued, "license", "issue", "--data-dir", c.dir, "--customer", "Acme", "--json"))
	c.key = issued.Key
	m.t.Cleanup(func() { c.kill() })
	return c
}

// command runs a command of the collector's and reads the JSON that it prints.
func (c *station) command(into any, args ...string) error {
	cmd := exec.Command(filepath.Join(shared.bin, "slipway"), args...)
	cmd.Env = c.m.environ()
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("slipway %v: %w", args, err)
	}
	return json.Unmarshal(out, into)
}

func (c *station) up() {
	c.m.t.Helper()
	log, err := os.OpenFile(filepath.Join(c.m.work, "collector.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	check(c.m.t, err)
	defer log.Close()
	cmd := exec.Command(filepath.Join(shared.bin, "slipway"), "collector", "--data-dir", c.dir, "--listen", c.listen)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, c.m.environ()
	check(c.m.t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	c.process, c.processed = cmd, ended
	c.m.eventually("the collector answers", func() error {
		res, err := http.Get(c.url + "/ok")
		if err == nil {
			res.Body.Close()
		}
		return err
	})
}

// kill ends the collector without warning.
func (c *station) kill() {
	if c.process != nil {
		_ = c.process.Process.Kill()
		<-c.processed
		c.process = nil
	}
}

// counted is what the collector counted of all months.
type counted struct {
	Traces       int64 `json:"trace_count"`
	Transactions int64 `json:"transactions"`
	Duplicates   int64 `json:"duplicates"`
	Snapshots    int64 `json:"snapshots"`
	DataPoints   int64 `json:"data_points"`
}

func (c *station) usage() (counted, error) {
	var report struct {
		Licenses []counted `json:"licenses"`
	}
	err := c.command(&report, "usage", "--data-dir", c.dir, "--json")
	if err != nil || len(report.Licenses) == 0 {
		return counted{}, err
	}
	return report.Licenses[0], nil
}

// status is what `slipway telemetry status` prints.
type status struct {
	Mode    string `json:"mode"`
	License struct {
		Status string `json:"status"`
	} `json:"license"`
	Billing struct {
		Items   int64 `json:"items"`
		Failed  int64 `json:"num_failed_send_attempts"`
		Corrupt int64 `json:"corrupt"`
		Refused int64 `json:"refused"`
	} `json:"billing"`
}

func (m *machine) telemetry() (s status, err error) {
	out, err := m.slipway("telemetry", "status", "--json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &s)
	}
	return s, err
}

// thread is one on which runs are made; its runs stay, so that they can be counted.
type thread struct {
	m  *machine
	id string
}

func (m *machine) newThread(address string) thread {
	m.t.Helper()
	var made struct {
		ID string `json:"thread_id"`
	}
	m.eventually("a thread is made", func() error {
		status, err := m.call(http.MethodPost, address+"/threads", "{}", &made)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("answers %d", status)
		}
		return err
	})
	return thread{m, made.ID}
}

// threads are all that were made.
type threads struct {
	m       *machine
	address string
	mu      sync.Mutex
	list    []thread
}

func (p *threads) add() thread {
	th := p.m.newThread(p.address)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, th)
	return th
}

// run makes a run and waits for it; whether it fails is not our matter: it is counted by what the server says of it later.
func (t thread) run(address string) {
	status, err := t.m.call(http.MethodPost, address+"/threads/"+t.id+"/runs/wait", `{"assistant_id":"relay","input":{"messages":[{"role":"user","content":"hi"}]}}`, nil)
	if err != nil || status != http.StatusOK {
		time.Sleep(20 * time.Millisecond) // the server is away
	}
}

// runs counts the thread's runs; an error says that one has not ended.
func (t thread) runs(address string) (n int64, err error) {
	for offset := 0; ; {
		var page []struct {
			ID, Status string
		}
		status, err := t.m.call(http.MethodGet, fmt.Sprintf("%s/threads/%s/runs?limit=100&offset=%d", address, t.id, offset), "", &page)
		if err != nil || status != http.StatusOK {
			return 0, fmt.Errorf("list runs: %d %w", status, err)
		}
		for _, r := range page {
			if r.Status == "pending" || r.Status == "running" {
				return 0, fmt.Errorf("a run is %s", r.Status)
			}
		}
		n, offset = n+int64(len(page)), offset+len(page)
		if len(page) < 100 {
			return n, nil
		}
	}
}

// total counts the runs of all threads once they have ended.
func (m *machine) total(address string, list []thread) (n int64) {
	m.t.Helper()
	m.eventually("every run has ended", func() error {
		n = 0
		for _, th := range list {
			of, err := th.runs(address)
			if err != nil {
				return err
			}
			n += of
		}
		return nil
	})
	return n
}

// TestTelemetryLosesNothing runs a real installation under load against a real collector. The connection is cut for a while,
// platform, agent server and collector are killed without warning, a revision is switched; in the end the collector has
// counted what the agent servers did: no trace lost, none twice.
func TestTelemetryLosesNothing(t *testing.T) {
	t.Parallel()
	want := transactionsWanted(t)
	m := newMachine(t)
	c := newStation(m)
	c.up()
	m.flags = []string{"--telemetry-url", c.url, "--trace-interval", "2ms", "--telemetry-export", "1s", "--usage-interval", "5s"}
	licence := "SLIPWAY_LICENSE=" + c.key
	start := func() { m.t.Helper(); m.up(licence) }
	start()
	_, err := m.slipway("deploy", m.source("v0"), "--name", "app")
	check(t, err)
	address := m.url + "/d/app"
	pool := &threads{m: m, address: address}
	stop, reached := make(chan struct{}), func(part int64) {
		t.Helper()
		limit := time.Now().Add(30 * time.Minute)
		for {
			u, err := c.usage()
			if err == nil && u.Transactions >= want*part/8 {
				return
			}
			if time.Now().After(limit) {
				t.Fatalf("the collector has %+v (%v), want %d transactions", u, err, want*part/8)
			}
			time.Sleep(time.Duration(max(500, want)) * time.Millisecond) // each look is a process
		}
	}
	var load sync.WaitGroup
	var sent atomic.Int64
	for range 16 {
		load.Go(func() {
			for !closed(stop) {
				th := pool.add()
				for n := 0; n < 20 && !closed(stop); n++ { // a thread's state grows with its runs
					th.run(address)
					sent.Add(1)
				}
			}
		})
	}
	reached(1)
	c.kill() // cut off: what is counted meanwhile waits
	for before := sent.Load(); sent.Load() < before+want/2; {
		time.Sleep(10 * time.Millisecond)
	}
	m.kill()
	start()
	m.eventually("the platform says that sending failed", func() error {
		s, err := m.telemetry()
		if err == nil && (s.Billing.Items == 0 || s.Billing.Failed == 0) {
			err = fmt.Errorf("%+v", s)
		}
		return err
	})
	c.up()
	reached(2)
	for part := int64(3); part <= 6; part++ {
		switch part % 3 {
		case 0:
			m.kill()
			start()
		case 1:
			c.kill()
			c.up()
		case 2:
			for _, pid := range m.servers() {
				_ = killPID(pid)
			}
		}
		reached(part)
	}
	_, err = m.slipway("deploy", m.source("v1"), "--name", "app")
	check(t, err)
	reached(8)
	close(stop)
	load.Wait()
	agree(m, c, address, pool.list)
	for range 5 { // later rounds change nothing of what was counted
		pool.list[0].run(address)
	}
	u, runs := agree(m, c, address, pool.list)
	if u.Transactions < want || u.Snapshots == 0 || u.DataPoints == 0 {
		t.Errorf("the collector has %+v, want %d transactions, snapshots and metrics", u, want)
	}
	s, err := m.telemetry()
	check(t, err)
	if s.Mode != "online" || s.License.Status != "valid" || s.Billing.Refused+s.Billing.Corrupt != 0 {
		t.Errorf("telemetry status is %+v", s)
	}
	t.Logf("%d runs, %d counted; %d transactions, %d were sent twice and counted once", runs, u.Traces, u.Transactions, u.Duplicates)
}

// agree waits until the collector has counted exactly what the agent servers did; more than that is never mended.
func agree(m *machine, c *station, address string, list []thread) (u counted, runs int64) {
	m.t.Helper()
	runs = m.total(address, list)
	m.eventually("the collector has counted every run once", func() error {
		var err error
		if u, err = c.usage(); err == nil && u.Traces > runs {
			m.t.Fatalf("the collector counted %d traces of %d runs", u.Traces, runs)
		}
		if err == nil && u.Traces != runs {
			err = fmt.Errorf("%d of %d", u.Traces, runs)
		}
		return err
	})
	return u, runs
}

// TestTelemetryOffline: without a URL nothing is sent, nothing is kept, and the platform says so once.
func TestTelemetryOffline(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.up("SLIPWAY_LICENSE=lof_x.y.z")
	s, err := m.telemetry()
	check(t, err)
	if s.Mode != "offline" {
		t.Errorf("mode is %q", s.Mode)
	}
	raw, err := os.ReadFile(filepath.Join(m.work, "up.log"))
	check(t, err)
	if n := strings.Count(string(raw), "no telemetry is sent"); n != 1 {
		t.Errorf("the log says %d times that nothing is sent", n)
	}
	if _, err := os.Stat(filepath.Join(m.data, "telemetry")); err == nil {
		t.Error("an outbox was made")
	}
}
