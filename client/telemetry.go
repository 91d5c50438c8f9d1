package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// TelemetryStatus is how an installation's telemetry stands.
type TelemetryStatus struct {
	Mode    string `json:"mode"`   // "online" or "offline"
	Reason  string `json:"reason"` // why nothing is sent
	URL     string `json:"url"`
	Streams struct {
		Billing bool `json:"billing"`
		Usage   bool `json:"usage"`
		Logs    bool `json:"logs"`
		Metrics bool `json:"metrics"`
		Traces  bool `json:"traces"`
	} `json:"streams"`
	License struct {
		Kind       string     `json:"kind"`
		Status     string     `json:"status"`
		VerifiedAt *time.Time `json:"verified_at"`
		ExpiresAt  *time.Time `json:"expires_at"`
		LastError  string     `json:"last_error"`
	} `json:"license"`
	Billing     TelemetryQueue `json:"billing"`
	Operational TelemetryQueue `json:"operational"`
	NextUsage   *time.Time     `json:"next_usage_snapshot"`
}

// TelemetryQueue is how one of its queues stands.
type TelemetryQueue struct {
	Items       int64      `json:"items"`
	Bytes       int64      `json:"bytes"`
	Failed      int64      `json:"num_failed_send_attempts"`
	LastSuccess *time.Time `json:"last_success"`
	LastFailure *time.Time `json:"last_failure"`
	LastError   string     `json:"last_error"`
	NextAttempt *time.Time `json:"next_attempt"`
	Sent        int64      `json:"sent"`
	Dropped     int64      `json:"dropped"`
	Corrupt     int64      `json:"corrupt"`
	Refused     int64      `json:"refused"`
}

// TelemetryRequest is one request as it would be sent, without the licence.
type TelemetryRequest struct {
	Path string          `json:"path"`
	Body json.RawMessage `json:"body"`
}

// TelemetryStatus reads how the installation's telemetry stands.
func (c *Client) TelemetryStatus(ctx context.Context) (TelemetryStatus, error) {
	var out TelemetryStatus
	err := c.do(ctx, http.MethodGet, "/v2/telemetry/status", nil, nil, &out)
	return out, err
}

// TelemetryPreview reads what would be sent now, at most limit items of each queue; more says that others wait.
func (c *Client) TelemetryPreview(ctx context.Context, limit int) (list []TelemetryRequest, more bool, err error) {
	var out struct {
		Requests []TelemetryRequest `json:"requests"`
		More     bool               `json:"more"`
	}
	err = c.do(ctx, http.MethodGet, "/v2/telemetry/preview", url.Values{"limit": {strconv.Itoa(limit)}}, nil, &out)
	return out.Requests, out.More, err
}
