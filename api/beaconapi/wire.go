package beaconapi

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/beacon"
)

// The walk over OTLP in protobuf: it checks a whole request against the tables below without building it. Libraries build
// messages recursively, and a few megabytes of values nested in values exhaust their stack, which ends the process; so
// nothing here goes deeper than maxDepth, and nothing is given to a library that was not walked first. Requests that need no
// change are stored as they came.

// maxDepth bounds messages within messages; a span's attribute is 6 deep.
const maxDepth = 64

// message names a row of schema.
type message int

const (
	tracesRequest message = iota
	metricsRequest
	logsRequest
	resourceSpans
	resourceMetrics
	resourceLogs
	resource
	entityRef
	scope
	scopeSpans
	scopeMetrics
	scopeLogs
	span
	spanEvent
	spanLink
	spanStatus
	metric
	gauge
	sum
	histogram
	exponential
	summary
	numberPoint
	histogramPoint
	exponentialPoint
	summaryPoint
	buckets
	quantile
	exemplar
	logRecord
	keyValue
	anyValue
	arrayValue
	keyValueList
)

// form is what a field holds.
type form int

const (
	absent form = iota // a field we do not know; skipped
	varint
	fixed64
	fixed32
	text
	blob
	id16 // 16 bytes or none
	id8  // 8 bytes or none
	many64
	manyVarint
	inner
)

type field struct {
	form form
	of   message
}

// formerScopes is the field that scopes had in early versions of OTLP; libraries still read it.
const formerScopes = 1000

// schema lists the fields of each message by number (opentelemetry-proto 1.10).
var schema = [...][]field{
	tracesRequest:   {1: {inner, resourceSpans}},
	metricsRequest:  {1: {inner, resourceMetrics}},
	logsRequest:     {1: {inner, resourceLogs}},
	resourceSpans:   {1: {inner, resource}, 2: {inner, scopeSpans}, 3: {form: text}},
	resourceMetrics: {1: {inner, resource}, 2: {inner, scopeMetrics}, 3: {form: text}},
	resourceLogs:    {1: {inner, resource}, 2: {inner, scopeLogs}, 3: {form: text}},
	resource:        {1: {inner, keyValue}, 2: {form: varint}, 3: {inner, entityRef}},
	entityRef:       {1: {form: text}, 2: {form: text}, 3: {form: text}, 4: {form: text}},
	scope:           {1: {form: text}, 2: {form: text}, 3: {inner, keyValue}, 4: {form: varint}},
	scopeSpans:      {1: {inner, scope}, 2: {inner, span}, 3: {form: text}},
	scopeMetrics:    {1: {inner, scope}, 2: {inner, metric}, 3: {form: text}},
	scopeLogs:       {1: {inner, scope}, 2: {inner, logRecord}, 3: {form: text}},
	span: {
		1: {form: id16}, 2: {form: id8}, 3: {form: text}, 4: {form: id8}, 5: {form: text}, 6: {form: varint}, 7: {form: fixed64},
		8: {form: fixed64}, 9: {inner, keyValue}, 10: {form: varint}, 11: {inner, spanEvent}, 12: {form: varint}, 13: {inner, spanLink},
		14: {form: varint}, 15: {inner, spanStatus}, 16: {form: fixed32},
	},
	spanEvent:  {1: {form: fixed64}, 2: {form: text}, 3: {inner, keyValue}, 4: {form: varint}},
	spanLink:   {1: {form: id16}, 2: {form: id8}, 3: {form: text}, 4: {inner, keyValue}, 5: {form: varint}, 6: {form: fixed32}},
	spanStatus: {2: {form: text}, 3: {form: varint}},
	metric: {
		1: {form: text}, 2: {form: text}, 3: {form: text}, 5: {inner, gauge}, 7: {inner, sum}, 9: {inner, histogram}, 10: {inner, exponential},
		11: {inner, summary}, 12: {inner, keyValue},
	},
	gauge:       {1: {inner, numberPoint}},
	sum:         {1: {inner, numberPoint}, 2: {form: varint}, 3: {form: varint}},
	histogram:   {1: {inner, histogramPoint}, 2: {form: varint}},
	exponential: {1: {inner, exponentialPoint}, 2: {form: varint}},
	summary:     {1: {inner, summaryPoint}},
	numberPoint: {
		2: {form: fixed64}, 3: {form: fixed64}, 4: {form: fixed64}, 5: {inner, exemplar}, 6: {form: fixed64}, 7: {inner, keyValue}, 8: {form: varint},
	},
	histogramPoint: {
		2: {form: fixed64}, 3: {form: fixed64}, 4: {form: fixed64}, 5: {form: fixed64}, 6: {form: many64}, 7: {form: many64}, 8: {inner, exemplar},
		9: {inner, keyValue}, 10: {form: varint}, 11: {form: fixed64}, 12: {form: fixed64},
	},
	exponentialPoint: {
		1: {inner, keyValue}, 2: {form: fixed64}, 3: {form: fixed64}, 4: {form: fixed64}, 5: {form: fixed64}, 6: {form: varint}, 7: {form: fixed64},
		8: {inner, buckets}, 9: {inner, buckets}, 10: {form: varint}, 11: {inner, exemplar}, 12: {form: fixed64}, 13: {form: fixed64}, 14: {form: fixed64},
	},
	summaryPoint: {
		2: {form: fixed64}, 3: {form: fixed64}, 4: {form: fixed64}, 5: {form: fixed64}, 6: {inner, quantile}, 7: {inner, keyValue}, 8: {form: varint},
	},
	buckets:  {1: {form: varint}, 2: {form: manyVarint}},
	quantile: {1: {form: fixed64}, 2: {form: fixed64}},
	exemplar: {2: {form: fixed64}, 3: {form: fixed64}, 4: {form: id8}, 5: {form: id16}, 6: {form: fixed64}, 7: {inner, keyValue}},
	logRecord: {
		1: {form: fixed64}, 2: {form: varint}, 3: {form: text}, 5: {inner, anyValue}, 6: {inner, keyValue}, 7: {form: varint}, 8: {form: fixed32},
		9: {form: id16}, 10: {form: id8}, 11: {form: fixed64}, 12: {form: text},
	},
	keyValue: {1: {form: text}, 2: {inner, anyValue}, 3: {form: varint}},
	anyValue: {
		1: {form: text}, 2: {form: varint}, 3: {form: varint}, 4: {form: fixed64}, 5: {inner, arrayValue}, 6: {inner, keyValueList}, 7: {form: blob},
		8: {form: varint},
	},
	arrayValue:   {1: {inner, anyValue}},
	keyValueList: {1: {inner, keyValue}},
}

// requestOf is the message that a request of a kind is.
func requestOf(kind beacon.SignalKind) message {
	switch kind {
	case beacon.Traces:
		return tracesRequest
	case beacon.Metrics:
		return metricsRequest
	case beacon.Logs:
	}
	return logsRequest
}

// walk is what a walk over a request found.
type walk struct {
	items    int  // spans, data points or log records
	nameless int  // spans without ids
	renamed  bool // a metric has a name that is to be replaced
}

// errWire is why a body is no OTLP request; its text names the message.
type errWire struct {
	at   message
	what string
}

// Error says what is wrong.
func (e errWire) Error() string { return fmt.Sprintf("%s in message %d", e.what, e.at) }

// message checks one message and everything in it.
func (w *walk) message(m message, b []byte, depth int) error {
	if depth > maxDepth {
		return errWire{m, fmt.Sprintf("values are nested more than %d deep", maxDepth)}
	}
	ids := 0
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
			return errWire{m, "a field's tag is broken"}
		}
		b = b[n:]
		value, size, err := cut(b, int(tag&7))
		if err != "" {
			return errWire{m, err}
		}
		b = b[size:]
		f := fieldOf(m, tag>>3)
		if err := w.field(m, f, int(tag&7), value, depth); err != nil {
			return err
		}
		if m == span && tag>>3 <= 2 && !zero(value) {
			ids |= int(tag >> 3) // 1 for the trace's, 2 for the span's
		}
		if m == metric && tag>>3 == 1 && beacon.MetricName(string(value)) != string(value) {
			w.renamed = true
		}
	}
	w.count(m, ids)
	return nil
}

func (w *walk) count(m message, ids int) {
	switch m {
	case span:
		w.items++
		if ids != 3 {
			w.nameless++
		}
	case numberPoint, histogramPoint, exponentialPoint, summaryPoint, logRecord:
		w.items++
	}
}

func fieldOf(m message, number uint64) field {
	fields := schema[m]
	if number < uint64(len(fields)) {
		return fields[number]
	}
	if number == formerScopes && (m == resourceSpans || m == resourceMetrics || m == resourceLogs) {
		return fields[2]
	}
	return field{}
}

// cut takes a value of a wire type from the front of b; the value of a length-delimited field is without its length.
func cut(b []byte, wire int) (value []byte, size int, err string) {
	switch wire {
	case 0:
		if _, n := binary.Uvarint(b); n > 0 {
			return b[:n], n, ""
		}
	case 1:
		if len(b) >= 8 {
			return b[:8], 8, ""
		}
	case 2:
		if length, n := binary.Uvarint(b); n > 0 && length <= uint64(len(b)-n) {
			return b[n : n+int(length)], n + int(length), ""
		}
	case 5:
		if len(b) >= 4 {
			return b[:4], 4, ""
		}
	default:
		return nil, 0, fmt.Sprintf("a field has wire type %d, which OTLP does not use", wire)
	}
	return nil, 0, "a field is cut off"
}

// field checks one value against what its field holds.
func (w *walk) field(m message, f field, wire int, value []byte, depth int) error {
	if f.form == absent {
		return nil
	}
	if !fits(f.form, wire) {
		return errWire{m, fmt.Sprintf("a field has the wrong wire type %d", wire)}
	}
	switch f.form {
	case inner:
		return w.message(f.of, value, depth+1)
	case text:
		if !utf8.Valid(value) {
			return errWire{m, "a text is not UTF-8"}
		}
	case id16, id8:
		want := 16
		if f.form == id8 {
			want = 8
		}
		if len(value) != 0 && len(value) != want {
			return errWire{m, fmt.Sprintf("an identifier has %d bytes instead of %d", len(value), want)}
		}
	case many64:
		if wire == 2 && len(value)%8 != 0 {
			return errWire{m, "a list of numbers is cut off"}
		}
	case manyVarint:
		return varints(m, wire, value)
	}
	return nil
}

func varints(m message, wire int, value []byte) error {
	for wire == 2 && len(value) > 0 {
		_, n := binary.Uvarint(value)
		if n <= 0 {
			return errWire{m, "a list of numbers is cut off"}
		}
		value = value[n:]
	}
	return nil
}

// fits says whether a field of a form may have a wire type.
func fits(f form, wire int) bool {
	switch f {
	case varint:
		return wire == 0
	case fixed64:
		return wire == 1
	case fixed32:
		return wire == 5
	case many64:
		return wire == 1 || wire == 2
	case manyVarint:
		return wire == 0 || wire == 2
	}
	return wire == 2
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
