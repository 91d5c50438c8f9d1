package agentapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// operation is what clients are told of one call. The table of them (operations) is the source of GET /openapi.json, of
// GET /docs and of the generated tests; a route that is not in it fails a test.
type operation struct {
	method, path string
	route        string // the router's pattern where it is not method and path
	id, tag      string
	summary      string
	text         string // more than the summary says
	query        []*huma.Param
	headers      []*huma.Param
	body         *huma.Schema         // nil = none is read
	needsBody    bool                 // {} would not do
	status       int                  // of success; 0 = 200
	answer       *huma.Schema         // nil = no body
	media        string               // of the answer; "" = application/json
	further      []string             // media types that the answer may have instead
	json         *huma.Schema         // of the answer where the client may ask for JSON instead
	others       map[int]*huma.Schema // further answers by status; nil = no body
	sends        []string             // headers of the answer
	errors       []int                // beside those that every call can be answered
	open         bool                 // without authentication
}

func (o operation) pattern() string {
	if o.route != "" {
		return o.route
	}
	return o.method + " " + o.path
}

func (o operation) success() int {
	if o.status == 0 {
		return http.StatusOK
	}
	return o.status
}

// operations is the table of all calls.
func operations() []operation {
	return slices.Concat(
		assistantOperations(), threadOperations(), stateOperations(), runOperations(), statelessOperations(), cronOperations(),
		storeOperations(), uiOperations(), systemOperations(),
	)
}

// Security is what auth.openapi of the graph configuration says to clients; it is laid into the description as it is.
type Security struct {
	Schemes      json.RawMessage `json:"securitySchemes"` // object of OpenAPI's security schemes
	Requirements json.RawMessage `json:"security"`        // list of OpenAPI's security requirements
}

// describe renders the description of the operations whose routes are there, in OpenAPI 3.1.
func (a *API) describe() []byte {
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info:    &huma.Info{Title: "slipway agent server", Version: firstText(a.cfg.Version, "0"), Description: intro},
		Servers: []*huma.Server{{URL: firstText(a.cfg.MountPrefix, "/"), Description: "the agent server that serves this description"}},
		Tags:    tags(),
		Paths:   map[string]*huma.PathItem{},
	}
	used := map[string]bool{}
	for _, o := range operations() {
		if a.routed(o) {
			doc.AddOperation(o.render())
			used[o.tag] = true
		}
	}
	doc.Tags = slices.DeleteFunc(doc.Tags, func(t *huma.Tag) bool { return !used[t.Name] })
	return finish(doc, a.cfg.Security)
}

func (a *API) routed(o operation) bool { return slices.Contains(a.patterns, o.pattern()) }

func firstText(values ...string) string {
	i := slices.IndexFunc(values, func(s string) bool { return s != "" })
	if i < 0 {
		return ""
	}
	return values[i]
}

// finish adds what the framework's types cannot say and renders the document.
func finish(doc *huma.OpenAPI, s Security) []byte {
	text, err := json.Marshal(doc)
	if err != nil {
		panic(fmt.Sprintf("agentapi: render the interface description: %v", err)) // a defect of the table
	}
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		panic(fmt.Sprintf("agentapi: read the interface description: %v", err))
	}
	components := map[string]any{"schemas": reachable(whole["paths"])}
	if len(s.Schemes) > 0 {
		components["securitySchemes"] = s.Schemes
	}
	if len(s.Requirements) > 0 {
		whole["security"] = s.Requirements
	}
	whole["components"] = components
	out, err := json.MarshalIndent(whole, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("agentapi: render the interface description: %v", err))
	}
	return append(out, '\n')
}

// reachable are the named shapes that a part of the document needs.
func reachable(part any) map[string]any {
	all, found := shapes(), map[string]any{}
	var walk func(node any)
	walk = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			ref, _ := node["$ref"].(string)
			name := strings.TrimPrefix(ref, shapePrefix)
			if shape := all[name]; ref != "" && found[name] == nil {
				found[name] = plain(shape)
				walk(found[name])
			}
			for _, child := range node {
				walk(child)
			}
		case []any:
			for _, child := range node {
				walk(child)
			}
		}
	}
	walk(part)
	return found
}

func plain(s *huma.Schema) any {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("agentapi: render a shape: %v", err))
	}
	var v any
	_ = json.Unmarshal(raw, &v) // what was just written can be read
	return v
}

var pathParameter = regexp.MustCompile(`\{([a-z_]+)\}`)

func (o operation) render() *huma.Operation {
	op := &huma.Operation{
		Method: o.method, Path: o.path, OperationID: o.id, Summary: o.summary, Description: o.text, Tags: []string{o.tag},
		Responses: o.responses(),
	}
	for _, m := range pathParameter.FindAllStringSubmatch(o.path, -1) {
		op.Parameters = append(op.Parameters, pathParameterOf(m[1]))
	}
	op.Parameters = append(append(op.Parameters, o.query...), o.headers...)
	if o.body != nil {
		op.RequestBody = &huma.RequestBody{Required: o.needsBody, Content: map[string]*huma.MediaType{"application/json": {Schema: o.body}}}
	}
	if o.open {
		op.Security = []map[string][]string{}
	}
	return op
}

func (o operation) responses() map[string]*huma.Response {
	all := map[string]*huma.Response{strconv.Itoa(o.success()): o.good()}
	for _, status := range slices.Concat(o.errors, o.usual()) {
		all[strconv.Itoa(status)] = jsonResponse(errorText(status), ref("Error"))
	}
	for status, shape := range o.others {
		all[strconv.Itoa(status)] = jsonResponse(firstText(successText(status), errorText(status)), shape)
	}
	return all
}

func jsonResponse(doc string, shape *huma.Schema) *huma.Response {
	r := &huma.Response{Description: doc}
	if shape != nil {
		r.Content = map[string]*huma.MediaType{"application/json": {Schema: shape}}
	}
	return r
}

func (o operation) good() *huma.Response {
	r := &huma.Response{Description: successText(o.success())}
	if o.answer != nil {
		r.Content = map[string]*huma.MediaType{firstText(o.media, "application/json"): {Schema: o.answer}}
	}
	for _, media := range o.further {
		r.Content[media] = &huma.MediaType{Schema: o.answer}
	}
	if o.json != nil {
		r.Content["application/json"] = &huma.MediaType{Schema: o.json}
	}
	for _, name := range o.sends {
		if r.Headers == nil {
			r.Headers = map[string]*huma.Param{}
		}
		r.Headers[name] = &huma.Param{Description: headerText(name), Schema: &huma.Schema{Type: "string"}}
	}
	return r
}

// usual are the errors that every call of a kind can be answered.
func (o operation) usual() []int {
	list := []int{http.StatusInternalServerError}
	if !o.open {
		list = append(list, http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable)
	}
	if o.body != nil {
		list = append(list, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity)
	}
	if len(o.query) > 0 || strings.Contains(o.path, "_id}") {
		list = append(list, http.StatusUnprocessableEntity)
	}
	return list
}

func successText(status int) string {
	return map[int]string{
		http.StatusOK: "Done.", http.StatusAccepted: "Recorded; it has not happened yet.", http.StatusNoContent: "Done; there is nothing to tell.",
		http.StatusNotModified: "What the client has is what there is.",
	}[status]
}

func errorText(status int) string {
	return map[int]string{
		http.StatusBadRequest: "The request contradicts itself or what it is about.", http.StatusUnauthorized: "Not authenticated.",
		http.StatusForbidden: "Not authorised.", http.StatusNotFound: "It does not exist, or is hidden from the caller.",
		http.StatusConflict:              "What it is about does not allow it now.",
		http.StatusRequestEntityTooLarge: "The body is larger than HTTP_MAX_REQUEST_BODY_BYTES.",
		http.StatusUnprocessableEntity:   "A value is not valid; the text names the field, the value and the remedy.",
		http.StatusInternalServerError:   "An error of the server; what happened stands in its log.",
		http.StatusNotImplemented:        "The custom checkpointer cannot do it.",
		http.StatusServiceUnavailable:    "No worker, or no database, could answer in time; Retry-After says when to come back.",
	}[status]
}

func headerText(name string) string {
	return map[string]string{
		"Content-Location":   "Path of the run: /threads/{thread_id}/runs/{run_id}, or /runs/{run_id} of a stateless one.",
		"Location":           "Path to reconnect to, relative to the base URL.",
		"X-Pagination-Total": "With a further page the next offset + 1, else the number of results up to here.",
		"X-Pagination-Next":  "The next offset, with a further page.",
	}[name]
}

const intro = "Assistants, threads, runs, crons and a key-value store of one deployment, and the streams of its graphs. " +
	"Members of a body that are not described are ignored; null for an optional one counts as absent. Every error is {\"detail\": text}. " +
	"text/plain is read as JSON. Query booleans are 1, 0, true or false in any case; query lists are repeated keys, one JSON list, or comma-joined."

func tags() []*huma.Tag {
	return []*huma.Tag{
		{Name: "assistants", Description: "A graph with configuration, versioned."},
		{Name: "threads", Description: "A conversation: where checkpoints accumulate."},
		{Name: "state", Description: "What the checkpoints of a thread hold."},
		{Name: "runs", Description: "Executions of an assistant on a thread."},
		{Name: "stateless-runs", Description: "Executions on a thread of their own, which goes with them unless it is to be kept."},
		{Name: "crons", Description: "Runs by schedule."},
		{Name: "store", Description: "Items beyond threads."},
		{Name: "ui", Description: "Components of the application that browsers load."},
		{Name: "system", Description: "The server itself."},
	}
}
