package agentapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

func threadFilters() members {
	return members{
		"metadata": free("is contained in the thread's"), "values": free("is contained in the values of its state"),
		"status": choice(nil, "", "idle", "busy", "interrupted", "error"),
	}
}

func threadSearch() *huma.Schema {
	most := maxExtracts
	search := sorted(page(threadFilters(), 10), "updated_at", "thread_id", "status", "created_at", "state_updated_at")
	search["ids"], search["select"] = idsOf("only these"), words(threadFields(), "members to answer")
	search["extract"] = &huma.Schema{
		Type: "object", AdditionalProperties: text(""), MaxProperties: &most,
		Description: "alias to path: values, metadata, config or interrupts, then .key or [n], as in values.messages[-1]",
	}
	return request(nil, search)
}

func threadCreate() *huma.Schema {
	update := request([]string{"as_node"}, members{"values": anything(""), "command": ref("Command"), "as_node": text("")})
	return request(nil, members{
		"thread_id": uuidOf("made if absent"), "metadata": free("graph_id in it says which graph's the state is"),
		"if_exists": choice("raise", "raise answers 409; do_nothing the thread that is there", "raise", "do_nothing"), "ttl": ref("TTLRequest"),
		"supersteps": listOf(request([]string{"updates"}, members{"updates": listOf(update, "")}), "updates of state to begin with; they need metadata.graph_id"),
	})
}

func threadOperations() []operation {
	paged := []string{"X-Pagination-Total", "X-Pagination-Next"}
	prune := request([]string{"thread_ids"}, members{"thread_ids": idsOf(""), "strategy": choice("delete", "", "delete", "keep_latest")})
	return tagged("threads", []operation{
		{method: "POST", path: "/threads", id: "create_thread", summary: "Create a thread", body: threadCreate(), answer: ref("Thread"), errors: []int{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict}},
		{method: "POST", path: "/threads/search", id: "search_threads", summary: "List threads", body: threadSearch(), answer: selected("Thread"), sends: paged},
		{method: "POST", path: "/threads/count", id: "count_threads", summary: "Count threads", body: request(nil, threadFilters()), answer: amount("")},
		{method: "POST", path: "/threads/prune", id: "prune_threads", summary: "Delete threads, or all but their latest checkpoints", body: prune, needsBody: true, answer: filled(members{"pruned_count": amount("")})},
		{method: "GET", path: "/threads/{thread_id}", id: "get_thread", summary: "Get a thread", answer: ref("Thread"), query: []*huma.Param{queryWords("include", words([]string{"ttl"}, "members to answer beside the usual ones"))}},
		{method: "PATCH", path: "/threads/{thread_id}", id: "patch_thread", summary: "Merge metadata, or set the time to live", text: "With Prefer: return=minimal the answer is 204.", headers: []*huma.Param{headerParam("Prefer", "return=minimal answers 204 without a body")}, body: request(nil, members{"metadata": free("merged"), "ttl": ref("TTLRequest")}), answer: ref("Thread"), others: map[int]*huma.Schema{http.StatusNoContent: nil}},
		{method: "DELETE", path: "/threads/{thread_id}", id: "delete_thread", summary: "Delete a thread with all that belongs to it", text: "Runs in flight are cancelled first.", status: http.StatusNoContent, errors: []int{http.StatusConflict}},
		{method: "POST", path: "/threads/{thread_id}/copy", id: "copy_thread", summary: "Copy a thread with all its checkpoints", answer: ref("Thread"), errors: []int{http.StatusConflict}},
		{method: "GET", path: "/threads/{thread_id}/storage", id: "get_thread_storage", summary: "Measure what a thread takes up", answer: storageShape(), errors: []int{http.StatusNotImplemented}},
		{method: "GET", path: "/threads/{thread_id}/stream", id: "stream_thread", summary: "Follow all runs of a thread", media: eventStream, answer: frames(), headers: lastEventID(), query: []*huma.Param{
			queryWords("stream_modes", words([]string{"run_modes", "lifecycle", "state_update"}, "run_modes if absent")), queryWords("stream_mode", words([]string{"run_modes", "lifecycle", "state_update"}, "as stream_modes")),
		}},
	})
}

func storageShape() *huma.Schema {
	channel := filled(members{"versions": amount(""), "bytes": amount("")})
	return filled(members{
		"thread_id": uuidOf(""), "total_bytes": amount(""), "checkpoints": ref("Volume"), "pending_writes": ref("Volume"),
		"channel_values": filled(members{"count": amount(""), "bytes": amount(""), "by_channel": mapOf(channel, "")}),
	})
}

func stateOperations() []operation {
	selection := func() *huma.Schema {
		return listOf(text("values, next, tasks, checkpoint, metadata, created_at, parent_checkpoint, interrupts, or values.<key>"), "members to answer")
	}
	query := func() []*huma.Param {
		return []*huma.Param{queryParam("subgraphs", flag("with the states of subgraphs")), queryWords("select", selection())}
	}
	one, list := either("", ref("ThreadState"), ref("SelectedThreadState")), selected("ThreadState")
	update := request(nil, members{
		"values": either("", free(""), listOf(anything(""), "")), "as_node": text("the node that is taken to have returned them"), "checkpoint": ref("CheckpointConfig"), "checkpoint_id": text("older form"),
	})
	at := request([]string{"checkpoint"}, members{"checkpoint": ref("CheckpointConfig"), "subgraphs": flag(""), "select": selection()})
	history := request(nil, members{
		"limit": whole(1, 1, 1000, ""), "before": either("older than this checkpoint", text("its id"), free("a checkpoint, or a config that holds one")),
		"metadata": free("is contained in the checkpoint's"), "checkpoint": ref("CheckpointConfig"), "select": selection(),
	})
	updated := filled(members{"checkpoint": ref("CheckpointConfig"), "configurable": ref("CheckpointConfig"), "checkpoint_id": text("")})
	worked := []int{http.StatusBadRequest}
	return tagged("state", []operation{
		{method: "GET", path: "/threads/{thread_id}/state", id: "get_thread_state", summary: "Get the latest state", query: query(), answer: one, errors: worked},
		{method: "POST", path: "/threads/{thread_id}/state", id: "update_thread_state", summary: "Change the state", text: "Values null with as_node moves on as if that node had returned nothing.", body: update, answer: updated, errors: []int{http.StatusBadRequest, http.StatusConflict}},
		{method: "PATCH", path: "/threads/{thread_id}/state", id: "patch_thread_state", summary: "Merge metadata into the latest checkpoint's", body: request([]string{"metadata"}, members{"metadata": free("")}), needsBody: true, answer: filled(members{"checkpoint": ref("CheckpointConfig")})},
		{method: "GET", path: "/threads/{thread_id}/state/{checkpoint_id}", id: "get_thread_state_at", summary: "Get the state at a checkpoint", query: query(), answer: one, errors: worked},
		{method: "POST", path: "/threads/{thread_id}/state/checkpoint", id: "post_thread_state_at", summary: "Get the state at a checkpoint, also of a subgraph", body: at, needsBody: true, answer: one, errors: worked},
		{method: "GET", path: "/threads/{thread_id}/history", id: "get_thread_history", summary: "List states, newest first", answer: list, errors: worked, query: []*huma.Param{queryParam("limit", whole(10, 1, 1000, "")), queryParam("before", text("id of a checkpoint"))}},
		{method: "POST", path: "/threads/{thread_id}/history", id: "search_thread_history", summary: "Search states, newest first", text: "Without a limit it answers one.", body: history, answer: list, errors: worked},
	})
}
