package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/gateway"
)

// Whatever a path looks like, the name that stands in it, literally, says where it goes.
func TestNoPathLeadsToAnotherDeployment(t *testing.T) {
	t.Parallel()
	g, server := open(t, gateway.Config{})
	g.Route("desk", "d1", "r1", upstream(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "desk") }))
	g.Route("vault", "d2", "r2", upstream(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "vault") }))
	address := strings.TrimPrefix(server.URL, "http://")
	for path, want := range map[string]string{
		"/d/desk/../vault/x": "desk", "/d/desk/%2e%2e/vault/x": "desk", "/d/desk/..%2fvault%2fx": "desk", "/d/desk//d/vault/x": "desk",
		"/d/desk/..;/vault/x": "desk", "/d/desk/%252e%252e/vault": "desk", "/d/desk?/d/vault": "desk",
		"/d/desk%2f..%2fvault/x": "404", "/d/%76ault/x": "404", "/d/desk\\..\\vault/x": "404", "/d//vault/x": "404", "/d/vault%00/x": "404",
		"/d/VAULT/x": "404", "/d/./vault/x": "404", "/x/d/vault": "404", "http://elsewhere/d/desk/x": "desk",
	} {
		status, body := talk(t, address, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if want == "404" && status != http.StatusNotFound || want != "404" && body != want {
			t.Errorf("%s: %d %q, want %s", path, status, body, want)
		}
	}
}

// A request whose length two parsers could read in two ways goes on as one request or not at all.
func TestNoRequestHidesInAnother(t *testing.T) {
	t.Parallel()
	g, server := open(t, gateway.Config{})
	seen := make(chan string, 10)
	g.Route("desk", "d1", "r1", upstream(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- fmt.Sprintf("%s %s %q te=%v for=%q", r.Method, r.URL.Path, body, r.TransferEncoding, r.Header.Get("X-Forwarded-Host"))
		w.Header().Set(gateway.RevisionHeader, "forged")
	}))
	address := strings.TrimPrefix(server.URL, "http://")
	const hidden = "GET /admin HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, request := range map[string]string{
		"two lengths":         "Content-Length: 0\r\nContent-Length: 34\r\n\r\n" + hidden,
		"an unknown encoding": "Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n" + hidden,
		"a signed length":     "Content-Length: +0\r\n\r\n" + hidden,
		"a folded header":     "X: a\r\n Transfer-Encoding: chunked\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden,
	} {
		if status, _ := talk(t, address, "POST /d/desk/x HTTP/1.1\r\nHost: x\r\n"+request); status < 400 {
			t.Errorf("%s: %d, want a refusal", name, status)
		}
	}
	both := "POST /d/desk/x HTTP/1.1\r\nHost: x\r\nConnection: close, X-Forwarded-For\r\nX-Forwarded-Host: forged\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
	if status, _ := talk(t, address, both+hidden); status != http.StatusOK {
		t.Errorf("chunks win over a length: %d, want 200", status)
	}
	close(seen)
	for request := range seen {
		if request != `POST /x "hi" te=[chunked] for="x"` {
			t.Errorf("the agent server saw %s", request)
		}
	}
}

// talk sends raw bytes and reads one answer.
func talk(t *testing.T, address, request string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.60q: %v", request, err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}
