package beaconapi

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway/api/problem"
	"github.com/slipway-dev/slipway/beacon"
)

const protobufType = "application/x-protobuf"

// signals registers the calls of operational telemetry. Any OpenTelemetry exporter reaches them with the endpoint
// {telemetry_url}/v1/beacon and the header X-License-Key.
func (a *api) signals(mux *http.ServeMux) {
	for _, kind := range beacon.SignalKinds() {
		op := operation("export_"+string(kind), "/v1/beacon/v1/"+string(kind), "Receive "+string(kind)+" as OTLP")
		op.Description = "Standard OTLP/HTTP in JSON or protobuf, and the shapes of the specification. The licence comes in X-License-Key " +
			"or Authorization: Bearer (a key, or a token of verify), or in JSON as a member license or license_key beside the telemetry."
		op.Security = []map[string][]string{{"Licence": {}}, {"Bearer": {}}, {}}
		describeSignals(a.huma, &op, kind)
		mux.HandleFunc("POST "+op.Path, func(w http.ResponseWriter, r *http.Request) { a.export(w, r, kind) })
	}
}

// describeSignals puts a call that the framework does not serve into the description.
func describeSignals(h huma.API, op *huma.Operation, kind beacon.SignalKind) {
	member := map[beacon.SignalKind]string{beacon.Traces: "resourceSpans", beacon.Metrics: "resourceMetrics", beacon.Logs: "resourceLogs"}[kind]
	object := &huma.Schema{Type: "object", AdditionalProperties: true}
	binary := &huma.MediaType{Schema: &huma.Schema{Type: "string", Format: "binary"}}
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: &huma.Schema{Type: "object", Required: []string{member}, Properties: map[string]*huma.Schema{
			member: {Type: "array", Items: object}, "license": {Type: "string"}, "license_key": {Type: "string"},
		}}},
		protobufType: binary,
	}}
	op.Responses = map[string]*huma.Response{"200": {Description: "Everything, or what partialSuccess does not name, was accepted.", Content: map[string]*huma.MediaType{
		"application/json": {Schema: &huma.Schema{Type: "object", Properties: map[string]*huma.Schema{"partialSuccess": object}}},
		protobufType:       binary,
	}}}
	h.OpenAPI().AddOperation(op)
}

// export answers POST /v1/beacon/v1/{metrics,traces,logs} (spec 4.5).
func (a *api) export(w http.ResponseWriter, r *http.Request, kind beacon.SignalKind) {
	got, err := a.receive(r, kind)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	if isProtobuf(r) {
		w.Header().Set("Content-Type", protobufType)
		_, _ = w.Write(got.protobuf()) // the client is gone if this fails
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(got.json(kind)) // the client is gone if this fails
}

func (a *api) receive(r *http.Request, kind beacon.SignalKind) (accepted, error) {
	asJSON, err := isJSON(r)
	if err != nil {
		return accepted{}, err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return accepted{}, broken(err)
	}
	credential := presented(r)
	if credential == "" && asJSON {
		credential = within(body)
	}
	caller, err := a.svc.Identify(credential)
	if err != nil {
		return accepted{}, err
	}
	decode := decodeProtobuf
	if asJSON {
		decode = decodeJSON
	}
	got, err := decode(kind, body, a.cfg.Enforce)
	if err != nil || got.items+got.refused == 0 {
		return got, err
	}
	return got, a.svc.AddSignals(r.Context(), caller, beacon.Signals{Kind: kind, Items: got.items, Payload: got.payload}, got.refused)
}

// presented is the credential in a request's headers.
func presented(r *http.Request) string {
	if key := strings.TrimSpace(r.Header.Get("X-License-Key")); key != "" {
		return key
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	return ""
}

func mediaType(r *http.Request) string {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return r.Header.Get("Content-Type")
	}
	return media
}

func isProtobuf(r *http.Request) bool { return mediaType(r) == protobufType }

// isJSON says how a body is to be read. Without a type it is JSON; curl's type for everything is too.
func isJSON(r *http.Request) (bool, error) {
	switch media := mediaType(r); media {
	case protobufType:
		return false, nil
	case "", "application/json", "application/x-www-form-urlencoded":
		return true, nil
	default:
		return false, &problem.Answer{
			Status: http.StatusUnsupportedMediaType,
			Text:   "Content-Type " + short(media) + " is not one this call reads; send application/json or " + protobufType,
		}
	}
}

// refusedMember is what OTLP calls the number of refused items of a kind.
func refusedMember(kind beacon.SignalKind) string {
	switch kind {
	case beacon.Traces:
		return "rejectedSpans"
	case beacon.Metrics:
		return "rejectedDataPoints"
	case beacon.Logs:
	}
	return "rejectedLogRecords"
}

// json is the answer to a request in JSON.
func (a accepted) json(kind beacon.SignalKind) []byte {
	if a.refused == 0 {
		return []byte("{}")
	}
	text, _ := json.Marshal(map[string]any{"partialSuccess": map[string]any{refusedMember(kind): a.refused, "errorMessage": a.why}}) // always marshals
	return text
}

// protobuf is the answer to a request in protobuf: partial_success is field 1, in it the number 1 and the message 2.
func (a accepted) protobuf() []byte {
	if a.refused == 0 {
		return nil
	}
	partial := binary.AppendUvarint([]byte{1 << 3}, uint64(a.refused))
	return appendBytes(nil, 1, appendBytes(partial, 2, []byte(a.why)))
}

// statusMessage is an error as OTLP answers it in protobuf: a google.rpc.Status with the text in field 2.
func statusMessage(answer *problem.Answer) []byte {
	text := answer.Text
	if len(answer.Details) > 0 {
		text = answer.Details[0].Msg
	}
	return appendBytes(nil, 2, []byte(text))
}

func appendBytes(to []byte, field byte, value []byte) []byte {
	to = binary.AppendUvarint(append(to, field<<3|2), uint64(len(value)))
	return append(to, value...)
}
