package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	loadRequests = 2000
	loadStreams  = 50
	streamChunks = 40
)

// TestSwitchUnderLoad replaces the serving revision twice under requests and open streams: none fails, none is cut short.
func TestSwitchUnderLoad(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.up()
	_, err := m.slipway("deploy", m.source("v0"), "--name", "app")
	check(t, err)
	address := m.url + "/d/app"
	var failures problems
	var load, streams sync.WaitGroup
	for i := range loadStreams {
		streams.Go(func() {
			if err := m.stream(address, streamChunks, 60); err != nil {
				failures.add(fmt.Errorf("stream %d: %w", i, err))
			}
		})
	}
	var sent atomic.Int64
	switched := make(chan struct{})
	for range 8 {
		load.Go(func() {
			for n := sent.Add(1); n <= loadRequests || !closed(switched); n = sent.Add(1) {
				failures.add(m.oneRequest(address, n))
			}
		})
	}
	for i := range 2 {
		_, err := m.slipway("deploy", m.source(fmt.Sprint("v", i+1)), "--name", "app")
		failures.add(err)
	}
	close(switched)
	load.Wait()
	streams.Wait()
	failures.report(t, fmt.Sprintf("%d requests and %d streams over two switches", sent.Load(), loadStreams))
	m.eventually("the last code serves", func() error { return m.settled("app", "v2") })
}

// TestStreamsRightAfterASwitchAreWhole opens many fast streams while the old revision still takes runs from the common
// queue: their frames come from one server through the other, and none may be missing, the last ones least of all.
func TestStreamsRightAfterASwitchAreWhole(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.up()
	var failures problems
	for i := range 3 {
		_, err := m.slipway("deploy", m.source(fmt.Sprint("w", i)), "--name", "app")
		check(t, err)
		var streams sync.WaitGroup
		for n := range 100 {
			streams.Go(func() {
				if err := m.stream(m.url+"/d/app", 400, 0); err != nil {
					failures.add(fmt.Errorf("stream %d after switch %d: %w", n, i, err))
				}
			})
		}
		streams.Wait()
	}
	failures.report(t, "300 streams right after switches")
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// oneRequest sends a cheap request, or every tenth time one that runs a graph.
func (m *machine) oneRequest(address string, n int64) error {
	method, path, body := http.MethodGet, "/info", ""
	switch n % 10 {
	case 0:
		method, path, body = http.MethodPost, "/runs/wait", `{"assistant_id":"relay","input":{"messages":[{"role":"user","content":"hi"}]}}`
	case 1, 2, 3:
		method, path, body = http.MethodPost, "/threads", "{}"
	}
	status, err := m.call(method, address+path, body, nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s %s answers %d", method, path, status)
	}
	return err
}

// stream reads a long stream to its end and counts what came.
func (m *machine) stream(address string, want, pauseMS int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	body := fmt.Sprintf(`{"assistant_id":"count","stream_mode":["custom"],"input":{"to":%d,"pause_ms":%d}}`, want, pauseMS)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/runs/stream", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	chunks, other := 0, ""
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		switch event := strings.TrimPrefix(lines.Text(), "event: "); event {
		case "custom":
			chunks++
		case "error":
			other = "an error event came"
		}
	}
	if err := lines.Err(); err != nil || chunks != want || other != "" {
		return fmt.Errorf("%d of %d chunks, status %d %s %w", chunks, want, res.StatusCode, other, err)
	}
	return nil
}

// problems collects what went wrong, from many goroutines.
type problems struct {
	mu  sync.Mutex
	all []error
}

func (p *problems) add(err error) {
	if err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, err)
}

func (p *problems) report(t *testing.T, what string) {
	t.Helper()
	if len(p.all) > 0 {
		t.Errorf("%s: %d failed; the first: %v", what, len(p.all), errors.Join(p.all[:min(10, len(p.all))]...))
	}
}

// TestQuickPatchesAreCoalesced sends five patches at once: one revision is in progress, of the others only the newest is
// built, and that one serves in the end.
func TestQuickPatchesAreCoalesced(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.up()
	_, err := m.slipway("deploy", m.source("v"), "--name", "app")
	check(t, err)
	found, err := m.deployments("app")
	check(t, err)
	one := m.url + "/v2/deployments/" + found[0].ID
	for i := range 5 {
		status, err := m.call(http.MethodPatch, one, fmt.Sprintf(`{"secrets":[{"name":"MARK","value":"patch-%d"}]}`, i), nil)
		if err != nil || status != http.StatusOK {
			t.Fatalf("patch %d: %d %v", i, status, err)
		}
	}
	m.eventually("the newest serves", func() error { return m.settled("app", "v") })
	var list struct{ Resources []struct{ Status string } }
	_, err = m.call(http.MethodGet, one+"/revisions", "", &list)
	check(t, err)
	counts := map[string]int{}
	for _, r := range list.Resources {
		counts[r.Status]++
	}
	if len(list.Resources) != 6 || counts["SKIPPED"] != 3 || counts["DEPLOYED"] != 3 {
		t.Errorf("revisions = %v, want the first, the first patch and the last one DEPLOYED, three SKIPPED", counts)
	}
	var state struct{ Ran []string }
	_, err = m.call(http.MethodPost, m.url+"/d/app/runs/wait", `{"assistant_id":"steps","input":{}}`, &state)
	if err != nil || len(state.Ran) == 0 || state.Ran[0] != "one:patch-4" {
		t.Errorf("the graph sees %v, %v; want the last patch's secret", state.Ran, err)
	}
}

// TestDeleteAndDeployAgainAtOnce uses a name again the moment it was given back, and finds nothing of the earlier deployment.
func TestDeleteAndDeployAgainAtOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.up()
	_, err := m.slipway("deploy", m.source("v1"), "--name", "app", "--secret", "MARK=old")
	check(t, err)
	first, err := m.deployments("app")
	check(t, err)
	var thread struct {
		ID string `json:"thread_id"`
	}
	_, err = m.call(http.MethodPost, m.url+"/d/app/threads", "{}", &thread)
	check(t, err)
	_, err = m.slipway("delete", "app", "--purge")
	check(t, err)
	_, err = m.slipway("deploy", m.source("v2"), "--name", "app")
	check(t, err)
	check(t, m.settled("app", "v2"))
	if status, err := m.call(http.MethodGet, m.url+"/d/app/threads/"+thread.ID, "", nil); status != http.StatusNotFound {
		t.Errorf("a thread of the deleted deployment answers %d, %v", status, err)
	}
	if _, err := os.Stat(m.data + "/deployments/" + first[0].ID); !os.IsNotExist(err) {
		t.Errorf("the data of the deleted deployment: %v", err)
	}
	m.eventually("one agent server is left", func() error { return m.tidy(1) })
}

// TestRestoreBringsTheDataBack deletes a deployment, kills the platform, and restores what was deleted with its threads.
func TestRestoreBringsTheDataBack(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.up()
	_, err := m.slipway("deploy", m.source("v1"), "--name", "app")
	check(t, err)
	var thread struct {
		ID string `json:"thread_id"`
	}
	_, err = m.call(http.MethodPost, m.url+"/d/app/threads", "{}", &thread)
	check(t, err)
	_, err = m.slipway("delete", "app")
	check(t, err)
	m.eventually("its agent server has ended", func() error { return m.tidy(0) })
	m.kill()
	m.up()
	_, err = m.slipway("restore", "app")
	check(t, err)
	m.eventually("it serves again", func() error { return m.settled("app", "v1") })
	if status, err := m.call(http.MethodGet, m.url+"/d/app/threads/"+thread.ID, "", nil); status != http.StatusOK {
		t.Errorf("a thread from before answers %d, %v", status, err)
	}
}

// TestCtrlCDuringABuild stops the platform while an installer runs: nothing of it is left.
func TestCtrlCDuringABuild(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	check(t, os.RemoveAll(m.data+"/layers"))
	m.up()
	_, err := m.slipway("deploy", m.source("v1"), "--name", "app", "--no-wait")
	check(t, err)
	m.eventually("an installer runs", func() error {
		if len(m.strays()) == 0 {
			return fmt.Errorf("no process of a build")
		}
		return nil
	})
	check(t, m.platform.Process.Signal(os.Interrupt))
	<-m.ended
	if code := m.platform.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d after Ctrl-C, want 0", code)
	}
	if left := m.strays(); len(left) > 0 {
		t.Errorf("after Ctrl-C there are %q", left)
	}
	m.up()
	m.eventually("the build goes on at the next start", func() error { return m.settled("app", "v1") })
	m.eventually("nothing is left", func() error { return m.tidy(1) })
}
