package agentapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// askApp gives a request to the application's app and passes its answer on as it comes. What the app does not know is
// answered by the built-in routes; with mayPass the request's body is kept for them.
func (a *API) askApp(w http.ResponseWriter, r *http.Request, mayPass bool) {
	if isWebSocket(r) {
		a.askSocket(w, r)
		return
	}
	if r.ContentLength > a.cfg.MaxBody {
		a.fail(w, r, a.tooLarge())
		return
	}
	x, err := a.engine.AppExchange(r.Context(), requestOf(r))
	if err != nil {
		a.fail(w, r, err)
		return
	}
	up := a.upload(w, r, x, mayPass)
	defer up.stop()
	answer, err := x.Response(r.Context())
	switch {
	case err != nil:
		x.HangUp(0, "the client has gone")
		up.settle(w.Header())
		a.fail(w, r, up.reason(err))
		return
	case answer.Pass:
		a.takeOver(w, r, up)
		return
	}
	up.keeps.Store(false)
	up.settle(w.Header())
	a.download(w, r, x, answer)
	x.Drop()
}

// takeOver lets a built-in route answer what the app passed.
func (a *API) takeOver(w http.ResponseWriter, r *http.Request, up *upload) {
	up.cancel()
	up.settle(w.Header())
	if !up.keeps.Load() { // one of its own routes
		writeDetail(w, http.StatusNotFound, "Not Found")
		return
	}
	r.Body = io.NopCloser(up)
	a.route(w, r)
}

func (a *API) tooLarge() error {
	return slipway.Errorf(slipway.CodeTooLarge, "The body is larger than the limit of %d bytes", a.cfg.MaxBody)
}

// download writes the app's answer, each part as it comes. An answer that breaks off cuts the connection: the client must
// not take it for complete.
func (a *API) download(w http.ResponseWriter, r *http.Request, x agent.Exchange, answer agent.HTTPResponse) {
	if answer.Status < 200 || answer.Status > 999 {
		x.HangUp(0, "no status of an answer")
		a.fail(w, r, slipway.Errorf(slipway.CodeInternal, "the HTTP app answered the status %d", answer.Status))
		return
	}
	setHeaders(w.Header(), answer.Headers)
	w.WriteHeader(answer.Status)
	control := http.NewResponseController(w)
	for sized := w.Header().Get("Content-Length") != ""; ; {
		if !sized {
			_ = control.Flush()
		}
		p, err := x.Receive(r.Context())
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil && len(p.Data) > 0 {
			_, err = w.Write(p.Data)
		}
		if err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
			x.HangUp(0, "the client has gone")
			panic(http.ErrAbortHandler)
		}
	}
}

// upload sends a request's body to the app. It is also what of the body a built-in route can still read.
type upload struct {
	control *http.ResponseController
	cancel  context.CancelFunc
	done    chan struct{}
	keeps   atomic.Bool

	mu   sync.Mutex // held while the body is read
	body io.Reader
	kept []byte // with keeps: what has been read of it
	at   int    // how much of that Read has given
	err  error

	fault struct {
		sync.Mutex
		err error // why the body cannot be sent
	}
}

// upload starts to send the body; stop must be called before the handler returns.
func (a *API) upload(w http.ResponseWriter, r *http.Request, x agent.Exchange, keep bool) *upload {
	ctx, cancel := context.WithCancel(r.Context())
	u := &upload{
		control: http.NewResponseController(w), cancel: cancel, done: make(chan struct{}), body: http.MaxBytesReader(nil, r.Body, a.cfg.MaxBody),
	}
	u.keeps.Store(keep)
	if r.Body == http.NoBody || r.Body == nil {
		_ = x.Send(ctx, agent.Part{End: true}) // what came of it is seen by who waits for the answer
		close(u.done)
		return u
	}
	_ = u.control.EnableFullDuplex() // HTTP/2 and test recorders have no need of it
	go func() {
		defer close(u.done)
		if err := u.send(ctx, x); err != nil {
			u.fault.Lock()
			u.fault.err = err
			u.fault.Unlock()
			if ctx.Err() == nil {
				x.HangUp(0, "the request's body cannot be read")
			}
		}
	}()
	return u
}

func (u *upload) send(ctx context.Context, x agent.Exchange) error {
	buffer := make([]byte, 32<<10)
	for ctx.Err() == nil {
		n, err := u.next(buffer)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if sendErr := x.Send(ctx, agent.Part{Data: buffer[:n], End: err != nil}); sendErr != nil || err != nil {
			return nil // the app has answered without it, or that was all
		}
	}
	return nil
}

// next reads the body.
func (u *upload) next(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n, err := u.body.Read(p)
	if u.keeps.Load() {
		u.kept = append(u.kept, p[:n]...)
	}
	u.err = err
	return n, err
}

// Read gives the body from its start.
func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.at < len(u.kept) {
		n := copy(p, u.kept[u.at:])
		u.at += n
		return n, nil
	}
	if u.err != nil {
		return 0, u.err
	}
	return u.body.Read(p)
}

// settleWait is how long a body that is about to end is waited for.
const settleWait = 2 * time.Millisecond

// settle is called before the answer begins. If the body has not come to its end by then, the connection ends with the
// answer: nobody may read the rest of it.
func (u *upload) settle(h http.Header) {
	late := time.NewTimer(settleWait)
	defer late.Stop()
	select {
	case <-u.done:
	case <-late.C:
		h.Set("Connection", "close")
	}
}

// stop ends the sending; a client that is slow to send is not waited for.
func (u *upload) stop() {
	u.cancel()
	select {
	case <-u.done:
	default:
		_ = u.control.SetReadDeadline(time.Now())
		<-u.done
	}
}

// reason is why there is no answer: the body, rather than what came of it.
func (u *upload) reason(err error) error {
	u.fault.Lock()
	defer u.fault.Unlock()
	var large *http.MaxBytesError
	var over *agent.HangUp
	switch {
	case errors.As(u.fault.err, &large):
		return slipway.Errorf(slipway.CodeTooLarge, "The body is larger than the limit of %d bytes", large.Limit)
	case errors.As(err, &over):
		return slipway.Errorf(slipway.CodeUnavailable, "the HTTP app broke off before it answered; try again")
	}
	return err
}

// requestOf describes a request to the app. Its path has no mount prefix.
func requestOf(r *http.Request) agent.HTTPRequest {
	q := agent.HTTPRequest{
		Method: r.Method, Target: r.URL.RequestURI(), Headers: [][2]string{{"host", fromBytes(r.Host)}}, Scheme: schemeOf(r),
		Client: r.RemoteAddr, WebSocket: isWebSocket(r),
	}
	for name, values := range r.Header {
		if hopByHop(name) {
			continue
		}
		for _, v := range values {
			q.Headers = append(q.Headers, [2]string{strings.ToLower(name), fromBytes(v)})
		}
	}
	if u := agent.UserFrom(r.Context()); u != nil {
		q.User = u.Document
	}
	return q
}

func schemeOf(r *http.Request) string {
	if forwarded := r.Header.Get("X-Forwarded-Proto"); forwarded == "http" || forwarded == "https" {
		return forwarded
	}
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// setHeaders puts an answer's headers in place of what was set before.
func setHeaders(h http.Header, list [][2]string) {
	for _, pair := range list {
		h.Del(pair[0])
	}
	for _, pair := range list {
		if !hopByHop(pair[0]) {
			h.Add(pair[0], toBytes(pair[1]))
		}
	}
}

// hopByHop says whether a header is about the connection and not about the message.
func hopByHop(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Te", "Trailer", "Upgrade":
		return true
	}
	return false
}

// fromBytes reads a header's bytes as ISO 8859-1.
func fromBytes(s string) string {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < 0x80
	}
	if ascii {
		return s
	}
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// toBytes writes a text as ISO 8859-1; what that does not have becomes a question mark.
func toBytes(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			r = '?'
		}
		b = append(b, byte(r))
	}
	return string(b)
}
