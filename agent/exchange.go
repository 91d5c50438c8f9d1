package agent

import (
	"context"
	"encoding/json"
	"fmt"
)

// HTTPRequest begins an Exchange: a request for the application's own HTTP app, or one that user code makes of its own server
// (reference 9, 13). Header names are in lower case, their values ISO 8859-1 as text, the host among them.
type HTTPRequest struct {
	Method    string      `json:"method"`
	Target    string      `json:"target"` // path and query as on the request line
	Headers   [][2]string `json:"headers"`
	Scheme    string      `json:"scheme"`
	Client    string      `json:"client"` // "host:port", "" = unknown
	WebSocket bool        `json:"websocket"`
	// User is the authenticated user of a request for the app; null or nil = nobody.
	User json.RawMessage `json:"user,omitempty"`
	// Inner asks for the built-in routes only: so the app's middleware reaches what it wraps.
	Inner bool `json:"inner"`

	// RunID names the run whose code makes the request, "" outside of runs.
	RunID string `json:"-"`
	// Outer is the exchange that an inner request comes from; nil if it is not known any more.
	Outer Exchange `json:"-"`
}

// HTTPResponse answers an HTTPRequest. The status 101 accepts a WebSocket, any other one refuses it.
type HTTPResponse struct {
	Status  int         `json:"status"`
	Headers [][2]string `json:"headers"`
	// Pass is the app's word that it does not know the path; nothing follows.
	Pass bool `json:"pass,omitempty"`
}

// Part is a part of a body, or one message of a WebSocket.
type Part struct {
	Data []byte
	End  bool // the body ends with it
	Text bool // of a WebSocket's message
}

// HangUp is the error of an exchange that is over before its time, or whose WebSocket has been closed.
type HangUp struct {
	Code   int // of a WebSocket; 0 = the exchange was aborted
	Reason string
}

// Error says what happened.
func (h *HangUp) Error() string {
	if h.Code == 0 {
		return "the exchange was aborted: " + h.Reason
	}
	return fmt.Sprintf("the WebSocket was closed with %d %s", h.Code, h.Reason)
}

// Exchange is one HTTP request with its answer, or one WebSocket, between the server and user code; both sides have the same
// view of it. Sending and receiving may be done at the same time, each by one goroutine. Errors are *HangUp once the other
// side has hung up or is gone.
type Exchange interface {
	Request() HTTPRequest
	// Respond is said once by the side that was asked.
	Respond(r HTTPResponse) error
	// Response waits for what the side that was asked responds.
	Response(ctx context.Context) (HTTPResponse, error)
	// Send sends a part as soon as the other side has room for it; p.Data is the caller's again when it returns.
	Send(ctx context.Context, p Part) error
	// Receive waits for the next part; its sender gets room for more. After the part with End comes io.EOF.
	Receive(ctx context.Context) (Part, error)
	// HangUp aborts the exchange, or closes its WebSocket with a code; nothing happens if it is over.
	HangUp(code int, reason string)
	// Drop forgets the exchange: whatever still arrives is ignored.
	Drop()
	// Done is closed when the other side has hung up or is gone, or when both have sent all they had.
	Done() <-chan struct{}
}

// RequestHandler is a WorkerHandler that answers requests of user code. Without one they are refused.
type RequestHandler interface {
	// WorkerRequest is called on a goroutine of its own; the exchange is over when it returns.
	WorkerRequest(w Worker, x Exchange)
}
