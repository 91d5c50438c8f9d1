// Package client speaks slipway's control API for the command line, remote listeners and end-to-end tests. It knows wire
// shapes only, none of the server's rules.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// requestTimeout bounds one call; uploads have none but their context.
const requestTimeout = 30 * time.Second

// Client calls one control service. It is safe for concurrent use.
type Client struct {
	base   string
	key    string
	tenant string // "" = the key's own
	http   *http.Client
}

// New returns a client of the control service at base ("http://127.0.0.1:7400"), authenticating with an API key.
func New(base, key string) *Client {
	return &Client{base: strings.TrimRight(base, "/"), key: key, http: &http.Client{}}
}

// Base returns the address of the control service without a trailing slash.
func (c *Client) Base() string { return c.base }

// Error is an answer of the server that is not a success. Its text is the server's own sentence.
type Error struct {
	Status   int       // HTTP status
	Detail   string    // the server's sentence; for a 422 all of them, joined
	Problems []Problem // of a 422
}

// Problem is one entry of a validation error (spec 7).
type Problem struct {
	Loc  []any  `json:"loc"`
	Msg  string `json:"msg"`
	Type string `json:"type"`
}

// Error returns the server's sentence.
func (e *Error) Error() string { return e.Detail }

// IsStatus says whether err is an answer with this HTTP status.
func IsStatus(err error, status int) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == status
}

// UnreachableError says that no server answered at all.
type UnreachableError struct {
	Base string
	Err  error
}

// Error names the address.
func (e *UnreachableError) Error() string { return fmt.Sprintf("no slipway answers at %s", e.Base) }

// Unwrap returns the transport's error.
func (e *UnreachableError) Unwrap() error { return e.Err }

// OK asks whether the server is there.
func (c *Client) OK(ctx context.Context) error {
	return c.do(ctx, http.MethodGet, "/ok", nil, nil, nil)
}

// keyOfRequest is the context key of WithIdempotencyKey.
type keyOfRequest struct{}

// WithIdempotencyKey marks the next request: sent again with the same key, a POST or PATCH is carried out once and answered
// the same both times (control-plane reference 1). One key is for one request.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOfRequest{}, key)
}

// versionOfListener is the context key of WithListenerVersion.
type versionOfListener struct{}

// WithListenerVersion marks calls of the listener protocol with the version of the program that listens; it becomes the
// listener's version.
func WithListenerVersion(ctx context.Context, version string) context.Context {
	return context.WithValue(ctx, versionOfListener{}, version)
}

// Info says what the server is.
type Info struct {
	Product string `json:"product"`
	Version string `json:"version"`
}

// Info asks the server what it is; it needs no credential.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var out Info
	err := c.do(ctx, http.MethodGet, "/info", nil, nil, &out)
	return out, err
}

// do sends one JSON request and decodes the answer into out, unless out is nil.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := c.request(ctx, method, path, query, in)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.transportError(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		return answerError(res)
	}
	if out == nil || res.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		return fmt.Errorf("read the answer of %s %s: %w", method, path, err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, method, path string, query url.Values, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encode the request %s %s: %w", method, path, err)
		}
		body = bytes.NewReader(raw)
	}
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, fmt.Errorf("the address %q is not usable: %w", c.base, err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("X-Api-Key", c.key)
	}
	if c.tenant != "" {
		req.Header.Set("X-Tenant-Id", c.tenant)
	}
	if key, ok := ctx.Value(keyOfRequest{}).(string); ok {
		req.Header.Set("Idempotency-Key", key)
	}
	if version, ok := ctx.Value(versionOfListener{}).(string); ok {
		req.Header.Set("Slipway-Listener-Version", version)
	}
	return req, nil
}

func (c *Client) transportError(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return &UnreachableError{Base: c.base, Err: err}
}

// answerError reads both error dialects: {"detail": "…"} and {"detail": [{loc,msg,type}]}.
func answerError(res *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	var list struct{ Detail []Problem }
	if json.Unmarshal(raw, &list) == nil && len(list.Detail) > 0 {
		return &Error{Status: res.StatusCode, Detail: sentences(list.Detail), Problems: list.Detail}
	}
	var one struct{ Detail string }
	if json.Unmarshal(raw, &one) == nil && one.Detail != "" {
		return &Error{Status: res.StatusCode, Detail: one.Detail}
	}
	return &Error{Status: res.StatusCode, Detail: fmt.Sprintf("the server answered %s", res.Status)}
}

func sentences(problems []Problem) string {
	parts := make([]string, 0, len(problems))
	for _, p := range problems {
		place := make([]string, 0, len(p.Loc))
		for _, l := range p.Loc {
			place = append(place, fmt.Sprint(l))
		}
		parts = append(parts, strings.Join(place, ".")+": "+p.Msg)
	}
	return strings.Join(parts, "; ")
}
