package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/store/postgres"
	"github.com/slipway-dev/slipway/store/postgres/pgtest"
)

// cut ends all sessions of a database, as a restart of the server or a fault of the network does.
func cut(t *testing.T, url string) {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	const end = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
	if _, err := c.Exec(ctx, end); err != nil {
		t.Fatal(err)
	}
}

// Every write that was told to have succeeded is there once, whatever becomes of the connections meanwhile.
func TestWritesThroughCutConnections(t *testing.T) {
	t.Parallel()
	ctx, url := context.Background(), pgtest.URL(t)
	s := openAgent(t, url, "agent_test")
	const writers, each = 4, 60
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				id := fmt.Sprint("t", w, "-", i)
				if _, err := s.CreateThread(ctx, agent.Thread{ID: id, CreatedAt: time.UnixMicro(1)}, false); err != nil {
					t.Errorf("thread %s: %v", id, err)
				}
				if _, err := s.Thread(ctx, id); err != nil && slipway.ErrorCode(err) != slipway.CodeUnavailable {
					t.Errorf("read %s: %v", id, err)
				}
			}
		})
	}
	for range 15 {
		cut(t, url)
	}
	group.Wait()
	if n, err := s.CountThreads(ctx, agent.ThreadQuery{}); err != nil || n != writers*each {
		t.Errorf("got %d threads (%v), want %d", n, err, writers*each)
	}
}

func TestInstanceIsAliveAgainAfterItsSessionWasCut(t *testing.T) {
	t.Parallel()
	ctx, url := context.Background(), pgtest.URL(t)
	s, other := openAgent(t, url, "agent_test"), openAgent(t, url, "agent_test")
	release, err := s.Register(ctx, "i")
	if err != nil {
		t.Fatal(err)
	}
	run := agent.Run{ID: "r", ThreadID: "t", GraphID: "g", CreatedAt: time.UnixMicro(1)}
	if _, err := s.Admit(ctx, agent.Admission{Run: run, CreateThread: true, ClaimFor: "i", Now: time.UnixMicro(1)}); err != nil {
		t.Fatal(err)
	}
	cut(t, url)
	for deadline := time.Now().Add(20 * time.Second); ; {
		dead, err := other.Dead(ctx)
		if err == nil && len(dead) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got dead %v (%v), want the instance back", dead, err)
		}
	}
	if _, err := other.Register(ctx, "i"); err == nil || !strings.Contains(err.Error(), "another server bears the instance id i") {
		t.Errorf("got %v for the id of a living instance", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- other.AwaitEnd(ctx, "i") }()
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// Two processes on one schema take turns: exactly one of two rejecting admissions wins, and each sees what the other did.
func TestTwoProcessesAreLinearizable(t *testing.T) {
	t.Parallel()
	ctx, url := context.Background(), pgtest.URL(t)
	stores := []*postgres.AgentStore{openAgent(t, url, "agent_test"), openAgent(t, url, "agent_test")}
	for round := range 30 {
		thread := fmt.Sprint("t", round)
		won := make(chan bool, len(stores))
		for n, s := range stores {
			go func() {
				run := agent.Run{ID: fmt.Sprint("r", round, "-", n), ThreadID: thread, GraphID: "g", Multitask: agent.MultitaskReject, CreatedAt: time.UnixMicro(1)}
				_, err := s.Admit(ctx, agent.Admission{Run: run, CreateThread: true, ClaimFor: "i", Now: time.UnixMicro(1)})
				if err != nil && slipway.ErrorCode(err) != slipway.CodeConflict {
					t.Error(err)
				}
				won <- err == nil
			}()
		}
		if a, b := <-won, <-won; a == b {
			t.Fatalf("round %d: both or none of two rejecting admissions won (%v)", round, a)
		}
	}
}

func TestNewsReachTheOtherControlService(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	a, b := openControl(t, url), openControl(t, url)
	heardA, heardB := make(chan slipway.News, 1000), make(chan slipway.News, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	t.Cleanup(func() { cancel(); group.Wait() })
	group.Go(func() { _ = a.Follow(ctx, func(n slipway.News) { heardA <- n }) })
	group.Go(func() { _ = b.Follow(ctx, func(n slipway.News) { heardB <- n }) })
	if n := <-heardB; !n.Missed {
		t.Errorf("got %+v at first, want Missed", n)
	}
	<-heardA
	put := func(id string) {
		t.Helper()
		d := slipway.Deployment{ID: id, TenantID: "t", Name: id, Source: slipway.SourceInternalSource, Status: slipway.DeploymentUnused, CreatedAt: time.UnixMicro(1)}
		if err := a.Update(ctx, func(tx slipway.Tx) error { return tx.PutDeployment(d) }); err != nil {
			t.Fatal(err)
		}
	}
	await := func(want slipway.News) {
		t.Helper()
		for n := range heardB {
			if n == want {
				return
			}
		}
	}
	put("d1")
	await(slipway.News{DeploymentID: "d1"})
	await(slipway.News{})
	if err := a.Update(ctx, func(tx slipway.Tx) error { _, err := tx.Deployment("", "d1"); return err }); err != nil {
		t.Fatal(err)
	}
	put("d2")
	if n := <-heardB; n != (slipway.News{DeploymentID: "d2"}) {
		t.Errorf("got %+v after a transaction that changed nothing, want the next change", n)
	}
	cut(t, url)
	await(slipway.News{Missed: true})
	put("d3")
	await(slipway.News{DeploymentID: "d3"})
	for len(heardA) > 0 {
		if n := <-heardA; n.DeploymentID == "d1" || n.DeploymentID == "d2" {
			t.Errorf("the writer heard of its own change %+v", n)
		}
	}
}
