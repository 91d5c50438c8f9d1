package beacon

import (
	"regexp"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// Bounds of billing telemetry.
const (
	MaxTransactions = 10_000        // transactions in one request
	MaxTraceCount   = 1_000_000_000 // traces in one transaction
	MaxWord         = 100           // characters of status and transaction_type
	MaxInterval     = 366 * 24 * time.Hour
	maxFailures     = 1_000_000_000
)

var (
	uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)
	wordForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// TraceTransaction is the number of traces of one tenant and tracing project in one interval (spec 4.5). Its ID makes it
// count once, however often it is sent.
type TraceTransaction struct {
	ID                 string    `json:"id"`
	TenantID           string    `json:"tenant_id"`
	SessionID          string    `json:"session_id"` // the tracing project
	OrganizationID     string    `json:"organization_id"`
	TraceCount         int64     `json:"trace_count"`
	StartInsertionTime time.Time `json:"start_insertion_time"` // when the first and the last of them were recorded
	EndInsertionTime   time.Time `json:"end_insertion_time"`
	StartIntervalTime  time.Time `json:"start_interval_time"` // the interval that is billed; its start decides the month
	EndIntervalTime    time.Time `json:"end_interval_time"`
	Status             string    `json:"status"`
	FailedSends        int64     `json:"num_failed_send_attempts"`
	Type               string    `json:"transaction_type"`
}

// Month is the month that a time is billed in, as in 2026-03 (UTC).
func Month(t time.Time) string { return t.UTC().Format("2006-01") }

// Normal is the transaction with one spelling of its ids and times: two that mean the same are equal.
func (t TraceTransaction) Normal() TraceTransaction {
	for _, id := range []*string{&t.ID, &t.TenantID, &t.SessionID, &t.OrganizationID} {
		*id = strings.ToLower(*id)
	}
	for _, at := range []*time.Time{&t.StartInsertionTime, &t.EndInsertionTime, &t.StartIntervalTime, &t.EndIntervalTime} {
		*at = at.UTC()
	}
	return t
}

// Validate collects what is wrong with the transaction at a place of a request; now bounds the future.
func (t TraceTransaction) Validate(problems *slipway.Problems, at []any, now time.Time) {
	place := func(field string) []any { return append(append([]any{}, at...), field) }
	for _, id := range []struct{ field, value string }{
		{"id", t.ID}, {"tenant_id", t.TenantID}, {"session_id", t.SessionID}, {"organization_id", t.OrganizationID},
	} {
		if !uuidForm.MatchString(id.value) {
			problems.Add(place(id.field), "%q is no UUID; write it as 8-4-4-4-12 hexadecimal digits", clip(id.value))
		}
	}
	count(problems, place("trace_count"), t.TraceCount, MaxTraceCount)
	count(problems, place("num_failed_send_attempts"), t.FailedSends, maxFailures)
	for _, word := range []struct{ field, value string }{{"status", t.Status}, {"transaction_type", t.Type}} {
		if word.value == "" || len(word.value) > MaxWord {
			problems.Add(place(word.field), "%q has %d characters; give 1 to %d", clip(word.value), len(word.value), MaxWord)
		}
	}
	interval(problems, place("end_interval_time"), t.StartIntervalTime, t.EndIntervalTime, now)
	interval(problems, place("end_insertion_time"), t.StartInsertionTime, t.EndInsertionTime, now)
}

func count(problems *slipway.Problems, at []any, n, most int64) {
	if n < 0 || n > most {
		problems.Add(at, "%d is out of range; give a number from 0 to %d", n, most)
	}
}

// interval checks that a time span runs forwards, is not absurdly long and has not its end in the future.
func interval(problems *slipway.Problems, at []any, from, to, now time.Time) {
	switch {
	case to.Before(from):
		problems.Add(at, "%s is before the start %s; give an end that is not before the start", stamp(to), stamp(from))
	case to.Sub(from) > MaxInterval:
		problems.Add(at, "%s is more than %d days after the start %s; send shorter intervals", stamp(to), int(MaxInterval.Hours()/24), stamp(from))
	case to.After(now.Add(24 * time.Hour)):
		problems.Add(at, "%s is in the future (here it is %s); check the clock of the sender", stamp(to), stamp(now))
	case from.Year() < 2000:
		problems.Add(at, "the interval starts at %s; check the clock of the sender", stamp(from))
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
