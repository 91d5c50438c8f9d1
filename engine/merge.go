package engine

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/slipway-dev/slipway/agent"
)

type fields map[string]json.RawMessage

// parse reads a JSON object; anything else is empty.
func parse(raw json.RawMessage) fields {
	f := fields{}
	if len(raw) > 2 {
		_ = json.Unmarshal(raw, &f) // the edge has validated it; what is no object has no members
	}
	if f == nil {
		f = fields{}
	}
	return f
}

func (f fields) lay(over fields) fields {
	for k, v := range over {
		f[k] = v
	}
	return f
}

func (f fields) set(key, value string) { f[key] = quote(value) }

func (f fields) text(key string) string {
	var s string
	_ = json.Unmarshal(f[key], &s) // absent or of another type: ""
	return s
}

func (f fields) json() json.RawMessage {
	b, err := json.Marshal(f)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return b
}

func quote(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string always marshals
	return b
}

// object returns raw, or {} where there is nothing.
func object(raw json.RawMessage) json.RawMessage {
	if absent(raw) {
		return json.RawMessage(`{}`)
	}
	return raw
}

func absent(raw json.RawMessage) bool {
	t := bytes.TrimSpace(raw)
	return len(t) == 0 || string(t) == "null"
}

// reserved says whether a client may not set this metadata key (reference 1).
func reserved(key string) bool {
	if strings.HasPrefix(key, "__") {
		return true
	}
	switch key {
	case "langgraph_version", "langgraph_api_version", "langgraph_plan", "langgraph_host", "langgraph_api_url",
		"langgraph_request_id", "langgraph_auth_user", "langgraph_auth_user_id", "langgraph_auth_permissions":
		return true
	}
	return false
}

func (f fields) withoutReserved() fields {
	for k := range f {
		if reserved(k) {
			delete(f, k)
		}
	}
	return f
}

func withoutReserved(raw json.RawMessage) json.RawMessage { return parse(raw).withoutReserved().json() }

// runMetadata is assistant < thread < config.metadata < request, plus assistant_id (reference 4.2).
func runMetadata(a agent.Assistant, thread json.RawMessage, config fields, request json.RawMessage) fields {
	m := parse(a.Metadata).lay(parse(thread))
	m.lay(parse(config["metadata"]).withoutReserved()).lay(parse(request).withoutReserved())
	m.set("assistant_id", a.ID)
	return m
}

// runConfig is assistant < thread < request with configurable merged key by key and the server's own keys forced
// (reference 4.2): no assistant and no request can set those. metadata is the run's complete metadata, u whom it works for.
func runConfig(a agent.Assistant, thread json.RawMessage, request fields, r agent.Run, checkpoint fields, metadata json.RawMessage, u *agent.User) json.RawMessage {
	assistant, threadConfig := parse(a.Config), parse(thread)
	configurable := parse(assistant["configurable"]).lay(parse(threadConfig["configurable"]))
	configurable.lay(parse(request["configurable"])).withoutReserved().lay(checkpoint)
	configurable.set("run_id", r.ID)
	configurable.set("thread_id", r.ThreadID)
	configurable.set("graph_id", r.GraphID)
	configurable.set("assistant_id", r.AssistantID)
	identified(configurable, u)
	out := assistant.lay(threadConfig).lay(request)
	out["configurable"] = configurable.json()
	out["metadata"] = metadata
	return out.json()
}

// threadConfig is what the thread keeps: assistant and request settings, never a configurable. The request's would poison
// later runs, and the assistant's would win over that of another assistant that runs on the thread later.
func threadConfig(a agent.Assistant, request fields) json.RawMessage {
	out := parse(a.Config).lay(request)
	delete(out, "configurable")
	delete(out, "metadata")
	return out.json()
}

// checkpointKeys are the members of a CheckpointConfig that go into configurable.
func checkpointKeys(r RunRequest) fields {
	out := fields{}
	if r.Stateless {
		return out
	}
	in := parse(r.Checkpoint)
	for _, k := range []string{"checkpoint_id", "checkpoint_ns", "checkpoint_map"} {
		if v, ok := in[k]; ok && !absent(v) {
			out[k] = v
		}
	}
	if r.CheckpointID != "" && out["checkpoint_id"] == nil {
		out.set("checkpoint_id", r.CheckpointID)
	}
	return out
}

// mergeContext lays the request's context over the assistant's, shallowly; nil without either.
func mergeContext(a agent.Assistant, request json.RawMessage) json.RawMessage {
	base := parse(a.Context)
	if absent(request) && len(base) == 0 {
		return nil
	}
	return base.lay(parse(request)).json()
}
