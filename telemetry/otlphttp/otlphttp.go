// Package otlphttp delivers operational telemetry to any backend that speaks OTLP/HTTP in protobuf.
package otlphttp

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/beacon"
)

// Config says where the backend is.
type Config struct {
	// Endpoint is the backend's base address; /v1/metrics, /v1/traces and /v1/logs are below it.
	Endpoint string
	// Headers are sent with every request, for credentials of the backend.
	Headers map[string]string
	// Now is the clock, for Retry-After headers that name a date.
	Now func() time.Time
}

const (
	timeout    = 30 * time.Second
	maxAnswer  = 64 << 10
	shownOfOne = 200 // bytes of a backend's answer that an error shows
)

// Exporter delivers to one backend; it implements beacon.Exporter and is safe for concurrent use.
type Exporter struct {
	base    string
	headers map[string]string
	now     func() time.Time
	client  *http.Client
}

var _ beacon.Exporter = (*Exporter)(nil)

// New makes an exporter. Redirects are not followed: they would carry the credentials elsewhere.
func New(c Config) (*Exporter, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is no address of an OTLP backend; give one such as https://otel.example.com:4318", c.Endpoint)
	}
	return &Exporter{
		base: strings.TrimRight(c.Endpoint, "/"), headers: maps.Clone(c.Headers), now: c.Now,
		client: &http.Client{
			Timeout:       timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Export delivers joined payloads of one kind.
func (e *Exporter) Export(ctx context.Context, kind beacon.SignalKind, payload []byte) error {
	r, err := e.request(ctx, kind, payload)
	if err != nil {
		return err
	}
	answer, err := e.client.Do(r)
	if err != nil {
		return &beacon.Delay{Err: fmt.Errorf("reach the backend: %w", err)}
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // what cannot be read is only missing in the error
	return e.outcome(answer, text)
}

func (e *Exporter) request(ctx context.Context, kind beacon.SignalKind, payload []byte) (*http.Request, error) {
	var body bytes.Buffer
	zip, err := gzip.NewWriterLevel(&body, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := zip.Write(payload); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.base+"/v1/"+string(kind), &body)
	if err != nil {
		return nil, err
	}
	for name, value := range e.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("Content-Encoding", "gzip")
	return r, nil
}

// outcome reads a backend's answer as OTLP/HTTP means it: 429, 502, 503 and 504 may go away, and so may a backend that is
// being set up (404) or has lost our credentials (401, 403), which an operator mends; what is left is final.
func (e *Exporter) outcome(answer *http.Response, text []byte) error {
	if answer.StatusCode/100 == 2 {
		return nil
	}
	err := fmt.Errorf("the backend answered %s: %s", answer.Status, clip(text))
	switch answer.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return err
	}
	return &beacon.Delay{After: e.after(answer.Header.Get("Retry-After")), Err: err}
}

// after reads a Retry-After header: seconds or a date; 0 if there is none.
func (e *Exporter) after(value string) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(max(seconds, 0), 1<<20)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(e.now()))
	}
	return 0
}

func clip(text []byte) string {
	if len(text) > shownOfOne {
		text = text[:shownOfOne]
	}
	return strings.ToValidUTF8(string(text), "?")
}
