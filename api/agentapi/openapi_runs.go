package agentapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

const eventStream = "text/event-stream"

func frames() *huma.Schema {
	return text("frames of `event`, `data` (one line of JSON) and, of resumable runs, `id`; the last event is `end`; comments are heartbeats")
}

func lastEventID() []*huma.Param {
	return []*huma.Param{headerParam("Last-Event-ID", "go on behind this frame; -1 or - is from the start")}
}

func modeQuery() *huma.Param {
	return queryWords("stream_mode", words(streamModes(), "only these events"))
}

func namespaceQuery() *huma.Param {
	return queryWords("namespace", listOf(text(""), "only these namespaces, their parts joined by |; \"\" is the graph itself"))
}

func disconnectQuery() *huma.Param {
	return queryParam("cancel_on_disconnect", flag("a closed connection cancels the run"))
}

func cancelQuery() []*huma.Param {
	return []*huma.Param{
		queryParam("action", choice("interrupt", "interrupt keeps the completed steps, rollback leaves no trace", "interrupt", "rollback")),
		queryParam("reason", choice(nil, "taken goes with interrupt only", "taken")),
	}
}

// outcome is what /wait and /join answer (reference 4.3).
func outcome() *huma.Schema {
	return anything("the final values; with __interrupt__ where the run stopped at one, {\"__error__\": {error, message}} where it failed")
}

func runOperations() []operation {
	made, refused := []string{"Content-Location"}, []int{http.StatusConflict}
	list := []*huma.Param{
		queryParam("limit", whole(10, 1, 1000, "")), queryParam("offset", whole(0, 0, 1<<31, "")), queryParam("status", choice(nil, "", runStatuses()...)),
		queryWords("select", words(runFields(), "members to answer")),
	}
	wait := queryParam("wait", flag("answer 204 when it has stopped"))
	follow := []*huma.Param{modeQuery(), namespaceQuery(), queryParam("checkpoint_id", text("with Last-Event-ID -1: only what came after it")), disconnectQuery()}
	return tagged("runs", []operation{
		{method: "GET", path: "/threads/{thread_id}/runs", id: "list_runs", summary: "List the runs of a thread, newest first", query: list, answer: selected("Run")},
		{method: "POST", path: "/threads/{thread_id}/runs", id: "create_run", summary: "Start a run in the background", body: ref("RunCreate"), needsBody: true, answer: ref("Run"), sends: made, errors: refused},
		{method: "POST", path: "/threads/{thread_id}/runs/stream", id: "stream_run", summary: "Start a run and stream it", body: ref("RunCreate"), needsBody: true, query: []*huma.Param{namespaceQuery()}, media: eventStream, answer: frames(), sends: []string{"Content-Location", "Location"}, errors: refused},
		{method: "POST", path: "/threads/{thread_id}/runs/wait", id: "wait_run", summary: "Start a run and wait for its result", body: ref("RunCreate"), needsBody: true, answer: outcome(), sends: []string{"Content-Location", "Location"}, errors: refused},
		{method: "GET", path: "/threads/{thread_id}/runs/{run_id}", id: "get_run", summary: "Get a run", answer: ref("Run")},
		{method: "DELETE", path: "/threads/{thread_id}/runs/{run_id}", id: "delete_run", summary: "Delete a run with its checkpoints", text: "A run in flight is cancelled first.", status: http.StatusNoContent, errors: refused},
		{method: "GET", path: "/threads/{thread_id}/runs/{run_id}/join", id: "join_run", summary: "Wait for the result of a run", query: []*huma.Param{disconnectQuery()}, answer: outcome(), sends: []string{"Location"}},
		{method: "GET", path: "/threads/{thread_id}/runs/{run_id}/stream", id: "join_run_stream", summary: "Follow a run", query: follow, headers: lastEventID(), media: eventStream, answer: frames(), sends: []string{"Location"}},
		{method: "POST", path: "/threads/{thread_id}/runs/{run_id}/cancel", id: "cancel_run", summary: "Cancel a run", text: "With wait the answer is 204, when it has stopped.", status: http.StatusAccepted, query: append(cancelQuery(), wait), answer: filled(members{}), others: map[int]*huma.Schema{http.StatusNoContent: nil}, errors: refused},
	})
}

func statelessOperations() []operation {
	made := []string{"Content-Location"}
	missing := []int{http.StatusNotFound, http.StatusConflict}
	several := listOf(ref("RunCreate"), "")
	least, most := 1, maxNamed
	several.MinItems, several.MaxItems = &least, &most
	selection := request(nil, members{
		"status": choice(nil, "all runs that are so", "pending", "running", "all"), "thread_id": uuidOf(""), "run_ids": idsOf("with thread_id"), "assistant_id": text(""),
	})
	follow := []*huma.Param{modeQuery(), namespaceQuery(), queryParam("checkpoint_id", text("")), disconnectQuery()}
	return tagged("stateless-runs", []operation{
		{method: "POST", path: "/runs", id: "create_stateless_run", summary: "Start a run in the background", body: ref("RunCreate"), needsBody: true, answer: ref("Run"), sends: made, errors: missing},
		{method: "POST", path: "/runs/stream", id: "stream_stateless_run", summary: "Start a run and stream it", body: ref("RunCreate"), needsBody: true, query: []*huma.Param{namespaceQuery()}, media: eventStream, answer: frames(), sends: []string{"Content-Location", "Location"}, errors: missing},
		{method: "POST", path: "/runs/wait", id: "wait_stateless_run", summary: "Start a run and wait for its result", body: ref("RunCreate"), needsBody: true, answer: outcome(), sends: []string{"Content-Location", "Location"}, errors: missing},
		{method: "POST", path: "/runs/batch", id: "create_stateless_runs", summary: "Start several runs, all or none", body: several, needsBody: true, answer: listOf(ref("Run"), "in the order of the request"), errors: missing},
		{method: "POST", path: "/runs/cancel", id: "cancel_runs", summary: "Cancel several runs", text: "Name them by status, by thread_id and run_ids, or by assistant_id.", body: selection, needsBody: true, query: cancelQuery()[:1], status: http.StatusNoContent, errors: missing},
		{method: "GET", path: "/runs/{run_id}/stream", route: "GET /runs/{first}/{second}", id: "join_stateless_run_stream", summary: "Follow a run", query: follow, headers: lastEventID(), media: eventStream, answer: frames()},
	})
}
