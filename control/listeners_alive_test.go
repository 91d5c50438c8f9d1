package control_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/seal"
)

// watched is a service in a bubble of time that looks after its listeners.
type watched struct {
	*control.Service
	t    *testing.T
	who  slipway.Principal
	stop func()
}

// watch begins a service on the store; time passes for it as it does in the bubble.
func watch(t *testing.T, store slipway.Store, cfg control.Config) *watched {
	t.Helper()
	key, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	cfg.UploadKey, cfg.Sources = []byte("k"), []slipway.Source{slipway.SourceExternalContainer}
	n := time.Now().UnixNano() // another one's ids are others
	w := &watched{t: t, who: slipway.Principal{ID: "admin", TenantID: "t", Role: slipway.RoleAdmin}}
	w.Service = control.New(cfg, control.Deps{
		Store: store, Blob: &controltest.Blob{}, Sealer: key, Clock: time.Now, Random: zeros{}, Log: slog.New(slog.DiscardHandler),
		IDs: func() string { n++; return fmt.Sprintf("01900000-0000-7000-8000-%012d", n%1e12) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.RunListeners(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	}
	return w
}

func (w *watched) listener(compute string) control.Listener {
	w.t.Helper()
	l, err := w.CreateListener(w.t.Context(), w.who, slipway.ListenerCreate{ComputeType: slipway.ComputeCluster, ComputeID: compute})
	return must(w.t, l, err)
}

// calls makes a protocol call of the listener.
func (w *watched) calls(id string) {
	w.t.Helper()
	_, err := w.ListenerFeed(w.t.Context(), control.Caller{Principal: w.who, ListenerID: id})
	must(w.t, 0, err)
}

func (w *watched) deploy(name, listenerID string) string {
	w.t.Helper()
	d, err := w.Create(w.t.Context(), w.who, slipway.DeploymentCreate{
		Name: name, Source: slipway.SourceExternalContainer, SourceConfig: slipway.SourceConfig{ListenerID: &listenerID},
		SourceRevisionConfig: slipway.SourceRevisionConfig{ImageURI: p("r.example/a:1")},
	})
	return must(w.t, d, err).ID
}

// status is that of the deployment's latest revision, with its reason.
func (w *watched) status(id string) string {
	w.t.Helper()
	found, err := w.Revisions(w.t.Context(), w.who, slipway.RevisionQuery{DeploymentID: id, Limit: 1})
	must(w.t, 0, err)
	return strings.TrimSpace(fmt.Sprint(found[0].Status, " ", found[0].StatusReason))
}

func TestASilentListenerIsNoticedWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, controltest.NewStore(), control.Config{})
		defer func() { w.stop() }()
		synctest.Wait() // it waits without a timer: nobody is expected
		east := w.listener("east")
		time.Sleep(20 * time.Second)
		west := w.listener("west")
		desk, shop := w.deploy("desk", east.ID), w.deploy("shop", west.ID)
		for range 10 { // east is heard of every 10 s, west never again
			w.calls(east.ID)
			time.Sleep(10 * time.Second)
		}
		synctest.Wait()
		if got := w.status(desk); got != "AWAITING_DEPLOY" {
			t.Errorf("at the one that calls: %s", got)
		}
		if got := w.status(shop); !strings.HasPrefix(got, "UNKNOWN listener west offline") {
			t.Errorf("at the silent one: %s", got)
		}
		time.Sleep(49*time.Second + 900*time.Millisecond)
		synctest.Wait()
		if got := w.status(desk); got != "AWAITING_DEPLOY" {
			t.Errorf("just before its time is over: %s", got)
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if got := w.status(desk); !strings.HasPrefix(got, "UNKNOWN listener east offline") {
			t.Errorf("after its time is over: %s", got)
		}
		w.calls(east.ID)
		if got := w.status(desk); got != "AWAITING_DEPLOY" {
			t.Errorf("back: %s", got)
		}
		time.Sleep(61 * time.Second) // it can be lost again
		synctest.Wait()
		if got := w.status(desk); !strings.HasPrefix(got, "UNKNOWN") {
			t.Errorf("silent once more: %s", got)
		}
	})
}

func TestARestartGivesListenersTimeToCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := controltest.NewStore()
		w := watch(t, store, control.Config{ListenerPatience: 2 * time.Minute})
		l := w.listener("east")
		w.calls(l.ID)
		desk := w.deploy("desk", l.ID)
		w.stop()
		time.Sleep(time.Hour) // nobody could have heard it
		w = watch(t, store, control.Config{ListenerPatience: 2 * time.Minute})
		defer func() { w.stop() }()
		time.Sleep(119 * time.Second)
		synctest.Wait()
		if got := w.status(desk); got != "AWAITING_DEPLOY" {
			t.Errorf("before a patience has passed since the restart: %s", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := w.status(desk); !strings.HasPrefix(got, "UNKNOWN") {
			t.Errorf("after it: %s", got)
		}
	})
}

// faulty is a store that cannot be read for a while.
type faulty struct {
	slipway.Store
	until atomic.Int64 // Unix nanoseconds
}

func (f *faulty) View(ctx context.Context, fn func(slipway.Tx) error) error {
	if time.Now().UnixNano() < f.until.Load() {
		return slipway.Errorf(slipway.CodeUnavailable, "the database is away")
	}
	return f.Store.View(ctx, fn)
}

func TestListenersAreLookedAfterOnceTheStoreIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: controltest.NewStore()}
		w := watch(t, store, control.Config{})
		defer func() { w.stop() }()
		l := w.listener("east")
		desk := w.deploy("desk", l.ID)
		store.until.Store(time.Now().Add(5 * time.Minute).UnixNano())
		time.Sleep(5*time.Minute + 16*time.Second) // a quarter of the patience is the pause after a failure
		synctest.Wait()
		if got := w.status(desk); !strings.HasPrefix(got, "UNKNOWN") {
			t.Errorf("after the store was away: %s", got)
		}
	})
}
