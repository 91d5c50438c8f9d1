package agentapi

import (
	"net/http"

	"github.com/slipway-dev/slipway/agent"
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
	t := agent.Thread{ID: b.uuid("thread_id"), Metadata: b.object("metadata")}
	reuse := b.enum("if_exists", "raise", "raise", "do_nothing") == "do_nothing"
	b.later("ttl", "supersteps")
	if err := b.err(); err != nil {
		return err
	}
	t, err = a.engine.CreateThread(r.Context(), t, reuse)
	if err != nil {
		return err
	}
	return write(w, showThread(t))
}

func (a *API) getThread(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "thread_id")
	if err != nil {
		return err
	}
	t, err := a.engine.Thread(r.Context(), id)
	if err != nil {
		return err
	}
	return write(w, showThread(t))
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
	metadata := b.object("metadata")
	b.later("ttl")
	if err := b.err(); err != nil {
		return err
	}
	t, err := a.engine.PatchThread(r.Context(), id, metadata)
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
	b.later("extract")
	if err := b.err(); err != nil {
		return err
	}
	list, err := a.engine.Threads(r.Context(), q)
	if err != nil {
		return err
	}
	list = paginate(w, list, limit, q.Offset)
	return write(w, collect(list, func(t agent.Thread) object { return showThread(t).only(names) }))
}

func (b *body) uuids(name string) []string {
	list := b.list(name)
	for i, s := range list {
		id, ok := parseUUID(s)
		if !ok {
			b.wrong(name, "must hold UUIDs, got %q", s)
		}
		list[i] = id
	}
	return list
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
