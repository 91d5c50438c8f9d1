package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// Bounds of exchanges.
const (
	// Window is how many bytes of BODY a side may send before it is given more room.
	Window = 256 << 10
	// MaxExchanges is how many exchanges a side may have begun that are not over.
	MaxExchanges = 1024
	// piece is how large a BODY of an HTTP exchange is at most.
	piece = 64 << 10
	// maxWaiting is how many messages of a WebSocket, which may be empty, may wait to be received.
	maxWaiting = 1 << 16
)

// RequestMessage is the envelope of REQUEST.
type RequestMessage struct {
	agent.HTTPRequest
	Run   uint32  `json:"run"`
	Outer *uint32 `json:"outer,omitempty"`
}

type bodyMessage struct {
	End  bool  `json:"end,omitempty"`
	Text *bool `json:"text,omitempty"`
}

type hangUpMessage struct {
	Code   int    `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Exchanges are the exchanges of one side of a link. It is safe for concurrent use.
type Exchanges struct {
	link   Link
	mu     sync.Mutex
	next   uint32 // number of the next exchange that this side begins
	begun  int    // of this side, and not over
	others int    // of the other side
	open   map[uint32]*Exchange
	gone   *agent.HangUp // of the whole link
}

// Link is what exchanges need of the connection they live on.
type Link interface {
	// Send sends a frame after those of earlier calls; it does not wait for the other side.
	Send(f Frame) error
	// Flow waits until the other side takes what was sent; an error ends the sending.
	Flow(ctx context.Context) error
	// Accept is called for an exchange that the other side begins, before anything else is taken; it must not wait.
	Accept(x *Exchange)
}

// NewExchanges makes the exchanges of the server's side, or of a worker's.
func NewExchanges(link Link, server bool) *Exchanges {
	e := &Exchanges{link: link, next: 1, open: map[uint32]*Exchange{}}
	if server {
		e.next = 2
	}
	return e
}

// Begin begins an exchange; CodeUnavailable when there are too many.
func (e *Exchanges) Begin(m RequestMessage) (*Exchange, error) {
	envelope, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	e.mu.Lock()
	switch {
	case e.gone != nil:
		e.mu.Unlock()
		return nil, slipway.Errorf(slipway.CodeUnavailable, "the worker went away; try again")
	case e.begun >= MaxExchanges:
		e.mu.Unlock()
		return nil, slipway.Errorf(slipway.CodeUnavailable, "the HTTP app has %d requests at once, which is the limit; try again later", MaxExchanges)
	}
	number := e.next
	e.next += 2
	e.begun++
	x := newExchange(e, number, m, true)
	e.open[number] = x
	e.mu.Unlock()
	if err := e.link.Send(Frame{Kind: Request, Stream: number, Envelope: envelope}); err != nil {
		x.Drop()
		return nil, slipway.Errorf(slipway.CodeTooLarge, "the request's headers: %w", err)
	}
	return x, nil
}

// Take handles a frame of an exchange; an error is a broken link. It does not wait.
func (e *Exchanges) Take(f Frame) error {
	if f.Kind == Request {
		return e.accept(f)
	}
	x := e.Of(f.Stream)
	if x == nil {
		return nil // it is over
	}
	return x.take(f)
}

func (e *Exchanges) accept(f Frame) error {
	var m RequestMessage
	if err := json.Unmarshal(f.Envelope, &m); err != nil {
		return fmt.Errorf("envelope of a request: %w", err)
	}
	e.mu.Lock()
	if f.Stream%2 == e.next%2 || e.open[f.Stream] != nil {
		e.mu.Unlock()
		return fmt.Errorf("a request has the number %d, which is not the other side's to choose", f.Stream)
	}
	x := newExchange(e, f.Stream, m, false)
	e.open[f.Stream] = x
	e.others++
	full := e.others > MaxExchanges
	e.mu.Unlock()
	if full {
		x.HangUp(0, fmt.Sprintf("more than %d requests at once", MaxExchanges))
		return nil
	}
	e.link.Accept(x)
	return nil
}

// Of returns an open exchange by its number, nil if it is over.
func (e *Exchanges) Of(number uint32) *Exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open[number]
}

// Close ends all exchanges: the other side is gone.
func (e *Exchanges) Close(reason string) {
	e.mu.Lock()
	e.gone = &agent.HangUp{Reason: reason}
	all := make([]*Exchange, 0, len(e.open))
	for _, x := range e.open {
		all = append(all, x)
	}
	e.mu.Unlock()
	for _, x := range all {
		x.end(e.gone)
	}
}

func (e *Exchanges) remove(x *Exchange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open[x.number] != x {
		return
	}
	delete(e.open, x.number)
	if x.ours {
		e.begun--
	} else {
		e.others--
	}
}

// Exchange is one exchange as this side sees it.
type Exchange struct {
	all     *Exchanges
	number  uint32
	message RequestMessage
	ours    bool // this side began it
	done    chan struct{}

	mu             sync.Mutex
	news           chan struct{} // closed and replaced when something arrives
	room           int
	parts          []agent.Part
	queued         int
	response       *agent.HTTPResponse
	gone           *agent.HangUp
	over           bool
	sent, received bool // the end of the body in each direction
}

var _ agent.Exchange = (*Exchange)(nil)

func newExchange(all *Exchanges, number uint32, m RequestMessage, ours bool) *Exchange {
	return &Exchange{all: all, number: number, message: m, ours: ours, room: Window, done: make(chan struct{}), news: make(chan struct{})}
}

// Number is the exchange's number on the link.
func (x *Exchange) Number() uint32 { return x.number }

// Message is the envelope that began it.
func (x *Exchange) Message() RequestMessage { return x.message }

// SetRequest fills in what the envelope names by numbers. It is called before the exchange is handed on.
func (x *Exchange) SetRequest(r agent.HTTPRequest) { x.message.HTTPRequest = r }

// Request is what began it.
func (x *Exchange) Request() agent.HTTPRequest { return x.message.HTTPRequest }

// Done is closed when the exchange is over.
func (x *Exchange) Done() <-chan struct{} { return x.done }

// Respond sends RESPONSE.
func (x *Exchange) Respond(r agent.HTTPResponse) error {
	if r.Headers == nil {
		r.Headers = [][2]string{}
	}
	x.happened(func() { x.response = &r })
	err := x.send(Response, r, nil)
	if r.Pass {
		x.end(nil)
	}
	return err
}

// Response waits for RESPONSE.
func (x *Exchange) Response(ctx context.Context) (agent.HTTPResponse, error) {
	if err := x.await(ctx, func() bool { return x.response != nil }); err != nil {
		return agent.HTTPResponse{}, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return *x.response, nil
}

// Send sends BODY: one for a message of a WebSocket, as many as it takes for a part of a body.
func (x *Exchange) Send(ctx context.Context, p agent.Part) error {
	if x.message.WebSocket && x.accepted() {
		return x.sendPiece(ctx, bodyMessage{Text: &p.Text}, p.Data)
	}
	for len(p.Data) > piece {
		if err := x.sendPiece(ctx, bodyMessage{}, p.Data[:piece]); err != nil {
			return err
		}
		p.Data = p.Data[piece:]
	}
	if len(p.Data) == 0 && !p.End {
		return nil
	}
	if err := x.sendPiece(ctx, bodyMessage{End: p.End}, p.Data); err != nil {
		return err
	}
	if p.End {
		x.ended(&x.sent)
	}
	return nil
}

// accepted says whether a WebSocket stands; what refuses one has a body like any response.
func (x *Exchange) accepted() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.response == nil || x.response.Status == 101
}

func (x *Exchange) sendPiece(ctx context.Context, m bodyMessage, data []byte) error {
	need := min(len(data), Window)
	if err := x.await(ctx, func() bool { return x.room >= need }); err != nil {
		return err
	}
	if err := x.all.link.Flow(ctx); err != nil {
		return err
	}
	x.mu.Lock()
	x.room -= len(data)
	over, gone := x.over, x.gone
	x.mu.Unlock()
	switch {
	case gone != nil:
		return gone
	case over:
		return io.ErrClosedPipe
	}
	return x.send(Body, m, data)
}

// Receive waits for the next BODY.
func (x *Exchange) Receive(ctx context.Context) (agent.Part, error) {
	if err := x.await(ctx, func() bool { return len(x.parts) > 0 || x.received }); err != nil {
		return agent.Part{}, err
	}
	x.mu.Lock()
	if len(x.parts) == 0 {
		x.mu.Unlock()
		return agent.Part{}, io.EOF
	}
	p := x.parts[0]
	x.parts = x.parts[1:]
	x.queued -= len(p.Data)
	x.mu.Unlock()
	if len(p.Data) > 0 && !p.End {
		_ = x.send(Room, map[string]int{"bytes": len(p.Data)}, nil)
	}
	if p.End {
		x.ended(&x.received)
	}
	return p, nil
}

// HangUp sends HANGUP.
func (x *Exchange) HangUp(code int, reason string) {
	_ = x.send(Hangup, hangUpMessage{code, reason}, nil)
	x.end(&agent.HangUp{Code: code, Reason: reason})
}

// Drop forgets it.
func (x *Exchange) Drop() { x.end(&agent.HangUp{Reason: "it was dropped"}) }

func (x *Exchange) take(f Frame) error {
	switch f.Kind {
	case Response:
		return x.takeResponse(f)
	case Body:
		return x.takeBody(f)
	case Room:
		var m struct{ Bytes int }
		if err := json.Unmarshal(f.Envelope, &m); err != nil {
			return fmt.Errorf("envelope of ROOM: %w", err)
		}
		x.happened(func() { x.room += m.Bytes })
	case Hangup:
		var m hangUpMessage
		if err := json.Unmarshal(f.Envelope, &m); err != nil {
			return fmt.Errorf("envelope of HANGUP: %w", err)
		}
		x.end(&agent.HangUp{Code: m.Code, Reason: m.Reason})
	}
	return nil
}

func (x *Exchange) takeResponse(f Frame) error {
	var r agent.HTTPResponse
	if err := json.Unmarshal(f.Envelope, &r); err != nil {
		return fmt.Errorf("envelope of RESPONSE: %w", err)
	}
	x.happened(func() {
		if x.response == nil {
			x.response = &r
		}
	})
	if r.Pass {
		x.end(nil)
	}
	return nil
}

func (x *Exchange) takeBody(f Frame) error {
	var m bodyMessage
	if err := json.Unmarshal(f.Envelope, &m); err != nil {
		return fmt.Errorf("envelope of BODY: %w", err)
	}
	p := agent.Part{Data: f.Payload, End: m.End, Text: m.Text != nil && *m.Text}
	excess := false
	x.happened(func() {
		x.parts = append(x.parts, p)
		x.queued += len(p.Data)
		// One message may be larger than the window, if it is sent into an empty one.
		excess = len(x.parts) > maxWaiting || x.queued-len(x.parts[len(x.parts)-1].Data) > Window
	})
	if excess {
		x.HangUp(1008, "more was sent than there was room for")
	}
	return nil
}

// happened changes something and wakes who waits.
func (x *Exchange) happened(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
	close(x.news)
	x.news = make(chan struct{})
}

// await waits until ready, which is asked with mu held, says so. What has arrived before a hang-up can still be had.
func (x *Exchange) await(ctx context.Context, ready func() bool) error {
	for {
		x.mu.Lock()
		ok, gone, news := ready(), x.gone, x.news
		x.mu.Unlock()
		switch {
		case ok:
			return nil
		case gone != nil:
			return gone
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ended notes the end of a direction; with both the exchange is over.
func (x *Exchange) ended(which *bool) {
	x.mu.Lock()
	*which = true
	both := x.sent && x.received
	x.mu.Unlock()
	if both {
		x.end(nil)
	}
}

// end makes the exchange over, with or without a hang-up; the first one counts.
func (x *Exchange) end(gone *agent.HangUp) {
	x.all.remove(x)
	x.happened(func() {
		if x.over {
			return
		}
		x.over, x.gone = true, gone
		close(x.done)
	})
}

func (x *Exchange) send(kind Kind, envelope any, payload []byte) error {
	x.mu.Lock()
	over, gone := x.over, x.gone
	x.mu.Unlock()
	if over && gone != nil {
		return gone
	}
	if over {
		return nil
	}
	b, err := json.Marshal(envelope)
	if err != nil {
		return fmt.Errorf("encode a frame of kind %d: %w", kind, err)
	}
	return x.all.link.Send(Frame{Kind: kind, Stream: x.number, Envelope: b, Payload: payload})
}
