package beacon

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Outbox is the sending half's durable queue of billing telemetry: in order, at least once, never dropped. It is safe for
// concurrent use.
type Outbox interface {
	// Add queues transactions that are neither queued nor delivered, and returns when they are on the disk. CodeUnavailable:
	// it is full, or the disk is; nothing was queued.
	Add(ctx context.Context, list []TraceTransaction) error
	// Delivered says which of the ids the collector has taken. It forgets with a restart, which makes the next Add resend:
	// the collector counts an id once.
	Delivered(ids []string) map[string]bool
	// Forget drops what Delivered knows of ids.
	Forget(ids []string)
}

// NameID is a UUID (version 8) that a name always gives, for ids that must be the same when they are made again.
func NameID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	text := hex.EncodeToString(sum[:16])
	return fmt.Sprintf("%s-%s-%s-%s-%s", text[:8], text[8:12], text[12:16], text[16:20], text[20:])
}

// What transactions of the house say in status and transaction_type.
const (
	StatusPending  = "pending"  // never sent before
	StatusRetrying = "retrying" // sent before, without an answer that it was taken
	TypeTraces     = "traces"
)

// Attempted is the transaction as it is sent after a number of attempts that failed.
func (t TraceTransaction) Attempted(failed int64) TraceTransaction {
	t.FailedSends, t.Status = failed, StatusPending
	if failed > 0 {
		t.Status = StatusRetrying
	}
	return t
}

// Claimed is what a licence key or token says of itself; nobody has verified it. ok is false where it says nothing.
func Claimed(signed string) (kind Kind, issued, expires, licenceExpires time.Time, ok bool) {
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(signed, OnlinePrefix), OfflinePrefix), ".")
	if len(signed) > MaxKeyLength || len(parts) != 3 {
		return "", issued, expires, licenceExpires, false
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	var c claims
	if err != nil || json.Unmarshal(text, &c) != nil || c.Expires <= 0 {
		return "", issued, expires, licenceExpires, false
	}
	at := func(seconds int64) (t time.Time) {
		if seconds > 0 {
			t = time.Unix(seconds, 0).UTC()
		}
		return t
	}
	return c.Kind, at(c.Issued), at(c.Expires), at(c.LicenceExpires), true
}

// SenderStatus is how the telemetry of an installation stands. It holds no key and no token.
type SenderStatus struct {
	Mode        string        `json:"mode" doc:"online or offline"`
	Reason      string        `json:"reason" doc:"why nothing is sent; empty online"`
	URL         string        `json:"url" doc:"address of the collector"`
	Streams     StreamNames   `json:"streams" doc:"what is sent"`
	Licence     LicenceStatus `json:"license" doc:"the licence"`
	Billing     QueueStatus   `json:"billing" doc:"the queue of billing telemetry"`
	Operational QueueStatus   `json:"operational" doc:"the queue of metrics, traces and logs"`
	NextUsage   *time.Time    `json:"next_usage_snapshot" doc:"when the next usage snapshot is taken"`
}

// StreamNames is Streams as it is shown.
type StreamNames struct {
	Billing bool `json:"billing" doc:"licence verification and trace transactions"`
	Usage   bool `json:"usage" doc:"usage snapshots"`
	Logs    bool `json:"logs" doc:"log records of warning and worse"`
	Metrics bool `json:"metrics" doc:"metrics of the installation"`
	Traces  bool `json:"traces" doc:"slow and failed requests"`
}

// LicenceStatus is what an installation knows of its licence.
type LicenceStatus struct {
	Kind       Kind       `json:"kind" doc:"online or offline; empty without a key"`
	Status     string     `json:"status" doc:"none, unverified, valid, expired or refused"`
	VerifiedAt *time.Time `json:"verified_at" doc:"when the collector last verified it"`
	ExpiresAt  *time.Time `json:"expires_at" doc:"when it expires"`
	LastError  string     `json:"last_error" doc:"what went wrong last; empty after a success"`
}

// QueueStatus is how one queue stands.
type QueueStatus struct {
	Items       int64      `json:"items" doc:"items that wait"`
	Bytes       int64      `json:"bytes" doc:"their size on the disk"`
	Failed      int64      `json:"num_failed_send_attempts" doc:"failed attempts of the oldest item"`
	LastSuccess *time.Time `json:"last_success" doc:"when something was last delivered"`
	LastFailure *time.Time `json:"last_failure" doc:"when sending last failed"`
	LastError   string     `json:"last_error" doc:"what went wrong last; empty after a success"`
	NextAttempt *time.Time `json:"next_attempt" doc:"when it is tried again; null = nothing is being waited for"`
	Sent        int64      `json:"sent" doc:"items delivered since the start of the process"`
	Dropped     int64      `json:"dropped" doc:"operational items dropped for want of room, oldest first"`
	Corrupt     int64      `json:"corrupt" doc:"places on the disk that could not be read"`
	Refused     int64      `json:"refused" doc:"items the collector will never take; billing items are kept aside"`
}

// SenderRequest is one request of telemetry, as it would be sent: without credentials.
type SenderRequest struct {
	Path string          `json:"path" doc:"path below the address of the collector"`
	Body json.RawMessage `json:"body" doc:"the body, without the licence"`
}

// SenderReport tells of an installation's telemetry.
type SenderReport interface {
	Status() SenderStatus
	// Preview returns the requests that would be made now, at most limit: what is queued in its order, then what was
	// gathered since the last export. more says that there are others.
	Preview(limit int) (requests []SenderRequest, more bool, err error)
}
