package agentapi

import (
	"net/http"
	"slices"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
)

func showThread(t agent.Thread) object {
	return object{
		{"thread_id", t.ID}, {"created_at", stamp(t.CreatedAt)}, {"updated_at", stamp(t.UpdatedAt)},
		{"state_updated_at", stamp(t.StateUpdatedAt)}, {"metadata", orEmpty(t.Metadata)}, {"config", orEmpty(t.Config)},
		{"status", t.Status}, {"values", orNull(t.Values)}, {"interrupts", orEmpty(t.Interrupts)}, {"error", t.Error},
	}
}

func threadFields() []string {
	return []string{
		"thread_id", "created_at", "updated_at", "state_updated_at", "metadata", "config", "status", "values", "interrupts",
	}
}

// createThread answers POST /threads (reference 3).
func (a *API) createThread(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	t := agent.Thread{ID: b.uuid("thread_id"), Metadata: b.object("metadata"), TTL: b.ttl()}
	reuse := b.enum("if_exists", "raise", "raise", "do_nothing") == "do_nothing"
	steps := b.supersteps()
	if err := b.err(); err != nil {
		return err
	}
	if len(steps) > 0 {
		t, err = a.engine.CreateThreadWith(r.Context(), t, reuse, steps)
	} else {
		t, err = a.engine.CreateThread(r.Context(), t, reuse)
	}
	if err != nil {
		return err
	}
	return write(w, showThread(t))
}

// ttl takes {strategy, ttl}, or a bare number of minutes (reference 3).
func (b *body) ttl() *agent.TTL {
	raw := b.raw("ttl")
	if raw == nil {
		return nil
	}
	ttl := agent.TTL{Strategy: agent.TTLDelete}
	minutes := b
	if raw[0] == '{' {
		inner, err := parseBody(raw, append(slices.Clone(b.at), "ttl")...)
		if err != nil {
			b.wrong("ttl", "must be an object or a number of minutes, got %s", excerpt(raw))
			return nil
		}
		inner.required("ttl")
		ttl.Strategy = agent.TTLStrategy(inner.enum("strategy", string(agent.TTLDelete), string(agent.TTLDelete), string(agent.TTLKeepLatest)))
		minutes = inner
	}
	if n := minutes.minutes("ttl"); n != nil {
		ttl.Minutes = *n
	}
	if minutes != b {
		b.problems = append(b.problems, minutes.problems...)
	}
	return &ttl
}

// supersteps takes [{updates: [{values, command, as_node}]}].
func (b *body) supersteps() [][]engine.NodeUpdate {
	var list []struct{ Updates []engine.NodeUpdate }
	if !b.take("supersteps", "a list of {updates: [{values, command, as_node}]}", &list) {
		return nil
	}
	steps := make([][]engine.NodeUpdate, 0, len(list))
	for i, step := range list {
		if len(step.Updates) == 0 {
			b.wrong("supersteps", "step %d has no updates", i)
		}
		for j, u := range step.Updates {
			if u.AsNode == "" {
				b.wrong("supersteps", "update %d of step %d names no as_node", j, i)
			}
		}
		steps = append(steps, step.Updates)
	}
	return steps
}

func (a *API) getThread(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "thread_id")
	if err != nil {
		return err
	}
	include := noEmpty(queryList(r, "include"))
	if err := checkNames("query.include", include, []string{"ttl"}); err != nil {
		return err
	}
	t, err := a.engine.Thread(r.Context(), id)
	if err != nil {
		return err
	}
	shown := showThread(t)
	if len(include) > 0 {
		shown = append(shown, member{"ttl", showTTL(t.TTL)})
	}
	return write(w, shown)
}

func showTTL(t *agent.TTL) any {
	if t == nil {
		return nil
	}
	return object{{"strategy", t.Strategy}, {"ttl_minutes", t.Minutes}, {"expires_at", stamp(t.ExpiresAt)}}
}

func (a *API) patchThread(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "thread_id")
	if err != nil {
		return err
	}
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	metadata, ttl := b.object("metadata"), b.ttl()
	if err := b.err(); err != nil {
		return err
	}
	t, err := a.engine.PatchThread(r.Context(), id, metadata, ttl)
	if err != nil {
		return err
	}
	if r.Header.Get("Prefer") == "return=minimal" {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return write(w, showThread(t))
}

func (a *API) deleteThread(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "thread_id")
	if err != nil {
		return err
	}
	if err := a.engine.DeleteThread(r.Context(), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) copyThread(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "thread_id")
	if err != nil {
		return err
	}
	t, err := a.engine.CopyThread(r.Context(), id)
	if err != nil {
		return err
	}
	return write(w, showThread(t))
}

func threadQuery(b *body) agent.ThreadQuery {
	return agent.ThreadQuery{
		Metadata: b.object("metadata"), Values: b.object("values"),
		Status: agent.ThreadStatus(b.enum("status", "", "idle", "busy", "interrupted", "error")),
	}
}

// searchThreads answers POST /threads/search (reference 3).
func (a *API) searchThreads(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	q, limit := threadQuery(b), b.integer("limit", 10, 1, 1000)
	q.Limit, q.Offset = limit+1, b.integer("offset", 0, 0, 1<<31)
	q.SortBy = b.enum("sort_by", "updated_at", "thread_id", "status", "created_at", "updated_at", "state_updated_at")
	q.Ascending = b.enum("sort_order", "desc", "asc", "desc") == "asc"
	q.IDs = b.uuids("ids")
	names := b.enums("select", threadFields())
	extracts := b.extracts()
	if err := b.err(); err != nil {
		return err
	}
	list, err := a.engine.Threads(r.Context(), q)
	if err != nil {
		return err
	}
	list = paginate(w, list, limit, q.Offset)
	return write(w, collect(list, func(t agent.Thread) object {
		shown := showThread(t).only(names)
		if extracts != nil {
			shown = append(shown, member{"extracted", extracted(t, extracts)})
		}
		return shown
	}))
}

// maxNamed bounds how many things one request may name or make: each costs a look into the database, or a row.
const maxNamed = 1000

// uuids takes a list of ids, each once.
func (b *body) uuids(name string) []string {
	list := b.list(name)
	if len(list) > maxNamed {
		b.wrong(name, "has %d ids; give at most %d and repeat the call for the others", len(list), maxNamed)
		return nil
	}
	for i, s := range list {
		id, ok := parseUUID(s)
		if !ok {
			b.wrong(name, "must hold UUIDs, got %q", s)
		}
		list[i] = id
	}
	return unique(list)
}

// unique is the list without repetitions, in its order; nil stays nil.
func unique(list []string) []string {
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

func (a *API) countThreads(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	q := threadQuery(b)
	if err := b.err(); err != nil {
		return err
	}
	n, err := a.engine.CountThreads(r.Context(), q)
	if err != nil {
		return err
	}
	return write(w, n)
}

// pruneThreads answers POST /threads/prune (reference 3).
func (a *API) pruneThreads(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	b.required("thread_ids")
	ids := b.uuids("thread_ids")
	keepLatest := b.enum("strategy", "delete", "delete", "keep_latest") == "keep_latest"
	if err := b.err(); err != nil {
		return err
	}
	n, err := a.engine.Prune(r.Context(), ids, keepLatest)
	if err != nil {
		return err
	}
	return write(w, object{{"pruned_count", n}})
}

// getStorage answers GET /threads/{thread_id}/storage (reference 3).
func (a *API) getStorage(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "thread_id")
	if err != nil {
		return err
	}
	s, err := a.engine.Storage(r.Context(), id)
	if err != nil {
		return err
	}
	total, channels := agent.Volume{}, map[string]object{}
	for name, v := range s.Channels {
		total.Count, total.Bytes = total.Count+v.Count, total.Bytes+v.Bytes
		channels[name] = object{{"versions", v.Count}, {"bytes", v.Bytes}}
	}
	return write(w, object{
		{"thread_id", id}, {"total_bytes", s.Checkpoints.Bytes + s.Writes.Bytes + total.Bytes}, {"checkpoints", showVolume(s.Checkpoints)},
		{"channel_values", append(showVolume(total), member{"by_channel", channels})}, {"pending_writes", showVolume(s.Writes)},
	})
}

func showVolume(v agent.Volume) object { return object{{"count", v.Count}, {"bytes", v.Bytes}} }
