package wire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/worker/wire"
)

// side is one end of a pair whose frames are delivered one by one in order.
type side struct {
	t        *testing.T
	all      *wire.Exchanges
	frames   chan wire.Frame
	accepted chan *wire.Exchange
	mu       sync.Mutex
	sent     map[wire.Kind]int // bytes
}

func (s *side) Send(f wire.Frame) error {
	s.mu.Lock()
	s.sent[f.Kind] += len(f.Payload)
	s.mu.Unlock()
	f.Payload = bytes.Clone(f.Payload)
	s.frames <- f
	return nil
}

func (s *side) Flow(context.Context) error { return nil }
func (s *side) Accept(x *wire.Exchange)    { s.accepted <- x }

func (s *side) bytes(k wire.Kind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[k]
}

func pair(t *testing.T) (server, worker *side) {
	t.Helper()
	make1 := func(isServer bool) *side {
		s := &side{t: t, frames: make(chan wire.Frame, 1<<17), accepted: make(chan *wire.Exchange, 2000), sent: map[wire.Kind]int{}}
		s.all = wire.NewExchanges(s, isServer)
		return s
	}
	server, worker = make1(true), make1(false)
	deliver := func(from, to *side) {
		for f := range from.frames {
			if err := to.all.Take(f); err != nil {
				t.Error(err)
			}
		}
	}
	go deliver(server, worker)
	go deliver(worker, server)
	t.Cleanup(func() { close(server.frames); close(worker.frames) })
	return server, worker
}

func begin(t *testing.T, from, to *side, r agent.HTTPRequest) (ours, theirs *wire.Exchange) {
	t.Helper()
	ours, err := from.all.Begin(wire.RequestMessage{HTTPRequest: r})
	if err != nil {
		t.Fatal(err)
	}
	return ours, <-to.accepted
}

func TestAnExchangeCarriesBothBodies(t *testing.T) {
	t.Parallel()
	server, worker := pair(t)
	for _, way := range [][2]*side{{server, worker}, {worker, server}} {
		client, app := begin(t, way[0], way[1], agent.HTTPRequest{Method: "POST", Target: "/a?b=c", Headers: [][2]string{{"x", "é"}}})
		if got := app.Request(); got.Target != "/a?b=c" || got.Headers[0] != [2]string{"x", "é"} {
			t.Errorf("request: got %+v", got)
		}
		body := bytes.Repeat([]byte("0123456789abcdef"), 100_000) // six windows and more
		go func() {                                               // the app echoes
			if err := app.Respond(agent.HTTPResponse{Status: 201}); err != nil {
				t.Error(err)
			}
			for {
				p, err := app.Receive(t.Context())
				if errors.Is(err, io.EOF) {
					return
				}
				if err == nil {
					err = app.Send(t.Context(), p)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		}()
		go func() {
			if err := client.Send(t.Context(), agent.Part{Data: body, End: true}); err != nil {
				t.Error(err)
			}
		}()
		r, err := client.Response(t.Context())
		if err != nil || r.Status != 201 {
			t.Fatalf("response: got %+v, %v", r, err)
		}
		var got bytes.Buffer
		for {
			p, err := client.Receive(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got.Write(p.Data)
		}
		if !bytes.Equal(got.Bytes(), body) {
			t.Errorf("got %d bytes, want %d", got.Len(), len(body))
		}
		<-client.Done()
		<-app.Done()
	}
}

func TestASlowReaderHoldsBackItsOwnExchangeOnly(t *testing.T) {
	t.Parallel()
	server, worker := pair(t)
	slow, app := begin(t, server, worker, agent.HTTPRequest{})
	ctx, stop := context.WithCancel(t.Context())
	stuck := make(chan error, 1)
	go func() { stuck <- app.Send(ctx, agent.Part{Data: make([]byte, 10*wire.Window)}) }()
	other, app2 := begin(t, server, worker, agent.HTTPRequest{})
	if err := app2.Send(t.Context(), agent.Part{Data: []byte("x"), End: true}); err != nil {
		t.Fatal(err)
	}
	if p, err := other.Receive(t.Context()); err != nil || string(p.Data) != "x" || !p.End {
		t.Errorf("the other exchange: got %+v, %v", p, err)
	}
	for range wire.Window / (64 << 10) { // everything there is room for
		if p, err := slow.Receive(t.Context()); err != nil || len(p.Data) != 64<<10 {
			t.Fatalf("got %d bytes, %v", len(p.Data), err)
		}
	}
	stop()
	if err := <-stuck; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := worker.bytes(wire.Body); got > 2*wire.Window+1 {
		t.Errorf("%d bytes were sent, the reader gave room for %d", got, 2*wire.Window)
	}
}

func TestWebSocketMessagesKeepTheirBorders(t *testing.T) {
	t.Parallel()
	server, worker := pair(t)
	client, app := begin(t, server, worker, agent.HTTPRequest{WebSocket: true})
	if err := app.Respond(agent.HTTPResponse{Status: 101}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Response(t.Context()); err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("y", 3*wire.Window)
	for _, m := range []agent.Part{{Data: []byte("hi"), Text: true}, {}, {Data: []byte(large)}} {
		if err := client.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if got, err := app.Receive(t.Context()); err != nil || string(got.Data) != string(m.Data) || got.Text != m.Text || got.End {
			t.Errorf("got %d bytes, text %v, %v", len(got.Data), got.Text, err)
		}
	}
	app.HangUp(4001, "enough")
	<-client.Done()
	var h *agent.HangUp
	if _, err := client.Receive(t.Context()); !errors.As(err, &h) || h.Code != 4001 || h.Reason != "enough" {
		t.Errorf("got %v", err)
	}
	if err := client.Send(t.Context(), agent.Part{}); !errors.As(err, &h) {
		t.Errorf("sending into a closed one: %v", err)
	}
}

func TestWhatARefusedWebSocketSaysIsABody(t *testing.T) {
	t.Parallel()
	server, worker := pair(t)
	client, app := begin(t, server, worker, agent.HTTPRequest{WebSocket: true})
	if err := errors.Join(app.Respond(agent.HTTPResponse{Status: 403}), app.Send(t.Context(), agent.Part{Data: []byte("no"), End: true})); err != nil {
		t.Fatal(err)
	}
	if r, err := client.Response(t.Context()); err != nil || r.Status != 403 {
		t.Errorf("got %+v, %v", r, err)
	}
	if p, err := client.Receive(t.Context()); err != nil || string(p.Data) != "no" || !p.End {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestBrokenPromisesEndTheExchange(t *testing.T) {
	t.Parallel()
	server, worker := pair(t)
	x, _ := begin(t, server, worker, agent.HTTPRequest{})
	for range 6 { // more than a window without room
		worker.frames <- wire.Frame{Kind: wire.Body, Stream: x.Number(), Envelope: []byte(`{}`), Payload: make([]byte, 64<<10)}
	}
	<-x.Done()
	if err := server.all.Take(wire.Frame{Kind: wire.Request, Stream: 2, Envelope: []byte(`{}`)}); err == nil {
		t.Error("a request with a number of ours was taken")
	}
	for _, kind := range []wire.Kind{wire.Response, wire.Body, wire.Room, wire.Hangup} { // late frames of what is over
		if err := server.all.Take(wire.Frame{Kind: kind, Stream: x.Number(), Envelope: []byte(`{}`)}); err != nil {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
}

func TestExchangesHaveALimit(t *testing.T) {
	t.Parallel()
	server, worker := pair(t)
	var first *wire.Exchange
	for range wire.MaxExchanges {
		_, theirs := begin(t, server, worker, agent.HTTPRequest{})
		if first == nil {
			first = theirs
		}
	}
	if _, err := server.all.Begin(wire.RequestMessage{}); slipway.ErrorCode(err) != slipway.CodeUnavailable {
		t.Errorf("one more: %v", err)
	}
	ours := server.all.Of(first.Number())
	first.HangUp(0, "room for another")
	<-ours.Done()
	if x, err := server.all.Begin(wire.RequestMessage{}); err != nil {
		t.Error(err)
	} else {
		x.HangUp(0, "")
	}
	server.all.Close("the worker went away")
	worker.all.Close("the server went away")
	if _, err := server.all.Begin(wire.RequestMessage{}); slipway.ErrorCode(err) != slipway.CodeUnavailable {
		t.Errorf("over a closed link: %v", err)
	}
	var h *agent.HangUp
	if _, err := first.Receive(t.Context()); !errors.As(err, &h) {
		t.Errorf("got %v", err)
	}
}
