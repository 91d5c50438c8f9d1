package broadcast_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/bus/broadcast"
	"github.com/slipway-dev/slipway/bus/bustest"
)

// line is a line in memory that keeps nothing for who is not connected.
type line struct {
	mu    sync.Mutex
	wires map[*wire]struct{}
	cuts  int // how many of the next sendings break the wire
}

type wire struct {
	l     *line
	texts chan string
	gone  chan struct{}
	once  sync.Once
}

var errCut = errors.New("cut")

func (l *line) connect(context.Context) (broadcast.Wire, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wires == nil {
		l.wires = map[*wire]struct{}{}
	}
	w := &wire{l: l, texts: make(chan string, 100000), gone: make(chan struct{})}
	l.wires[w] = struct{}{}
	return w, nil
}

func (w *wire) Send(_ context.Context, texts []string) error {
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	if w.l.cuts > 0 {
		w.l.cuts--
		return errCut
	}
	for other := range w.l.wires {
		for _, text := range texts {
			other.texts <- text
		}
	}
	return nil
}

func (w *wire) Next(ctx context.Context) (string, bool, error) {
	select {
	case text := <-w.texts:
		return text, true, nil
	case <-w.gone:
		return "", false, errCut
	case <-ctx.Done():
		return "", false, nil
	}
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.gone) })
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	delete(w.l.wires, w)
	return nil
}

func open(t *testing.T, l *line, name string) *broadcast.Bus {
	t.Helper()
	b, err := broadcast.Open(t.Context(), l.connect, name, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestConformance(t *testing.T) {
	t.Parallel()
	bustest.Run(t, func(t *testing.T) func(string) agent.Bus {
		l := &line{}
		return func(name string) agent.Bus { return open(t, l, name) }
	})
}

// What a broken connection swallowed, at the sender or at the listener, is told to who listens for losses.
func TestLossesAreTold(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(l *line, sender *broadcast.Bus){
		"the sender's connection breaks": func(l *line, sender *broadcast.Bus) {
			l.mu.Lock()
			l.cuts = 1
			l.mu.Unlock()
			sender.Publish("topic", []byte("lost"))
		},
		"the listener's connection breaks": func(l *line, _ *broadcast.Bus) {
			l.mu.Lock()
			defer l.mu.Unlock()
			for w := range l.wires {
				w.once.Do(func() { close(w.gone) })
			}
		},
		"too much waits": func(_ *line, sender *broadcast.Bus) { sender.Publish("topic", make([]byte, 65<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &line{}
			sender, listener := open(t, l, "sender"), open(t, l, "listener")
			met, missed, got := make(chan []byte, 100), make(chan []byte, 100), make(chan []byte, 100)
			listener.Subscribe("meet", func(p []byte) { met <- p })
			sender.Publish("meet", nil)
			<-met
			listener.Subscribe(agent.TopicMissed, func(p []byte) { missed <- p })
			listener.Subscribe("topic", func(p []byte) { got <- p })
			lose(l, sender)
			for range 2 { // until the connections are back
				sender.Publish("meet", nil)
			}
			<-missed
			large := bytes.Repeat([]byte("x"), 100000)
			for again := time.NewTicker(5 * time.Millisecond); ; {
				select {
				case <-again.C: // until the connections are back
					sender.Publish("topic", large)
				case p := <-got:
					if !bytes.Equal(p, large) {
						t.Errorf("got %.20q of %d bytes, which nobody sent whole", p, len(p))
					}
					return
				}
			}
		})
	}
}

func TestAPlaceOnTheBusHasAName(t *testing.T) {
	t.Parallel()
	if _, err := broadcast.Open(t.Context(), (&line{}).connect, "a b", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("got no error for a name with a space")
	}
}
