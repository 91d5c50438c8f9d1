// Package rest is the small HTTP client that the adapters of git hosts share: bounded in time and size, patient with limits
// on the rate of requests, and careful that a credential reaches its host only.
package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// Bounds of one call.
const (
	callLimit   = 10 * time.Second
	answerLimit = 8 << 20         // bytes
	patience    = 3 * time.Second // how long a host may let a call wait before it is given up for now
	attempts    = 3
)

// Client calls the API of one git host. It is safe for concurrent use.
type Client struct {
	// Base is the address of the API without a trailing slash.
	Base string
	// Authorize adds the credential to a request.
	Authorize func(ctx context.Context, r *http.Request) error
	// Header is sent with every request.
	Header map[string]string

	http *http.Client
}

// New returns a client.
func New(base string, header map[string]string, authorize func(context.Context, *http.Request) error) *Client {
	return &Client{Base: base, Authorize: authorize, Header: header, http: &http.Client{Timeout: callLimit, CheckRedirect: stay}}
}

// stay follows redirects on the same host only: a token is for nobody else.
func stay(r *http.Request, via []*http.Request) error {
	if from := via[0].URL; len(via) > 5 || r.URL.Scheme != from.Scheme || r.URL.Host != from.Host {
		return errElsewhere
	}
	return nil
}

var errElsewhere = errors.New("it redirects to another host")

// Call sends a request with in as its JSON body, nil for none, and decodes the answer into out unless that is nil. It
// returns the answer's header. Errors bear the codes that slipway.GitHost promises.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) (http.Header, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, fmt.Errorf("encode the request %s %s: %w", method, path, err)
		}
	}
	raw, header, err := c.persist(ctx, method, path, body)
	if err != nil || out == nil {
		return header, err
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, slipway.Errorf(slipway.CodeUnavailable, "%s answers %s with something else than its API does: check its address", c.Base, path)
	}
	return header, nil
}

// Raw sends a request without a body and returns the answer's.
func (c *Client) Raw(ctx context.Context, method, path string) ([]byte, error) {
	raw, _, err := c.persist(ctx, method, path, nil)
	return raw, err
}

// persist tries again what failed for a moment only.
func (c *Client) persist(ctx context.Context, method, path string, body []byte) ([]byte, http.Header, error) {
	for attempt := 1; ; attempt++ {
		raw, res, err := c.once(ctx, method, path, body) //nolint:bodyclose // once has read and closed it
		if err != nil {
			return nil, nil, err
		}
		if res.StatusCode < 300 {
			return raw, res.Header, nil
		}
		pause, again := retry(res, attempt)
		if !again {
			return raw, res.Header, c.refusal(res, raw)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, nil, ctx.Err()
		case <-timer.C:
		}
	}
}

func (c *Client) once(ctx context.Context, method, path string, body []byte) ([]byte, *http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.Base+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	for name, value := range c.Header {
		r.Header.Set(name, value)
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.Authorize != nil {
		if err := c.Authorize(ctx, r); err != nil {
			return nil, nil, err
		}
	}
	res, err := c.http.Do(r)
	if err != nil {
		return nil, nil, c.unreachable(ctx, err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, answerLimit+1))
	if err != nil {
		return nil, nil, c.unreachable(ctx, err)
	}
	if len(raw) > answerLimit {
		return nil, nil, slipway.Errorf(slipway.CodeUnavailable, "%s answers with more than %d MiB", c.Base, answerLimit>>20)
	}
	return raw, res, nil
}

func (c *Client) unreachable(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return slipway.Errorf(slipway.CodeUnavailable, "the git host %s cannot be reached: %w", c.Base, err)
}

// limited says whether the host refuses for the rate of requests, and how long it wants to be left alone.
func limited(res *http.Response) (time.Duration, bool) {
	after, hasAfter := seconds(res.Header.Get("Retry-After"))
	left := firstOf(res.Header, "X-Ratelimit-Remaining", "Ratelimit-Remaining")
	if res.StatusCode != http.StatusTooManyRequests && (res.StatusCode != http.StatusForbidden || !hasAfter && left != "0") {
		return 0, false
	}
	if reset, ok := seconds(firstOf(res.Header, "X-Ratelimit-Reset", "Ratelimit-Reset")); ok && !hasAfter {
		if date, err := http.ParseTime(res.Header.Get("Date")); err == nil {
			after = time.Until(time.Unix(int64(reset/time.Second), 0)) + time.Since(date)
		} else {
			after = patience + time.Second
		}
	}
	return max(after, time.Second), true
}

func firstOf(h http.Header, names ...string) string {
	for _, name := range names {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}

func seconds(text string) (time.Duration, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return time.Duration(n) * time.Second, err == nil && n >= 0 && n < 1<<33
}

func retry(res *http.Response, attempt int) (time.Duration, bool) {
	if attempt >= attempts {
		return 0, false
	}
	if pause, ok := limited(res); ok {
		return pause, pause <= patience
	}
	safe := res.Request.Method == http.MethodGet && res.StatusCode >= 500
	return time.Duration(attempt) * 100 * time.Millisecond, safe
}

// refusal maps an answer that is no success.
func (c *Client) refusal(res *http.Response, raw []byte) error {
	said := message(raw)
	if pause, ok := limited(res); ok {
		return slipway.Errorf(slipway.CodeUnavailable, "%s takes no more requests for %s: try again then", c.Base, pause.Round(time.Second))
	}
	switch code := res.StatusCode; {
	case code == http.StatusUnauthorized:
		return slipway.Errorf(slipway.CodeBadRequest, "%s does not take the integration's credentials%s: make the integration again with valid ones", c.Base, said)
	case code == http.StatusForbidden:
		return slipway.Errorf(slipway.CodeBadRequest, "%s does not allow this with the integration's credentials%s: give them the rights it needs", c.Base, said)
	case code == http.StatusNotFound || code == http.StatusGone:
		return slipway.Errorf(slipway.CodeNotFound, "%s has no such thing, or does not show it to this integration%s", c.Base, said)
	case code >= 500:
		return slipway.Errorf(slipway.CodeUnavailable, "%s has trouble of its own (%d)%s: try again later", c.Base, code, said)
	}
	return slipway.Errorf(slipway.CodeBadRequest, "%s refuses the request (%d)%s", c.Base, res.StatusCode, said)
}

// message is what a host says about its refusal, in one bounded line.
func message(raw []byte) string {
	var said struct{ Message any }
	if json.Unmarshal(raw, &said) != nil || said.Message == nil {
		return ""
	}
	text := strings.Join(strings.Fields(fmt.Sprint(said.Message)), " ")
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
