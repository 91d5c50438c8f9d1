package robust_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/store/postgres/pgtest"
)

// kills is how often servers are killed: a few in every run of the tests, as many as SLIPWAY_ROBUST_KILLS says in the long one.
func kills(few int) int {
	if n, err := strconv.Atoi(os.Getenv("SLIPWAY_ROBUST_KILLS")); err == nil {
		return n
	}
	return few
}

// load makes runs at servers that pick returns, until stop is closed, and returns those that were acknowledged.
func load(clients int, stop <-chan struct{}, pick func() *member) []acknowledged {
	var mu sync.Mutex
	var all []acknowledged
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				a, err := pick().run(3, 30, "")
				time.Sleep(100 * time.Millisecond) // so that the queue does not outgrow the workers, which are killed with their servers
				if err != nil {
					continue // the server is gone; another one takes its place
				}
				mu.Lock()
				all = append(all, a)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return all
}

// Servers of one deployment are killed under load, one after the other: every acknowledged run ends once, with each step
// counted once, whichever server is asked.
func TestNoRunIsLostWhenServersAreKilled(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, []slipway.Language{slipway.Node}, func(t *testing.T, f *fleet) {
		const servers = 2
		members := make([]atomic.Pointer[member], servers)
		for i := range members {
			members[i].Store(f.start())
		}
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			for n := range kills(4) {
				time.Sleep(time.Duration(200+rand.IntN(400)) * time.Millisecond) // under load
				victim := &members[n%servers]
				victim.Load().kill()
				m, err := f.begin()
				if err == nil {
					err = m.ready()
				}
				if err != nil {
					t.Errorf("start a server in place of a killed one: %v\n%s", err, m.said())
					return
				}
				victim.Store(m)
			}
		}()
		all := load(4, stop, func() *member { return members[rand.IntN(servers)].Load() })
		for i, a := range all {
			if err := members[i%servers].Load().whole(a); err != nil {
				t.Error(err)
			}
		}
		t.Logf("%d acknowledged runs over %d kills", len(all), kills(4))
	})
}

// A server that is frozen loses its runs to another one when its lease is over, and does no harm when it thaws.
func TestAFrozenServersRunsGoOnElsewhere(t *testing.T) {
	t.Parallel()
	f := newFleet(t, slipway.Node, pgtest.URL(t), nil)
	first, second := f.start(), f.start()
	var runs []acknowledged
	for range 6 { // within the first one's slots, so it claims them all
		a, err := first.run(8, 200, "")
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, a)
	}
	first.signal(syscall.SIGSTOP)
	for _, a := range runs {
		if err := second.whole(a); err != nil {
			t.Error(err)
		}
	}
	first.signal(syscall.SIGCONT)
	if err := first.ready(); err != nil {
		t.Fatal(err)
	}
	for _, a := range runs {
		if err := first.whole(a); err != nil {
			t.Errorf("after the thaw: %v", err)
		}
	}
	a, err := first.run(2, 0, "")
	if err == nil {
		err = second.whole(a)
	}
	if err != nil {
		t.Errorf("a run of the thawed server: %v", err)
	}
}

// The database restarts under load: no acknowledged run is lost, and what is refused meanwhile is refused as unavailable.
func TestNoRunIsLostWhenTheDatabaseRestarts(t *testing.T) {
	t.Parallel()
	cluster, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() })
	url, _, err := cluster.Database()
	if err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, slipway.Node, url, nil)
	servers := []*member{f.start(), f.start()}
	stop, looked := make(chan struct{}), make(chan struct{})
	go func() { // every answer is an answer
		defer close(looked)
		for {
			select {
			case <-stop:
				return
			default:
			}
			status, body, err := call(http.MethodPost, servers[rand.IntN(2)].address+"/threads", `{}`)
			if err != nil || status != http.StatusOK && status != http.StatusServiceUnavailable {
				t.Errorf("while the database restarts: %d %s %v", status, body, err)
			}
		}
	}()
	go func() {
		defer close(stop)
		for range 2 {
			time.Sleep(700 * time.Millisecond) // under load
			if err := cluster.Restart(); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(700 * time.Millisecond)
	}()
	all := load(4, stop, func() *member { return servers[rand.IntN(2)] })
	<-looked
	for i, a := range all {
		if err := servers[i%2].whole(a); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d acknowledged runs", len(all))
}

// What one server executes is streamed, awaited and cancelled at another, and a stream that a kill cut goes on there without
// gap or duplicate.
func TestAStreamGoesOnAtAnotherServer(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, both, func(t *testing.T, f *fleet) {
		first := f.start()
		a, err := first.run(10, 150, `,"stream_mode":["values"],"stream_resumable":true,"durability":"sync"`)
		if err != nil {
			t.Fatal(err)
		}
		second := f.start()
		head, last, ended := second.follow(t, a, "-1", 4)
		if ended {
			t.Fatal("the run has ended too soon for this test")
		}
		first.kill()
		tail, _, ended := second.follow(t, a, last, 0)
		if !ended {
			t.Error("the stream has no end")
		}
		seen := map[string]bool{}
		for _, id := range append(head, tail...) {
			if seen[id] {
				t.Errorf("frame %s came twice", id)
			}
			seen[id] = true
		}
		if err := second.whole(a); err != nil {
			t.Error(err)
		}
		third := f.start()
		b, err := third.run(1000, 50, "")
		if err == nil {
			err = ask(http.MethodPost, second.address+"/threads/"+b.ThreadID+"/runs/"+b.RunID+"/cancel?wait=1", "", nil)
		}
		if err == nil {
			err = ask(http.MethodGet, second.address+"/threads/"+b.ThreadID+"/runs/"+b.RunID, "", &b)
		}
		if err != nil || b.Status != "interrupted" {
			t.Errorf("a run cancelled elsewhere: %s, %v", b.Status, err)
		}
	})
}

// follow reads the stream of a run from after an event until it has n events, or with 0 its end.
func (m *member) follow(t *testing.T, a acknowledged, after string, n int) (ids []string, last string, ended bool) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.address+"/threads/"+a.ThreadID+"/runs/"+a.RunID+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", after)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if lines.Text() == "event: end" {
			ended = true
		}
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			if ids, last = append(ids, id), id; len(ids) == n {
				return ids, last, ended
			}
		}
	}
	if n > 0 {
		t.Fatal(fmt.Errorf("the stream ended after %d events: %w", len(ids), lines.Err()))
	}
	return ids, last, ended
}
