package telemetry

import (
	"bytes"
	"compress/gzip"
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
)

const (
	requestTimeout = 30 * time.Second
	maxAnswer      = 64 << 10
	shownOfAnswer  = 200     // bytes of an answer that an error shows
	zipFrom        = 1 << 10 // bytes from which on a body is compressed
	maxRetryAfter  = time.Hour
)

// collector is the other end.
type collector struct {
	base   string
	client *http.Client
	now    func() time.Time
}

func newCollector(base string, now func() time.Time) (collector, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return collector{}, fmt.Errorf("%q is no address of a collector; give one such as https://telemetry.example.com", base)
	}
	return collector{
		base: strings.TrimRight(base, "/"), now: now,
		client: &http.Client{ // redirects are not followed: they would carry the licence elsewhere
			Timeout:       requestTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// failure is an answer that is no success, or none at all.
type failure struct {
	status int           // 0 = no answer
	after  time.Duration // what the collector asked for; 0 = it did not say
	// invalid says that the collector looked at the items and will never take them as they are.
	invalid bool
	text    string
}

// Error says what went wrong.
func (f *failure) Error() string {
	if f.status == 0 {
		return "the collector cannot be reached: " + f.text
	}
	return fmt.Sprintf("the collector answered %d: %s", f.status, f.text)
}

// statusOf is the HTTP status of a failure, 0 without one.
func statusOf(err error) int {
	var f *failure
	if errors.As(err, &f) {
		return f.status
	}
	return 0
}

// get reads a small document.
func (c collector) get(ctx context.Context, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	return c.do(r)
}

// post sends JSON; credential, where it is not in the body, goes into a header.
func (c collector) post(ctx context.Context, path string, body []byte, credential string) ([]byte, error) {
	zipped := len(body) >= zipFrom
	if zipped {
		var err error
		if body, err = compress(body); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if zipped {
		r.Header.Set("Content-Encoding", "gzip")
	}
	if credential != "" {
		r.Header.Set("X-License-Key", credential)
	}
	return c.do(r)
}

func compress(body []byte) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, err := zip.Write(body)
	if err = errors.Join(err, zip.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (c collector) do(r *http.Request) ([]byte, error) {
	answer, err := c.client.Do(r)
	if err != nil {
		var where *url.Error
		if errors.As(err, &where) {
			err = where.Err // without the address
		}
		return nil, &failure{text: err.Error()}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode/100 == 2 {
		if err != nil {
			return nil, &failure{text: err.Error()} // cut off: nobody knows what it said
		}
		return text, nil
	}
	return nil, &failure{
		status: answer.StatusCode, after: c.after(answer.Header.Get("Retry-After")), text: clip(text),
		invalid: answer.StatusCode == http.StatusUnprocessableEntity && namesProblems(text),
	}
}

// namesProblems says whether a 422 is the collector's own (spec 7) and not that of something in between.
func namesProblems(text []byte) bool {
	var body struct {
		Detail []struct {
			Loc []any `json:"loc"`
		} `json:"detail"`
	}
	return json.Unmarshal(text, &body) == nil && len(body.Detail) > 0
}

// after reads a Retry-After header: seconds or a date; 0 if there is none.
func (c collector) after(value string) time.Duration {
	wait := time.Duration(0)
	if seconds, err := strconv.Atoi(value); err == nil {
		wait = time.Duration(min(max(seconds, 0), 1<<20)) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = max(0, at.Sub(c.now()))
	}
	return min(wait, maxRetryAfter)
}

func clip(text []byte) string {
	if len(text) > shownOfAnswer {
		text = text[:shownOfAnswer]
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(text)), "?")
}
