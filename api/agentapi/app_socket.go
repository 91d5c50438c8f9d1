package agentapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/slipway-dev/slipway/agent"
)

const (
	// maxMessage is how large one message of a client's WebSocket may be.
	maxMessage = 16 << 20
	// maxCloseReason is how long a reason may be by the protocol of WebSockets.
	maxCloseReason = 123
)

func isWebSocket(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") &&
		strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade")
}

// askSocket opens a WebSocket of the application's app and passes messages both ways until one side closes it.
func (a *API) askSocket(w http.ResponseWriter, r *http.Request) {
	if !a.mayConnect(r) {
		writeDetail(w, http.StatusForbidden, "The origin "+r.Header.Get("Origin")+" is not allowed; add it to http.cors.allow_origins")
		return
	}
	x, err := a.engine.AppExchange(r.Context(), requestOf(r))
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer x.Drop()
	answer, err := x.Response(r.Context())
	switch {
	case err != nil:
		x.HangUp(1006, "the client has gone")
		a.fail(w, r, (&upload{}).reason(err))
	case answer.Pass:
		a.route(w, r)
	case answer.Status != http.StatusSwitchingProtocols:
		a.download(w, r, x, answer)
	default:
		a.relaySocket(w, r, x, answer)
	}
}

// mayConnect keeps pages of other origins from opening WebSockets in the name of whoever looks at them.
func (a *API) mayConnect(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || a.allows("*") || a.allows(origin) {
		return true
	}
	_, host, _ := strings.Cut(origin, "://")
	return strings.EqualFold(host, r.Host)
}

func (a *API) relaySocket(w http.ResponseWriter, r *http.Request, x agent.Exchange, answer agent.HTTPResponse) {
	options := &websocket.AcceptOptions{InsecureSkipVerify: true} // mayConnect has looked
	for _, h := range answer.Headers {
		if strings.EqualFold(h[0], "Sec-WebSocket-Protocol") {
			options.Subprotocols = []string{toBytes(h[1])}
		} else if !hopByHop(h[0]) && !strings.HasPrefix(strings.ToLower(h[0]), "sec-websocket-") {
			w.Header().Add(h[0], toBytes(h[1]))
		}
	}
	c, err := websocket.Accept(w, r, options)
	if err != nil { // it has been answered
		x.HangUp(1006, "the client's handshake is wrong")
		return
	}
	c.SetReadLimit(maxMessage)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	received := make(chan struct{})
	go func() {
		defer close(received)
		defer cancel()
		fromClient(ctx, c, x)
	}()
	toClient(ctx, c, x)
	cancel()
	<-received
	_ = c.CloseNow()
}

// fromClient passes the client's messages on until it closes.
func fromClient(ctx context.Context, c *websocket.Conn, x agent.Exchange) {
	for {
		kind, data, err := c.Read(ctx)
		if err != nil {
			var e websocket.CloseError
			if errors.As(err, &e) {
				x.HangUp(int(e.Code), e.Reason)
			} else {
				x.HangUp(1006, "the client has gone")
			}
			return
		}
		if err := x.Send(ctx, agent.Part{Data: data, Text: kind == websocket.MessageText}); err != nil {
			return // the app has closed, which toClient sees too
		}
	}
}

// toClient passes the app's messages on until it closes, or the client does.
func toClient(ctx context.Context, c *websocket.Conn, x agent.Exchange) {
	for {
		p, err := x.Receive(ctx)
		var over *agent.HangUp
		switch {
		case errors.As(err, &over):
			_ = c.Close(closeCode(over.Code), closeReason(over.Reason))
			return
		case err != nil:
			return
		}
		kind := websocket.MessageBinary
		if p.Text {
			kind = websocket.MessageText
		}
		if err := c.Write(ctx, kind, p.Data); err != nil {
			x.HangUp(1006, "the client has gone")
			return
		}
	}
}

// closeCode is a code that may be sent: an app that has gone is a server that goes.
func closeCode(code int) websocket.StatusCode {
	switch {
	case code == 0 || code == 1006 || code == 1012:
		return websocket.StatusServiceRestart
	case code == 1005:
		return websocket.StatusNormalClosure
	case code < 1000 || code > 4999 || code == 1004 || code == 1015 || code > 1014 && code < 3000:
		return websocket.StatusInternalError
	}
	return websocket.StatusCode(code)
}

func closeReason(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	for len(s) > maxCloseReason {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}
