package agentapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
)

func stateFields() []string {
	return []string{"values", "next", "tasks", "checkpoint", "metadata", "created_at", "parent_checkpoint", "interrupts"}
}

// getState answers GET /threads/{t}/state and …/state/{checkpoint_id} (reference 3).
func (a *API) getState(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "thread_id")
	if err != nil {
		return err
	}
	checkpoint, err := pathID(r, "checkpoint_id")
	if err != nil {
		return err
	}
	subgraphs, err := queryBool(r, "subgraphs")
	if err != nil {
		return err
	}
	q := engine.StateRequest{ThreadID: id, Checkpoint: agent.CheckpointKey{ID: checkpoint}, Subgraphs: subgraphs}
	return a.answerState(w, r, q, noEmpty(queryList(r, "select")))
}

// postStateCheckpoint answers POST /threads/{t}/state/checkpoint.
func (a *API) postStateCheckpoint(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "thread_id")
	if err != nil {
		return err
	}
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	b.required("checkpoint")
	q := engine.StateRequest{ThreadID: id, Checkpoint: b.checkpoint("checkpoint"), Subgraphs: b.boolean("subgraphs")}
	names := b.texts("select")
	if err := b.err(); err != nil {
		return err
	}
	return a.answerState(w, r, q, names)
}

func (a *API) answerState(w http.ResponseWriter, r *http.Request, q engine.StateRequest, names []string) error {
	if err := checkSelect(names); err != nil {
		return err
	}
	state, err := a.engine.State(r.Context(), q)
	if err != nil {
		return err
	}
	if state, err = selectState(state, names); err != nil {
		return err
	}
	return write(w, state)
}

// checkpoint takes a CheckpointConfig.
func (b *body) checkpoint(name string) agent.CheckpointKey {
	var k agent.CheckpointKey
	b.take(name, "an object with checkpoint_id and checkpoint_ns", &k)
	return k
}

func checkSelect(names []string) error {
	whole := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return strings.HasPrefix(s, "values.") })
	return checkNames("select", whole, append(stateFields(), "values.<key>"))
}

// selectState keeps the selected members of a ThreadState; nil keeps all, byte for byte.
func selectState(state json.RawMessage, names []string) (json.RawMessage, error) {
	if len(names) == 0 {
		return state, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(state, &all); err != nil {
		return nil, err
	}
	out := object{}
	for _, name := range stateFields() {
		switch {
		case slices.Contains(names, name):
			out = append(out, member{name, orNull(all[name])})
		case name == "values":
			if some := selectValues(all[name], names); some != nil {
				out = append(out, member{name, some})
			}
		}
	}
	return out.MarshalJSON()
}

func selectValues(values json.RawMessage, names []string) object {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(values, &all) // values that are no object have no keys
	var out object
	for _, n := range names {
		key, ok := strings.CutPrefix(n, "values.")
		if !ok {
			continue
		}
		if out == nil {
			out = object{}
		}
		if v, ok := all[key]; ok {
			out = append(out, member{key, v})
			delete(all, key) // asked for again it is there already
		}
	}
	return out
}

// updateState answers POST /threads/{t}/state.
func (a *API) updateState(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "thread_id")
	if err != nil {
		return err
	}
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	u := engine.StateUpdate{ThreadID: id, Values: b.raw("values"), AsNode: b.text("as_node"), Checkpoint: b.checkpoint("checkpoint")}
	if old := b.text("checkpoint_id"); u.Checkpoint.ID == "" {
		u.Checkpoint.ID = old
	}
	if u.Values != nil && u.Values[0] != '{' && u.Values[0] != '[' {
		b.wrong("values", "must be an object, a list or null, got %s", excerpt(u.Values))
	}
	if err := b.err(); err != nil {
		return err
	}
	answer, err := a.engine.UpdateState(r.Context(), u)
	if err != nil {
		return err
	}
	return write(w, answer)
}

// patchState answers PATCH /threads/{t}/state.
func (a *API) patchState(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "thread_id")
	if err != nil {
		return err
	}
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	b.required("metadata")
	metadata := b.object("metadata")
	if err := b.err(); err != nil {
		return err
	}
	answer, err := a.engine.PatchState(r.Context(), id, metadata)
	return orWrite(w, answer, err)
}

// getHistory answers GET /threads/{t}/history.
func (a *API) getHistory(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "thread_id")
	if err != nil {
		return err
	}
	limit, err := queryInt(r, "limit", 10, 1, 1000)
	if err != nil {
		return err
	}
	q := engine.HistoryRequest{ThreadID: id, Limit: limit, Before: query(r, "before")}
	return a.answerHistory(w, r, q, nil)
}

// postHistory answers POST /threads/{t}/history; its default limit is 1.
func (a *API) postHistory(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "thread_id")
	if err != nil {
		return err
	}
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	q := engine.HistoryRequest{
		ThreadID: id, Limit: b.integer("limit", 1, 1, 1000), Before: b.before(), Metadata: b.object("metadata"),
		Namespace: b.checkpoint("checkpoint").Namespace,
	}
	names := b.texts("select")
	if err := b.err(); err != nil {
		return err
	}
	return a.answerHistory(w, r, q, names)
}

// before is a checkpoint id, a CheckpointConfig or a config that holds one.
func (b *body) before() string {
	raw := b.raw("before")
	if raw == nil || raw[0] == '"' {
		return b.text("before")
	}
	var c struct {
		agent.CheckpointKey
		Configurable agent.CheckpointKey `json:"configurable"`
	}
	b.take("before", "a checkpoint or its id", &c)
	if c.ID == "" {
		return c.Configurable.ID
	}
	return c.ID
}

func (a *API) answerHistory(w http.ResponseWriter, r *http.Request, q engine.HistoryRequest, names []string) error {
	if err := checkSelect(names); err != nil {
		return err
	}
	states, err := a.engine.History(r.Context(), q)
	if err != nil || len(names) == 0 {
		return orWrite(w, states, err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(states, &list); err != nil {
		return slipway.Errorf(slipway.CodeInternal, "the history is no list: %w", err)
	}
	for i := range list {
		if list[i], err = selectState(list[i], names); err != nil {
			return err
		}
	}
	return write(w, list)
}

func orWrite(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	return write(w, v)
}
