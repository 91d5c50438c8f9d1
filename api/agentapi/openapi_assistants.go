package agentapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

func assistantOperations() []operation {
	paged := []string{"X-Pagination-Total", "X-Pagination-Next"}
	filters := func() members {
		return members{
			"metadata": free("is contained in the assistant's"), "graph_id": text(""), "name": text("is part of the assistant's, in any case of letters"),
		}
	}
	search := sorted(page(filters(), 10), "created_at", "assistant_id", "updated_at", "name", "graph_id")
	search["select"] = words(assistantFields(), "members to answer")
	whole := []operation{
		{method: "POST", path: "/assistants", id: "create_assistant", summary: "Create an assistant", body: assistantCreate(), needsBody: true, answer: ref("Assistant"), errors: []int{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict}},
		{method: "POST", path: "/assistants/search", id: "search_assistants", summary: "List assistants", body: request(nil, search), answer: selected("Assistant"), sends: paged},
		{method: "POST", path: "/assistants/count", id: "count_assistants", summary: "Count assistants", body: request(nil, filters()), answer: amount("")},
		{method: "GET", path: "/assistants/{assistant_id}", id: "get_assistant", summary: "Get an assistant", answer: ref("Assistant")},
		{method: "PATCH", path: "/assistants/{assistant_id}", id: "patch_assistant", summary: "Make a new version of an assistant", text: "Metadata is merged; other members that are given replace.", body: assistantPatch(), answer: ref("Assistant"), errors: []int{http.StatusBadRequest}},
		{method: "DELETE", path: "/assistants/{assistant_id}", id: "delete_assistant", summary: "Delete an assistant with all its versions and crons", status: http.StatusNoContent, query: []*huma.Param{queryParam("delete_threads", flag("also the threads that it was used on"))}},
		{method: "GET", path: "/assistants/{assistant_id}/graph", id: "get_assistant_graph", summary: "Draw the graph", answer: drawing(), query: []*huma.Param{queryParam("xray", either("into subgraphs: true, false or a depth", flag(""), amount("")))}},
		{method: "GET", path: "/assistants/{assistant_id}/subgraphs", id: "list_assistant_subgraphs", summary: "List the schemas of the subgraphs", answer: mapOf(ref("GraphSchemas"), "by namespace"), query: []*huma.Param{queryParam("recurse", flag(""))}},
		{method: "GET", path: "/assistants/{assistant_id}/subgraphs/{namespace}", id: "get_assistant_subgraph", summary: "Get the schemas of one subgraph", answer: mapOf(ref("GraphSchemas"), "by namespace"), query: []*huma.Param{queryParam("recurse", flag(""))}},
		{method: "GET", path: "/assistants/{assistant_id}/schemas", id: "get_assistant_schemas", summary: "Get the schemas of the graph", answer: ref("GraphSchemas")},
		{method: "POST", path: "/assistants/{assistant_id}/versions", id: "list_assistant_versions", summary: "List the versions, newest first", body: request(nil, page(members{"metadata": free("is contained in the version's")}, 10)), answer: listOf(ref("Assistant"), "")},
		{method: "POST", path: "/assistants/{assistant_id}/latest", id: "set_latest_assistant_version", summary: "Make a version the current one", text: "The version comes in the body or in the query.", body: request(nil, members{"version": one()}), query: []*huma.Param{queryParam("version", one())}, answer: ref("Assistant")},
	}
	return tagged("assistants", whole)
}

func one() *huma.Schema {
	lowest := 1.0
	return &huma.Schema{Type: "integer", Minimum: &lowest}
}

// tagged puts operations into a group; those of one thing can be answered that it is not there.
func tagged(tag string, list []operation) []operation {
	for i := range list {
		list[i].tag = tag
		if pathParameter.MatchString(list[i].path) {
			list[i].errors = append(list[i].errors, http.StatusNotFound)
		}
	}
	return list
}

func assistantCreate() *huma.Schema {
	return request([]string{"graph_id"}, members{
		"graph_id": text(""), "assistant_id": uuidOf("made if absent"), "config": ref("RunConfig"), "context": free(""), "metadata": free(""),
		"if_exists": choice("raise", "raise answers 409; do_nothing the assistant that is there", "raise", "do_nothing"),
		"name":      {Type: "string", Default: "Untitled"}, "description": text(""),
	})
}

func assistantPatch() *huma.Schema {
	return request(nil, members{
		"graph_id": text(""), "config": ref("RunConfig"), "context": free(""), "metadata": free("merged"), "name": text(""), "description": text(""),
	})
}

func drawing() *huma.Schema {
	node := record([]string{"data", "metadata"}, members{"id": anything(""), "type": text("schema or runnable"), "data": anything(""), "metadata": anything("")})
	edge := record([]string{"data", "conditional"}, members{"source": anything(""), "target": anything(""), "data": anything(""), "conditional": {Type: "boolean"}})
	return filled(members{"nodes": listOf(node, ""), "edges": listOf(edge, "")})
}
