package agentapi

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
)

// runCall is a decoded run creation: what the engine gets and what the connection does.
type runCall struct {
	request            engine.RunRequest
	cancelOnDisconnect bool
}

func streamModes() []string {
	return []string{
		"values", "messages", "messages-tuple", "tasks", "checkpoints", "updates", "events", "debug", "custom", "tools", "lifecycle",
	}
}

// runCall decodes the body of a run creation (reference 4.1); a route without thread makes a stateless run.
func (a *API) runCall(w http.ResponseWriter, r *http.Request) (runCall, error) {
	threadID, err := pathID(r, "thread_id")
	if err != nil {
		return runCall{}, err
	}
	b, err := a.body(w, r)
	if err != nil {
		return runCall{}, err
	}
	call, err := b.run(threadID)
	call.request.Config = a.configured(call.request.Config, r)
	return call, err
}

func (b *body) run(threadID string) (runCall, error) {
	b.required("assistant_id")
	q := engine.RunRequest{
		AssistantID: b.text("assistant_id"), ThreadID: threadID, Stateless: threadID == "",
		Input: b.raw("input"), Command: b.command(), Checkpoint: b.object("checkpoint"), CheckpointID: b.text("checkpoint_id"),
		Metadata: b.object("metadata"), Config: b.config(), Context: b.object("context"),
		InterruptBefore: b.nodes("interrupt_before"), InterruptAfter: b.nodes("interrupt_after"),
		StreamMode: b.enums("stream_mode", streamModes()), StreamSubgraphs: b.boolean("stream_subgraphs"),
		StreamResumable: b.boolean("stream_resumable"), FeedbackKeys: b.texts("feedback_keys"),
		Multitask:    agent.Multitask(b.enum("multitask_strategy", "enqueue", "reject", "rollback", "interrupt", "enqueue")),
		CreateThread: b.enum("if_not_exists", "reject", "create", "reject") == "create",
		Webhook:      b.webhook(),
		After:        b.after(), Durability: b.durability(), StrictResume: b.boolean("strict_resume"),
	}
	completion := b.enum("on_completion", "delete", "delete", "keep", "complete", "continue")
	q.Keep = completion == "keep" || completion == "continue"
	b.checkAddress("checkpoint", q.Checkpoint)
	call := runCall{request: q, cancelOnDisconnect: b.enum("on_disconnect", "continue", "cancel", "continue") == "cancel"}
	return call, b.err()
}

// command takes `{update, resume, goto}` (reference 4.1).
func (b *body) command() json.RawMessage {
	raw := b.object("command")
	if raw == nil {
		return nil
	}
	c, err := parseBody(raw, append(slices.Clone(b.at), "command")...)
	if err != nil {
		b.wrong("command", "must be an object, got %s", excerpt(raw))
		return nil
	}
	if u := c.raw("update"); u != nil && u[0] != '{' && !pairs(u) {
		c.wrong("update", "must be an object or a list of pairs of name and value, got %s", excerpt(u))
	}
	if g := c.raw("goto"); g != nil {
		c.checkGoto(g)
	}
	b.problems = append(b.problems, c.problems...)
	return raw
}

// pairs says whether raw is a list of [name, value].
func pairs(raw json.RawMessage) bool {
	var list [][]json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return false
	}
	return !slices.ContainsFunc(list, func(p []json.RawMessage) bool { return len(p) != 2 || p[0][0] != '"' })
}

// checkGoto takes a node's name, a Send or a list of them.
func (b *body) checkGoto(raw json.RawMessage) {
	targets := []json.RawMessage{raw}
	if raw[0] == '[' {
		_ = json.Unmarshal(raw, &targets) // it is valid JSON
	}
	for _, target := range targets {
		var send struct{ Node *string }
		switch {
		case len(target) > 0 && target[0] == '"':
		case json.Unmarshal(target, &send) != nil || send.Node == nil:
			b.wrong("goto", "must be a node's name, a Send {node, input} or a list of them, got %s", excerpt(target))
		}
	}
}

// maxWebhook is the longest address a run may name (reference 4.1).
const maxWebhook = 65536

// webhook takes an address; what it may be is the engine's to say.
func (b *body) webhook() string {
	address := b.optional("webhook")
	if address == nil {
		return ""
	}
	if n := len(*address); n == 0 || n > maxWebhook {
		b.wrong("webhook", "must be an address of 1 to %d characters, got %d: %q", maxWebhook, n, excerpt([]byte(*address)))
	}
	return *address
}

// config takes the run's config; langsmith_tracer is laid into it.
func (b *body) config() json.RawMessage {
	raw := b.object("config")
	if raw != nil {
		b.checkConfig(raw)
	}
	if tracer := b.tracer(); tracer != nil && b.err() == nil {
		return withTracer(raw, tracer)
	}
	return raw
}

// tracer takes langsmith_tracer: {project_name, example_id}.
func (b *body) tracer() json.RawMessage {
	raw := b.object("langsmith_tracer")
	if raw == nil {
		return nil
	}
	t, err := parseBody(raw, append(slices.Clone(b.at), "langsmith_tracer")...)
	if err != nil {
		return nil // it is an object
	}
	t.text("project_name")
	t.text("example_id")
	b.problems = append(b.problems, t.problems...)
	return raw
}

func (b *body) checkConfig(raw json.RawMessage) {
	c, err := parseBody(raw, append(slices.Clone(b.at), "config")...)
	if err != nil {
		b.wrong("config", "must be an object, got %s", excerpt(raw))
		return
	}
	c.list("tags")
	c.integer("recursion_limit", 1, 1, math.MaxInt32)
	c.checkAddress("configurable", c.object("configurable"))
	c.object("metadata")
	c.text("run_name")
	c.integer("max_concurrency", 0, 1, math.MaxInt32)
	b.problems = append(b.problems, c.problems...)
}

// checkAddress checks the members of an object that address a checkpoint: a saver would stumble over another type.
func (b *body) checkAddress(name string, raw json.RawMessage) {
	if raw == nil {
		return
	}
	c, err := parseBody(raw, append(slices.Clone(b.at), name)...)
	if err != nil {
		return // whoever took the object has said so
	}
	c.text("checkpoint_id")
	c.text("checkpoint_ns")
	c.object("checkpoint_map")
	b.problems = append(b.problems, c.problems...)
}

// withTracer sets the extra trace destination (reference 4.1); both arguments are objects or nil.
func withTracer(config, tracer json.RawMessage) json.RawMessage {
	var t struct {
		Project string `json:"project_name"`
		Example string `json:"example_id"`
	}
	all, configurable := map[string]json.RawMessage{}, map[string]any{}
	_ = json.Unmarshal(tracer, &t)
	_ = json.Unmarshal(orEmpty(config), &all)
	keep := map[string]json.RawMessage{}
	_ = json.Unmarshal(orEmpty(all["configurable"]), &keep)
	for k, v := range keep {
		configurable[k] = v
	}
	if t.Project != "" {
		configurable["langsmith_project"] = t.Project
	}
	if t.Example != "" {
		configurable["langsmith_example_id"] = t.Example
	}
	all["configurable"], _ = encode(configurable)
	raw, _ := encode(all)
	return raw
}

// nodes takes "*" or a list of node names.
func (b *body) nodes(name string) json.RawMessage {
	raw := b.raw(name)
	switch {
	case raw == nil:
		return nil
	case raw[0] == '"':
		if s := b.text(name); s != "*" {
			b.wrong(name, `must be "*" or a list of node names, got %q`, s)
		}
	default:
		b.list(name)
	}
	return raw
}

// after takes after_seconds.
func (b *body) after() time.Duration {
	var f float64
	if !b.take("after_seconds", "a number of seconds", &f) {
		return 0
	}
	if f < 0 || f > 1e9 {
		b.wrong("after_seconds", "must be a number of seconds from 0 to 1000000000, got %v", f)
		return 0
	}
	return time.Duration(f * float64(time.Second))
}

// durability also reads the deprecated checkpoint_during.
func (b *body) durability() string {
	d := b.enum("durability", "", "sync", "async", "exit")
	during := b.boolean("checkpoint_during")
	if d != "" || b.raw("checkpoint_during") == nil {
		return d
	}
	if during {
		return "async"
	}
	return "exit"
}

// batch decodes the body of POST /runs/batch.
func (a *API) batch(w http.ResponseWriter, r *http.Request) ([]runCall, error) {
	raw, err := a.read(w, r)
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, slipway.Errorf(slipway.CodeInvalid, "the request body must be a list of at least one run creation")
	}
	if len(list) > maxNamed { // they are written in one transaction
		return nil, slipway.Errorf(slipway.CodeInvalid, "the request body has %d run creations; give at most %d and repeat the call for the others", len(list), maxNamed)
	}
	calls := make([]runCall, 0, len(list))
	for i, one := range list {
		b, err := parseBody(one, "body", i)
		if err != nil {
			return nil, err
		}
		call, err := b.run("")
		if err != nil {
			return nil, err
		}
		call.request.Config = a.configured(call.request.Config, r)
		calls = append(calls, call)
	}
	return calls, nil
}
