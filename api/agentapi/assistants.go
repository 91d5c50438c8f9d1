package agentapi

import (
	"net/http"

	"github.com/slipway-dev/slipway/agent"
)

func showAssistant(a agent.Assistant) object {
	return object{
		{"assistant_id", a.ID}, {"graph_id", a.GraphID}, {"config", orEmpty(a.Config)}, {"context", orEmpty(a.Context)},
		{"created_at", stamp(a.CreatedAt)}, {"updated_at", stamp(a.UpdatedAt)}, {"metadata", orEmpty(a.Metadata)},
		{"version", a.Version}, {"name", a.Name}, {"description", a.Description},
	}
}

func assistantFields() []string {
	return []string{
		"assistant_id", "graph_id", "config", "context", "created_at", "updated_at", "metadata", "version", "name", "description",
	}
}

func (a *API) getAssistant(w http.ResponseWriter, r *http.Request) error {
	found, err := a.engine.Assistant(r.Context(), r.PathValue("assistant_id"))
	if err != nil {
		return err
	}
	return write(w, showAssistant(found))
}

// searchAssistants answers POST /assistants/search (reference 2).
func (a *API) searchAssistants(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	q, limit := assistantQuery(b), b.integer("limit", 10, 1, 1000)
	q.Limit, q.Offset = limit+1, b.integer("offset", 0, 0, 1<<31)
	q.SortBy = b.enum("sort_by", "created_at", "assistant_id", "created_at", "updated_at", "name", "graph_id")
	q.Ascending = b.enum("sort_order", "desc", "asc", "desc") == "asc"
	names := b.enums("select", assistantFields())
	if err := b.err(); err != nil {
		return err
	}
	list, err := a.engine.Assistants(r.Context(), q)
	if err != nil {
		return err
	}
	list = paginate(w, list, limit, q.Offset)
	return write(w, collect(list, func(a agent.Assistant) object { return showAssistant(a).only(names) }))
}

func assistantQuery(b *body) agent.AssistantQuery {
	return agent.AssistantQuery{Metadata: b.object("metadata"), GraphID: b.text("graph_id"), Name: b.text("name")}
}

func (a *API) countAssistants(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	q := assistantQuery(b)
	if err := b.err(); err != nil {
		return err
	}
	n, err := a.engine.CountAssistants(r.Context(), q)
	if err != nil {
		return err
	}
	return write(w, n)
}
