// Package bustest is the conformance suite of agent.Bus.
package bustest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// deadline is only there to end a test that hangs.
const deadline = 30 * time.Second

// Run checks an implementation. open returns the bus of one more process of the same deployment, which knows and is known
// to all that were opened before in the same test.
func Run(t *testing.T, group func(t *testing.T) (open func(name string) agent.Bus)) {
	t.Run("a publisher hears itself", func(t *testing.T) {
		t.Parallel()
		b := group(t)("one")
		got := collect(b, "topic")
		b.Publish("topic", []byte("hello"))
		want(t, got, "hello")
	})
	t.Run("everybody hears, in order, and only the topic", func(t *testing.T) {
		t.Parallel()
		open := group(t)
		a, b, c := open("a"), open("b"), open("c")
		fromB, fromC, fromA := collect(b, "topic"), collect(c, "topic"), collect(a, "topic")
		meet(t, a, b, c)
		a.Publish("other", []byte("not this"))
		for i := range 500 {
			a.Publish("topic", fmt.Append(nil, i))
		}
		for i := range 500 {
			for _, got := range []<-chan []byte{fromA, fromB, fromC} {
				want(t, got, fmt.Sprint(i))
			}
		}
	})
	t.Run("large messages arrive whole", func(t *testing.T) {
		t.Parallel()
		open := group(t)
		a, b := open("a"), open("b")
		got := collect(b, "topic")
		meet(t, a, b)
		large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		a.Publish("topic", large)
		want(t, got, string(large))
	})
	t.Run("a cancelled subscription is silent and may be cancelled from within", func(t *testing.T) {
		t.Parallel()
		b := group(t)("one")
		var cancel func()
		var mu sync.Mutex
		first := make(chan []byte, 10)
		mu.Lock()
		cancel = b.Subscribe("topic", func(p []byte) {
			mu.Lock()
			defer mu.Unlock()
			cancel()
			first <- p
		})
		mu.Unlock()
		b.Publish("topic", []byte("1"))
		want(t, first, "1")
		second := collect(b, "topic")
		b.Publish("topic", []byte("2"))
		want(t, second, "2")
		if len(first) != 0 {
			t.Errorf("cancelled subscription got %q", <-first)
		}
	})
}

// meet waits until every bus hears every other one.
func meet(t *testing.T, buses ...agent.Bus) {
	t.Helper()
	for i, from := range buses {
		for j, to := range buses {
			topic := fmt.Sprintf("meet/%d/%d", i, j)
			got := make(chan struct{}, 1)
			cancel := to.Subscribe(topic, func([]byte) {
				select {
				case got <- struct{}{}:
				default:
				}
			})
			knock(t, from, topic, got)
			cancel()
		}
	}
}

// knock publishes again and again: a bus delivers at most once, and peers get to know each other in their own time.
func knock(t *testing.T, from agent.Bus, topic string, got <-chan struct{}) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	end := time.After(deadline)
	for {
		from.Publish(topic, []byte("?"))
		select {
		case <-got:
			return
		case <-again.C:
		case <-end:
			t.Fatalf("%s: never heard", topic)
		}
	}
}

func collect(b agent.Bus, topic string) <-chan []byte {
	got := make(chan []byte, 10000)
	b.Subscribe(topic, func(p []byte) { got <- p })
	return got
}

func want(t *testing.T, got <-chan []byte, want string) {
	t.Helper()
	select {
	case p := <-got:
		if string(p) != want {
			t.Fatalf("got %.80q, want %.80q", p, want)
		}
	case <-time.After(deadline):
		t.Fatalf("nothing came, want %.80q", want)
	}
}
