package otlphttp_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/beacon"
	"github.com/slipway-dev/slipway/telemetry/otlphttp"
)

func TestOutcomes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		status int
		after  string
		final  bool
		delay  time.Duration
	}{
		{status: 200}, {status: 202},
		{status: 400, final: true}, {status: 413, final: true}, {status: 415, final: true}, {status: 422, final: true},
		{status: 401}, {status: 404}, {status: 500}, {status: 503, after: "7", delay: 7 * time.Second}, {status: 302},
		{status: 429, after: now.Add(time.Minute).Format(http.TimeFormat), delay: time.Minute}, {status: 429, after: "-3"}, {status: 429, after: "soon"},
	} {
		backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body, _ := io.ReadAll(z)
			if r.URL.Path != "/base/v1/traces" || string(body) != "payload" || r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("Api-Key") != "secret" {
				t.Errorf("request %s %q %v", r.URL, body, r.Header)
			}
			w.Header().Set("Retry-After", test.after)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(test.status)
		}))
		e, err := otlphttp.New(otlphttp.Config{Endpoint: backend.URL + "/base/", Headers: map[string]string{"Api-Key": "secret"}, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		err = e.Export(t.Context(), beacon.Traces, []byte("payload"))
		var delay *beacon.Delay
		switch later := errors.As(err, &delay); {
		case test.status/100 == 2:
			if err != nil {
				t.Errorf("%d: %v", test.status, err)
			}
		case err == nil || later == test.final:
			t.Errorf("%d: %v, want final=%v", test.status, err, test.final)
		case later && delay.After != test.delay:
			t.Errorf("%d: again after %v, want %v", test.status, delay.After, test.delay)
		}
		backend.Close()
		if err := e.Export(t.Context(), beacon.Traces, nil); !errors.As(err, &delay) {
			t.Errorf("a backend that is gone: %v", err)
		}
	}
}

func TestAnAddressThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"", "localhost:4318", "ftp://x", "http://", "http://x?y=1"} {
		if _, err := otlphttp.New(otlphttp.Config{Endpoint: endpoint}); err == nil {
			t.Errorf("%q is taken", endpoint)
		}
	}
}
