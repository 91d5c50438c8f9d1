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

// createAssistant answers POST /assistants (reference 2).
func (a *API) createAssistant(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	b.required("graph_id")
	wanted := agent.Assistant{
		ID: b.uuid("assistant_id"), GraphID: b.text("graph_id"), Config: b.config(), Context: b.object("context"),
		Metadata: b.object("metadata"), Name: "Untitled", Description: b.optional("description"),
	}
	if name := b.optional("name"); name != nil {
		wanted.Name = *name
	}
	reuse := b.enum("if_exists", "raise", "raise", "do_nothing") == "do_nothing"
	if err := b.err(); err != nil {
		return err
	}
	made, err := a.engine.CreateAssistant(r.Context(), wanted, reuse)
	if err != nil {
		return err
	}
	return write(w, showAssistant(made))
}

// patchAssistant answers PATCH /assistants/{assistant_id}: a new version.
func (a *API) patchAssistant(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	patch := agent.AssistantPatch{
		GraphID: b.optional("graph_id"), Config: b.config(), Context: b.object("context"), Metadata: b.object("metadata"),
		Name: b.optional("name"), Description: b.optional("description"),
	}
	if err := b.err(); err != nil {
		return err
	}
	made, err := a.engine.PatchAssistant(r.Context(), r.PathValue("assistant_id"), patch)
	if err != nil {
		return err
	}
	return write(w, showAssistant(made))
}

func (a *API) deleteAssistant(w http.ResponseWriter, r *http.Request) error {
	threads, err := queryBool(r, "delete_threads")
	if err != nil {
		return err
	}
	if err := a.engine.DeleteAssistant(r.Context(), r.PathValue("assistant_id"), threads); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) listVersions(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	q := agent.VersionQuery{
		AssistantID: r.PathValue("assistant_id"), Metadata: b.object("metadata"),
		Limit: b.integer("limit", 10, 1, 1000), Offset: b.integer("offset", 0, 0, 1<<31),
	}
	if err := b.err(); err != nil {
		return err
	}
	list, err := a.engine.AssistantVersions(r.Context(), q)
	if err != nil {
		return err
	}
	return write(w, collect(list, showAssistant))
}

// setLatest answers POST /assistants/{assistant_id}/latest; the version comes in the body or, from older clients, in the query.
func (a *API) setLatest(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	version, err := queryInt(r, "version", 0, 1, 1<<31)
	if err != nil {
		return err
	}
	if version == 0 {
		b.required("version")
	}
	version = b.integer("version", version, 1, 1<<31)
	if err := b.err(); err != nil {
		return err
	}
	made, err := a.engine.SetLatestVersion(r.Context(), r.PathValue("assistant_id"), version)
	if err != nil {
		return err
	}
	return write(w, showAssistant(made))
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
