package controlapi_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/api/controlapi"
)

// listening serves the API on a real connection; a body must come within the time.
func (s *server) listening(bodyTime time.Duration) *httptest.Server {
	s.t.Helper()
	srv := httptest.NewServer(controlapi.New(s.Service, controlapi.Config{BaseURL: base, Version: "test", Log: slog.New(slog.DiscardHandler), BodyTime: bodyTime}))
	s.t.Cleanup(srv.Close)
	return srv
}

// begun sends the head of a request and the beginning of its body.
func (s *server) begun(srv *httptest.Server, method, path, header, body string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Type: application/json\r\n%s\r\n%s", method, path, s.Key, header, body)
	return conn
}

func answered(t *testing.T, conn net.Conn) (int, string) {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestABodyMustComeInTime(t *testing.T) {
	t.Parallel()
	s, id := withGitea(t)
	srv := s.listening(50 * time.Millisecond)
	door := "/webhooks/githost/" + id
	for _, c := range []struct{ name, method, path, header string }{
		{"a call", "POST", "/v2/tenants", ""},
		{"a call with an Idempotency-Key", "POST", "/v2/tenants", "Idempotency-Key: k\r\n"},
		{"a delivery", "POST", door, ""},
	} {
		conn := s.begun(srv, c.method, c.path, c.header+"Content-Length: 100\r\n", "{")
		if status, text := answered(t, conn); status != 408 {
			t.Errorf("%s: %d %s, want 408", c.name, status, text)
		}
	}
}

func TestABodyThatIsCutOffIsItsSendersFault(t *testing.T) {
	t.Parallel()
	s := newStormServer(t)
	srv := s.listening(0)
	for _, c := range []struct{ name, header, body string }{
		{"cut off", "Content-Length: 100\r\n", "{"},
		{"cut off, with a key", "Idempotency-Key: c\r\nContent-Length: 100\r\n", "{"},
		{"cut off, with a key, where it might end", "Idempotency-Key: d\r\nContent-Length: 100\r\n", `{"name":"cut"}`},
		{"no chunk", "Transfer-Encoding: chunked\r\n", "zz\r\n"},
		{"half a chunk", "Transfer-Encoding: chunked\r\n", "5\r\n{"},
	} {
		conn := s.begun(srv, "POST", "/v2/tenants", c.header, c.body)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if status, text := answered(t, conn); status != 400 || !strings.Contains(text, "detail") {
			t.Errorf("%s: %d %s, want 400 with a detail", c.name, status, text)
		}
	}
}

// Nobody may keep deliveries from coming in by sending slowly.
func TestSlowDeliveriesHoldNobodyUp(t *testing.T) {
	t.Parallel()
	s, id := withGitea(t)
	srv := s.listening(time.Minute)
	door := "/webhooks/githost/" + id
	for range 20 {
		s.begun(srv, "POST", door, "Content-Length: 1000000\r\n", "{")
	}
	conn := s.begun(srv, "POST", door, "Content-Length: 2\r\nConnection: close\r\n", "{}")
	if status, text := answered(t, conn); status != 401 {
		t.Errorf("a delivery beside slow ones: %d %s, want 401 for its signature", status, text)
	}
	conn = s.begun(srv, "POST", "/webhooks/githost/01900000-0000-7000-8000-999999999999", "Content-Length: 1000000\r\n", "{")
	if status, text := answered(t, conn); status != 404 {
		t.Errorf("a delivery for nobody: %d %s, want 404 before it is read", status, text)
	}
}
