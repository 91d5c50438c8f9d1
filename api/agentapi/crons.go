package agentapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
)

func showCron(c agent.Cron) object {
	return object{
		{"cron_id", c.ID}, {"assistant_id", c.AssistantID}, {"thread_id", orNil(c.ThreadID)}, {"on_run_completed", orNil(c.OnRunCompleted)},
		{"end_time", stamp(c.EndTime)}, {"schedule", c.Schedule}, {"timezone", orNil(c.Timezone)}, {"created_at", stamp(c.CreatedAt)},
		{"updated_at", stamp(c.UpdatedAt)}, {"user_id", orNil(c.UserID)}, {"payload", orEmpty(c.Payload)},
		{"next_run_date", stamp(c.NextRun)}, {"metadata", orEmpty(c.Metadata)}, {"enabled", c.Enabled},
	}
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func cronFields() []string {
	return []string{
		"cron_id", "assistant_id", "thread_id", "on_run_completed", "end_time", "schedule", "timezone", "created_at", "updated_at", "user_id",
		"payload", "next_run_date", "metadata", "enabled",
	}
}

// cronOnly are the members of a cron's body that say when it runs; the others are its payload: the run to make.
func cronOnly() []string {
	return []string{"schedule", "timezone", "end_time", "enabled", "on_run_completed", "thread_id", "cron_id", "user_id"}
}

// createCron answers POST /runs/crons and POST /threads/{thread_id}/runs/crons (reference 6).
func (a *API) createCron(w http.ResponseWriter, r *http.Request) error {
	threadID, err := pathID(r, "thread_id")
	if err != nil {
		return err
	}
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	b.required("schedule")
	c, run, err := b.cron(agent.Cron{ThreadID: threadID, Enabled: true})
	if err != nil {
		return err
	}
	run.Config = a.configured(run.Config, r)
	if c, err = a.engine.CreateCron(r.Context(), c, run); err != nil {
		return err
	}
	return write(w, showCron(c))
}

// patchCron answers PATCH /runs/crons/{cron_id}: what is given replaces, metadata is merged, a null end_time clears.
func (a *API) patchCron(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "cron_id")
	if err != nil {
		return err
	}
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	if len(b.members) == 0 {
		return slipway.Errorf(slipway.CodeBadRequest, "No fields to update")
	}
	c, err := a.engine.ChangeCron(r.Context(), id, func(c agent.Cron) (agent.Cron, engine.RunRequest, error) {
		c, run, err := b.over(c).cron(c)
		run.Config = a.configured(run.Config, r)
		return c, run, err
	})
	if err != nil {
		return err
	}
	return write(w, showCron(c))
}

// over returns the body that would create what the patch b makes of c.
func (b *body) over(c agent.Cron) *body {
	whole := &body{at: b.at, members: map[string]json.RawMessage{}}
	_ = json.Unmarshal(orEmpty(c.Payload), &whole.members) // it was a body once
	metadata := map[string]json.RawMessage{}
	for _, part := range []json.RawMessage{orEmpty(c.Metadata), b.raw("metadata")} {
		_ = json.Unmarshal(part, &metadata) // a wrong one is refused below
	}
	maps.Copy(whole.members, b.members)
	if b.object("metadata") != nil {
		whole.members["metadata"], _ = json.Marshal(metadata)
	}
	return whole
}

// cron takes a cron and the run it makes; members that are absent leave c as it is.
func (b *body) cron(c agent.Cron) (agent.Cron, engine.RunRequest, error) {
	if schedule := b.optional("schedule"); schedule != nil {
		c.Schedule = *schedule
	}
	if _, given := b.members["timezone"]; given {
		c.Timezone = b.text("timezone")
	}
	if _, given := b.members["end_time"]; given {
		c.EndTime = b.moment("end_time")
	}
	if b.raw("enabled") != nil {
		c.Enabled = b.boolean("enabled")
	}
	if c.ThreadID == "" {
		fallback := c.OnRunCompleted
		if fallback == "" {
			fallback = "delete"
		}
		c.OnRunCompleted = b.enum("on_run_completed", fallback, "delete", "keep")
	}
	if metadata := b.object("metadata"); metadata != nil {
		c.Metadata = metadata
	}
	c.Payload = b.payload()
	call, err := b.run(c.ThreadID)
	return c, call.request, err
}

// payload is the body without what says when it runs.
func (b *body) payload() json.RawMessage {
	kept := maps.Clone(b.members)
	maps.DeleteFunc(kept, func(name string, _ json.RawMessage) bool { return slices.Contains(cronOnly(), name) })
	raw, _ := encode(kept) // what was decoded encodes
	return raw
}

// moment takes a date and time; one without zone is UTC.
func (b *body) moment(name string) time.Time {
	text := b.text(name)
	if text == "" {
		return time.Time{}
	}
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02"} {
		if t, err := time.Parse(form, text); err == nil && t.Year() >= 1970 && t.Year() < 10000 {
			return t.UTC().Truncate(time.Microsecond)
		}
	}
	b.wrong(name, "must be an ISO 8601 date and time, got %q", text)
	return time.Time{}
}

// getStatelessOrCron answers GET /runs/crons/{cron_id} and GET /runs/{run_id}/stream, which no mux can tell apart.
func (a *API) getStatelessOrCron(w http.ResponseWriter, r *http.Request) error {
	first, second := r.PathValue("first"), r.PathValue("second")
	switch {
	case first == "crons":
		r.SetPathValue("cron_id", second)
		return a.getCron(w, r)
	case second == "stream":
		r.SetPathValue("run_id", first)
		return a.joinStream(w, r)
	}
	return slipway.Errorf(slipway.CodeNotFound, "Not Found")
}

func (a *API) getCron(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "cron_id")
	if err != nil {
		return err
	}
	c, err := a.engine.Cron(r.Context(), id)
	if err != nil {
		return err
	}
	return write(w, showCron(c))
}

func (a *API) deleteCron(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "cron_id")
	if err != nil {
		return err
	}
	if err := a.engine.DeleteCron(r.Context(), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func cronQuery(b *body) agent.CronQuery {
	return agent.CronQuery{AssistantID: b.text("assistant_id"), ThreadID: b.uuid("thread_id"), Metadata: b.object("metadata")}
}

// searchCrons answers POST /runs/crons/search (reference 6).
func (a *API) searchCrons(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	q, limit := cronQuery(b), b.integer("limit", 10, 1, 1000)
	q.Limit, q.Offset = limit+1, b.integer("offset", 0, 0, 1<<31)
	q.SortBy = b.enum("sort_by", "created_at", "cron_id", "assistant_id", "thread_id", "next_run_date", "end_time", "created_at", "updated_at")
	q.Ascending = b.enum("sort_order", "desc", "asc", "desc") == "asc"
	if b.raw("enabled") != nil {
		enabled := b.boolean("enabled")
		q.Enabled = &enabled
	}
	names := b.enums("select", append(cronFields(), "now"))
	if err := b.err(); err != nil {
		return err
	}
	list, err := a.engine.Crons(r.Context(), q)
	if err != nil {
		return err
	}
	list = paginate(w, list, limit, q.Offset)
	return write(w, collect(list, func(c agent.Cron) object { return showCron(c).only(names) }))
}

func (a *API) countCrons(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	q := cronQuery(b)
	if err := b.err(); err != nil {
		return err
	}
	n, err := a.engine.CountCrons(r.Context(), q)
	if err != nil {
		return err
	}
	return write(w, n)
}
