package beaconapi

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/slipway-dev/slipway/beacon"
)

// attributes keeps what may be sent (spec 4.5, rule 2). Values that are no scalars never may.
func attributes(r beacon.Redactor, m pcommon.Map) {
	m.RemoveIf(func(key string, v pcommon.Value) bool {
		switch v.Type() {
		case pcommon.ValueTypeMap, pcommon.ValueTypeSlice, pcommon.ValueTypeBytes, pcommon.ValueTypeEmpty:
			return true
		case pcommon.ValueTypeStr, pcommon.ValueTypeBool, pcommon.ValueTypeDouble, pcommon.ValueTypeInt:
		}
		was := v.AsString()
		is, ok := r.Attribute(key, was)
		if ok && is != was {
			v.SetStr(is)
		}
		return !ok
	})
}

func (t traces) redact(r beacon.Redactor) int {
	for _, rs := range t.ResourceSpans().All() {
		attributes(r, rs.Resource().Attributes())
		for _, ss := range rs.ScopeSpans().All() {
			attributes(r, ss.Scope().Attributes())
			for _, s := range ss.Spans().All() {
				redactSpan(r, s)
			}
		}
	}
	return 0
}

func redactSpan(r beacon.Redactor, s ptrace.Span) {
	s.SetName(beacon.Route(s.Name()))
	s.Status().SetMessage(beacon.Message(s.Status().Message()))
	s.TraceState().FromRaw("")
	attributes(r, s.Attributes())
	for _, e := range s.Events().All() {
		e.SetName(beacon.Message(e.Name()))
		attributes(r, e.Attributes())
	}
	for _, l := range s.Links().All() {
		l.TraceState().FromRaw("")
		attributes(r, l.Attributes())
	}
}

func (m metrics) redact(r beacon.Redactor) int {
	for _, rm := range m.ResourceMetrics().All() {
		attributes(r, rm.Resource().Attributes())
		for _, sm := range rm.ScopeMetrics().All() {
			attributes(r, sm.Scope().Attributes())
		}
	}
	m.each(func(metric pmetric.Metric) {
		metric.Metadata().Clear()
		redactPoints(r, metric)
	})
	return 0
}

func redactPoints(r beacon.Redactor, m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		redactNumbers(r, m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		redactNumbers(r, m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			attributes(r, p.Attributes())
			clearExemplars(p.Exemplars())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			attributes(r, p.Attributes())
			clearExemplars(p.Exemplars())
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			attributes(r, p.Attributes())
		}
	case pmetric.MetricTypeEmpty:
	}
}

func redactNumbers(r beacon.Redactor, points pmetric.NumberDataPointSlice) {
	for _, p := range points.All() {
		attributes(r, p.Attributes())
		clearExemplars(p.Exemplars())
	}
}

// clearExemplars drops the samples of single requests that a metric may bear.
func clearExemplars(e pmetric.ExemplarSlice) {
	e.RemoveIf(func(pmetric.Exemplar) bool { return true })
}

func (l logs) redact(r beacon.Redactor) (refused int) {
	for _, rl := range l.ResourceLogs().All() {
		attributes(r, rl.Resource().Attributes())
		for _, sl := range rl.ScopeLogs().All() {
			attributes(r, sl.Scope().Attributes())
			sl.LogRecords().RemoveIf(func(record plog.LogRecord) bool {
				if !beacon.Exported(int(record.SeverityNumber())) {
					refused++
					return true
				}
				redactRecord(r, record)
				return false
			})
		}
	}
	return refused
}

func redactRecord(r beacon.Redactor, record plog.LogRecord) {
	message := ""
	if record.Body().Type() == pcommon.ValueTypeStr {
		message = beacon.Message(record.Body().Str())
	}
	record.Body().SetStr(message)
	attributes(r, record.Attributes())
}
