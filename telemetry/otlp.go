package telemetry

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/beacon"
)

// The shapes of OTLP in JSON (spec 4.5): times and integers are strings, ids hexadecimal.
type (
	value struct {
		String *string `json:"stringValue,omitempty"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	dataPoint struct {
		Attributes []attribute `json:"attributes"`
		Start      string      `json:"startTimeUnixNano"`
		Time       string      `json:"timeUnixNano"`
		Double     *float64    `json:"asDouble,omitempty"`
		Int        string      `json:"asInt,omitempty"`
	}
	gauge struct {
		DataPoints []dataPoint `json:"dataPoints"`
	}
	sum struct {
		DataPoints  []dataPoint `json:"dataPoints"`
		Temporality int         `json:"aggregationTemporality"`
		Monotonic   bool        `json:"isMonotonic"`
	}
	metric struct {
		Name        string `json:"name"`
		Unit        string `json:"unit"`
		Description string `json:"description"`
		Gauge       *gauge `json:"gauge,omitempty"`
		Sum         *sum   `json:"sum,omitempty"`
	}
	status struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	span struct {
		TraceID       string      `json:"traceId"`
		SpanID        string      `json:"spanId"`
		ParentSpanID  string      `json:"parentSpanId"`
		Name          string      `json:"name"`
		Kind          int         `json:"kind"`
		Start         string      `json:"startTimeUnixNano"`
		End           string      `json:"endTimeUnixNano"`
		Attributes    []attribute `json:"attributes"`
		Events        []struct{}  `json:"events"`
		Links         []struct{}  `json:"links"`
		DroppedAttrs  int         `json:"droppedAttributesCount"`
		DroppedEvents int         `json:"droppedEventsCount"`
		DroppedLinks  int         `json:"droppedLinksCount"`
		Status        status      `json:"status"`
	}
	logRecord struct {
		Time           string      `json:"timeUnixNano"`
		SeverityNumber int         `json:"severityNumber"`
		SeverityText   string      `json:"severityText"`
		Body           value       `json:"body"`
		Attributes     []attribute `json:"attributes"`
		DroppedAttrs   int         `json:"droppedAttributesCount"`
		TraceID        string      `json:"traceId"`
		SpanID         string      `json:"spanId"`
	}
)

const cumulative = 2 // aggregationTemporality

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func text(s string) value { return value{String: &s} }

// export is a request of one kind: the list of scopes is named after it.
func export(r resource, version, list, scopes, items string, all any) map[string]any {
	return map[string]any{list: []any{map[string]any{
		"resource": r,
		scopes:     []any{map[string]any{"scope": scope{Name: "slipway", Version: version}, items: all}},
	}}}
}

// attributesOf keeps what may be sent (spec 4.5, rule 2), in the order of the keys, and counts the rest.
func attributesOf(r beacon.Redactor, all map[string]string) (kept []attribute, dropped int) {
	kept = []attribute{}
	for key, was := range all {
		if is, ok := r.Attribute(key, was); ok {
			kept = append(kept, attribute{key, text(is)})
		} else {
			dropped++
		}
	}
	slices.SortFunc(kept, func(a, b attribute) int { return strings.Compare(a.Key, b.Key) })
	return kept, dropped
}

// Metric is one number about the installation.
type Metric struct {
	Name        string
	Unit        string // "1", "seconds", "bytes"
	Description string
	Value       float64
	// Total says that it is a whole number that only grows since the process started; else it is a gauge.
	Total      bool
	Attributes map[string]string
}

// metricsOf groups measurements by their name, in order.
func metricsOf(r beacon.Redactor, list []Metric, start, now time.Time) []metric {
	var out []metric
	place := map[string]int{}
	for _, m := range list {
		if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
			continue
		}
		i, ok := place[m.Name]
		if !ok {
			i = len(out)
			place[m.Name] = i
			out = append(out, metric{Name: m.Name, Unit: m.Unit, Description: m.Description})
			if m.Total {
				out[i].Sum = &sum{Temporality: cumulative, Monotonic: true}
			} else {
				out[i].Gauge = &gauge{}
			}
		}
		p := dataPoint{Start: nanos(start), Time: nanos(now)}
		p.Attributes, _ = attributesOf(r, m.Attributes)
		if out[i].Sum != nil {
			p.Int = strconv.FormatInt(int64(m.Value), 10)
			out[i].Sum.DataPoints = append(out[i].Sum.DataPoints, p)
			continue
		}
		p.Double = &m.Value
		out[i].Gauge.DataPoints = append(out[i].Gauge.DataPoints, p)
	}
	return out
}
