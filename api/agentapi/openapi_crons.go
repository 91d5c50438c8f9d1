package agentapi

import (
	"maps"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// cronMembers are those of a run creation and what says when it is to be made.
func cronMembers() members {
	all := runMembers()
	maps.Copy(all, members{
		"schedule": text("five fields: minute, hour, day of month, month, day of week"), "timezone": text("IANA name; null is UTC"),
		"end_time": moment("no run after it"), "enabled": {Type: "boolean", Default: true},
		"on_run_completed": choice("delete", "what becomes of the thread of each run; not for a thread's cron", "delete", "keep"),
	})
	return all
}

func cronOperations() []operation {
	filters := func() members {
		return members{"assistant_id": text(""), "thread_id": uuidOf(""), "metadata": free("is contained in the cron's")}
	}
	search := sorted(page(filters(), 10), "created_at", "cron_id", "assistant_id", "thread_id", "next_run_date", "end_time", "updated_at")
	search["enabled"], search["select"] = &huma.Schema{Type: "boolean"}, words(append(cronFields(), "now"), "members to answer")
	stateless, onThread := cronMembers(), cronMembers()
	delete(onThread, "on_run_completed")
	needed := []string{"schedule", "assistant_id"}
	paged, missing := []string{"X-Pagination-Total", "X-Pagination-Next"}, []int{http.StatusNotFound}
	return tagged("crons", []operation{
		{method: "POST", path: "/runs/crons", id: "create_cron", summary: "Create a cron whose runs have threads of their own", body: request(needed, stateless), needsBody: true, answer: ref("Cron"), errors: missing},
		{method: "POST", path: "/threads/{thread_id}/runs/crons", id: "create_thread_cron", summary: "Create a cron whose runs are on a thread", body: request(needed, onThread), needsBody: true, answer: ref("Cron")},
		{method: "POST", path: "/runs/crons/search", id: "search_crons", summary: "List crons", body: request(nil, search), answer: selected("Cron"), sends: paged},
		{method: "POST", path: "/runs/crons/count", id: "count_crons", summary: "Count crons", body: request(nil, filters()), answer: amount("")},
		{method: "GET", path: "/runs/crons/{cron_id}", route: "GET /runs/{first}/{second}", id: "get_cron", summary: "Get a cron", answer: ref("Cron")},
		{method: "PATCH", path: "/runs/crons/{cron_id}", id: "patch_cron", summary: "Change a cron", text: "Metadata is merged, other members replace; end_time null clears it.", body: request(nil, cronMembers()), needsBody: true, answer: ref("Cron"), errors: []int{http.StatusBadRequest}},
		{method: "DELETE", path: "/runs/crons/{cron_id}", id: "delete_cron", summary: "Delete a cron", status: http.StatusNoContent},
	})
}
