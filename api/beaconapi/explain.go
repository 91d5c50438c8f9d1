package beaconapi

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/beacon"
)

// want is what a member of OTLP's JSON must be. A name means the same wherever it stands.
type want int

const (
	aList want = iota + 1 // of objects
	anObject
	aString
	aBool
	anInteger // a number or a string of digits
	aFloat    // a number, or NaN and Infinity as strings
	hex16     // 32 digits or none
	hex8      // 16 digits or none
	anEnum    // a number or a name
)

var wants = map[string]want{
	"resourceSpans": aList, "resourceMetrics": aList, "resourceLogs": aList, "scopeSpans": aList, "scopeMetrics": aList, "scopeLogs": aList,
	"spans": aList, "metrics": aList, "logRecords": aList, "events": aList, "links": aList, "dataPoints": aList, "attributes": aList,
	"exemplars": aList, "filteredAttributes": aList, "quantileValues": aList,
	"resource": anObject, "scope": anObject, "status": anObject, "gauge": anObject, "sum": anObject, "histogram": anObject,
	"exponentialHistogram": anObject, "summary": anObject, "body": anObject, "value": anObject, "arrayValue": anObject, "kvlistValue": anObject,
	"name": aString, "version": aString, "unit": aString, "description": aString, "key": aString, "stringValue": aString, "severityText": aString,
	"schemaUrl": aString, "traceState": aString, "message": aString,
	"boolValue": aBool, "isMonotonic": aBool,
	"timeUnixNano": anInteger, "startTimeUnixNano": anInteger, "endTimeUnixNano": anInteger, "observedTimeUnixNano": anInteger,
	"asInt": anInteger, "intValue": anInteger, "droppedAttributesCount": anInteger, "droppedEventsCount": anInteger,
	"droppedLinksCount": anInteger, "flags": anInteger,
	"asDouble": aFloat, "doubleValue": aFloat,
	"traceId": hex16, "spanId": hex8, "parentSpanId": hex8,
	"aggregationTemporality": anEnum, "kind": anEnum, "code": anEnum, "severityNumber": anEnum,
}

// explain finds out what is wrong with a JSON request that the library refused with cause, or, with no cause, whether it is
// a request of the kind at all.
func explain(kind beacon.SignalKind, body []byte, cause error) error {
	var request any
	if err := unmarshalNumbers(body, &request); err != nil {
		return &slipway.Error{Code: slipway.CodeInvalid, Problems: slipway.Problems{
			{Loc: []any{"body"}, Msg: "the body is not valid JSON: " + err.Error(), Type: "json_invalid"},
		}}
	}
	object, ok := request.(map[string]any)
	if !ok {
		return wrong("the body is not a JSON object; send an OTLP %s request", kind)
	}
	var problems slipway.Problems
	if member := map[beacon.SignalKind]string{beacon.Traces: "resourceSpans", beacon.Metrics: "resourceMetrics", beacon.Logs: "resourceLogs"}[kind]; object[member] == nil {
		problems.Missing([]any{"body", member})
	}
	inspect(&problems, []any{"body"}, object)
	if len(problems) == 0 && cause != nil {
		return wrong("the body is no OTLP %s request in JSON: %w", kind, cause)
	}
	return problems.Err()
}

// maxProblems bounds an answer.
const maxProblems = 50

func inspect(problems *slipway.Problems, at []any, v any) {
	switch v := v.(type) {
	case []any:
		for i, element := range v {
			inspect(problems, place(at, i), element)
		}
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if len(*problems) >= maxProblems {
				return
			}
			if remedy := misfit(wants[name], v[name]); remedy != "" {
				problems.Add(place(at, name), "%s is not %s", shown(v[name]), remedy)
				continue
			}
			inspect(problems, place(at, name), v[name])
		}
	}
}

func place(at []any, step any) []any { return append(slices.Clone(at), step) }

// shown is a value as it stands in an error: what it is, and itself only if it is short and no text, which may be private.
func shown(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("a text of %d characters", len(v))
	case json.Number:
		if len(v) <= 30 {
			return v.String()
		}
		return "a long number"
	case bool:
		return fmt.Sprint(v)
	case []any:
		return "a list"
	}
	return "an object"
}

// misfit says what a value should be, "" if it is that. Null counts as absent.
func misfit(w want, v any) string {
	if v == nil {
		return ""
	}
	text, isText := v.(string)
	number, isNumber := v.(json.Number)
	switch w {
	case aList:
		list, ok := v.([]any)
		if !ok {
			return "a list of objects"
		}
		for _, element := range list {
			if _, ok := element.(map[string]any); !ok {
				return "a list of objects only"
			}
		}
	case anObject:
		if _, ok := v.(map[string]any); !ok {
			return "an object"
		}
	case aString:
		if !isText {
			return "a string"
		}
	case aBool:
		if _, ok := v.(bool); !ok {
			return "true or false"
		}
	case anInteger:
		return integer(text+number.String(), isText || isNumber)
	case aFloat:
		if !isNumber && !slices.Contains([]string{"NaN", "Infinity", "-Infinity"}, text) && !json.Valid([]byte(text)) {
			return "a number"
		}
	case hex16:
		return hexadecimal(text, isText, 32)
	case hex8:
		return hexadecimal(text, isText, 16)
	case anEnum:
		if !isText && integer(number.String(), isNumber) != "" {
			return "a number of an enumeration"
		}
	}
	return ""
}

func integer(text string, ok bool) string {
	n, parsed := new(big.Int).SetString(text, 10)
	if !ok || !parsed || n.BitLen() > 64 {
		return "an integer of 64 bits, as a number or a string of digits"
	}
	return ""
}

func hexadecimal(text string, ok bool, digits int) string {
	if _, err := hex.DecodeString(text); !ok || err != nil || len(text) != 0 && len(text) != digits {
		return fmt.Sprintf("an identifier of %d hexadecimal digits", digits)
	}
	return ""
}

// unmarshalNumbers reads JSON keeping numbers as they are written.
func unmarshalNumbers(text []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("it is empty")
		}
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errExtra
	}
	return nil
}

// within is the licence that the specification's calls carry in the body (spec 5.5).
func within(body []byte) string {
	var in struct {
		License    string `json:"license"`
		LicenseKey string `json:"license_key"`
	}
	_ = json.Unmarshal(body, &in) // what is no JSON carries none
	return strings.TrimSpace(in.License + in.LicenseKey)
}
