package broadcast

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/bus/topics"
)

// Connect makes connections over which short texts reach everybody who has one: what others send from then on is heard.
type Connect func(ctx context.Context) (Wire, error)

// Wire is one connection. Its methods are called one at a time.
type Wire interface {
	// Send sends texts, in order. It does not wait for the disk.
	Send(ctx context.Context, texts []string) error
	// Next returns the next text that somebody sent, this process included. ok is false when ctx ended before; the wire
	// goes on then. After an error it is closed.
	Next(ctx context.Context) (text string, ok bool, err error)
	Close() error
}

const (
	// maxUnsent bounds what waits for the line; beyond it messages are dropped, which the others notice.
	maxUnsent = 16 << 20
	// batch is how many pieces are sent at once at most.
	batch = 256
	// beat is how often a process says that it is there; who is silent for silence is forgotten.
	beat    = 30 * time.Second
	silence = 3*beat + 5*time.Second
	// acquaintance is how long after a hello others may take to answer. Who is alone then sends nothing until somebody
	// comes.
	acquaintance = 5 * time.Second
	// againMin and againMax bound the pauses between attempts to get a lost connection back.
	againMin, againMax = 20 * time.Millisecond, time.Second
	// sendLimit bounds one sending; joinLimit the making of a connection; leaveLimit the goodbye.
	sendLimit, joinLimit, leaveLimit = 15 * time.Second, 10 * time.Second, 2 * time.Second
)

// Bus is one process's place on the line. It implements agent.Bus.
type Bus struct {
	name string
	line Connect
	log  *slog.Logger
	hub  topics.Hub
	done chan struct{} // closed when the loop has ended
	stop context.CancelFunc

	mu      sync.Mutex
	unsent  []message
	waiting int // bytes of unsent
	control []byte
	lost    bool // messages were dropped since the last piece
	sleeper context.CancelFunc
	greeted time.Time
	peers   map[string]*peer
	closed  bool

	seq uint64 // of the last piece; of the loop alone
}

type peer struct {
	sender
	heard time.Time
}

// Open joins. name is unique per process and has no spaces. The first connection is made before it returns, so that an
// address that is wrong is told at once.
func Open(ctx context.Context, line Connect, name string, log *slog.Logger) (*Bus, error) {
	if name == "" || strings.Contains(name, " ") {
		return nil, fmt.Errorf("the name %q of a place on the bus is empty or has spaces", name)
	}
	b := &Bus{name: name, line: line, log: log, done: make(chan struct{}), peers: map[string]*peer{}}
	first, err := b.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("join the bus: %w", err)
	}
	life, stop := context.WithCancel(context.Background())
	b.stop = stop
	go b.run(life, first)
	return b, nil
}

// Publish sends a message to every subscriber of the topic in every process on the bus. It never blocks.
func (b *Bus) Publish(topic string, payload []byte) {
	b.hub.Deliver(topic, payload)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.alone() {
		return
	}
	m := message{topic: topic, payload: payload}
	if b.waiting+m.size() > maxUnsent || len(payload) > maxMessage || len(topic) > maxTopic {
		b.lost = true
		return
	}
	b.unsent, b.waiting = append(b.unsent, m), b.waiting+m.size()
	b.wake()
}

// alone says whether nobody else is on the line; called with mu held.
func (b *Bus) alone() bool {
	return len(b.peers) == 0 && time.Since(b.greeted) > acquaintance
}

// wake makes the loop look for what there is to send; called with mu held.
func (b *Bus) wake() {
	if b.sleeper != nil {
		b.sleeper()
	}
}

// Subscribe calls fn for every message of the topic, one at a time and in order, until cancel is called. fn may publish,
// subscribe and cancel. A message that is being handled when cancel is called may still be running when it returns.
func (b *Bus) Subscribe(topic string, fn func(payload []byte)) (cancel func()) {
	return b.hub.Subscribe(topic, fn)
}

// Close sends what waits, as far as that is possible within a moment, and leaves. It is idempotent.
func (b *Bus) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.stop()
	<-b.done
	return nil
}

func (b *Bus) connect(ctx context.Context) (Wire, error) {
	ctx, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	w, err := b.line(ctx)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.greeted, b.control = time.Now(), []byte{pieceHello}
	return w, nil
}

// run keeps a connection until life ends.
func (b *Bus) run(life context.Context, w Wire) {
	defer close(b.done)
	for {
		err := b.serve(life, w)
		if life.Err() != nil {
			b.leave(w)
			return
		}
		_ = w.Close()
		b.log.Warn("the connection to the other servers broke", "error", err)
		if w = b.again(life); w == nil {
			return
		}
		b.hub.Deliver(agent.TopicMissed, nil)
	}
}

// again gets a connection back; nil when life ended before.
func (b *Bus) again(life context.Context) Wire {
	for pause := againMin; ; pause = min(2*pause, againMax) {
		w, err := b.connect(life)
		if err == nil {
			return w
		}
		select {
		case <-life.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// serve sends and hears until the wire breaks or life ends.
func (b *Bus) serve(life context.Context, w Wire) error {
	next := time.Now().Add(beat)
	for {
		if err := b.send(context.WithoutCancel(life), w); err != nil {
			return err
		}
		wait, sleeps := b.sleep(life, next)
		text, heard, err := w.Next(wait)
		sleeps()
		switch {
		case life.Err() != nil:
			return nil
		case err != nil:
			return err
		case heard:
			b.hear(text)
		case !time.Now().Before(next):
			next = time.Now().Add(beat)
			b.breathe()
		}
	}
}

// sleep returns the context of a wait that ends when there is something to send or it is time for a beat.
func (b *Bus) sleep(life context.Context, until time.Time) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithDeadline(life, until)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.unsent) > 0 || len(b.control) > 0 {
		cancel()
	}
	b.sleeper = cancel
	return ctx, cancel
}

// breathe says that this process is there and forgets who no longer does.
func (b *Bus) breathe() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.control = append(b.control, pieceHere)
	for name, p := range b.peers {
		if time.Since(p.heard) > silence {
			delete(b.peers, name)
		}
	}
}

// send sends what waits. Pieces that a broken wire swallowed are missed by their numbers.
func (b *Bus) send(ctx context.Context, w Wire) error {
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	texts := b.pieces()
	for len(texts) > 0 {
		n := min(len(texts), batch)
		if err := w.Send(ctx, texts[:n]); err != nil {
			return err
		}
		texts = texts[n:]
	}
	return nil
}

// pieces takes what waits, in the form of the line.
func (b *Bus) pieces() (texts []string) {
	b.mu.Lock()
	list, control := b.unsent, b.control
	b.unsent, b.waiting, b.control = nil, 0, nil
	if b.lost {
		b.lost = false
		b.seq++
	}
	b.mu.Unlock()
	add := func(kind byte, data []byte) {
		b.seq++
		texts = append(texts, piece{from: b.name, seq: b.seq, kind: kind, data: data}.text())
	}
	for _, kind := range control {
		add(kind, nil)
	}
	cut(list, add)
	return texts
}

// hear takes in one text.
func (b *Bus) hear(text string) {
	p, err := parsePiece(text)
	if err != nil {
		b.log.Warn("a text on the bus cannot be read", "error", err)
		return
	}
	if p.from == b.name {
		return
	}
	messages, whole, err := b.from(p)
	if err != nil {
		b.log.Warn("a message on the bus cannot be read", "from", p.from, "error", err)
	}
	if !whole || err != nil {
		b.hub.Deliver(agent.TopicMissed, nil)
	}
	for _, m := range messages {
		b.hub.Deliver(m.topic, m.payload)
	}
}

// from notes who has spoken and returns the messages that are complete with this piece.
func (b *Bus) from(p piece) (complete []message, whole bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.kind == pieceLeaves {
		delete(b.peers, p.from)
		return nil, true, nil
	}
	known := b.peers[p.from]
	if known == nil {
		known = &peer{}
		b.peers[p.from] = known
	}
	known.heard = time.Now()
	if p.kind == pieceHello {
		b.control = append(b.control, pieceHere)
	}
	return known.take(p)
}

// leave says goodbye and closes.
func (b *Bus) leave(w Wire) {
	ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
	defer cancel()
	b.mu.Lock()
	b.control = nil
	b.mu.Unlock()
	err := b.send(ctx, w)
	if err == nil {
		b.seq++
		err = w.Send(ctx, []string{piece{from: b.name, seq: b.seq, kind: pieceLeaves}.text()})
	}
	if err = errors.Join(err, w.Close()); err != nil {
		b.log.Debug("leaving the bus", "error", err)
	}
}
