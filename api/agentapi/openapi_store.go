package agentapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

func storeOperations() []operation {
	labels := func(doc string) *huma.Schema { return listOf(text("not empty, without a period"), doc) }
	refresh := &huma.Schema{Type: "boolean", Description: "restart the time to live of what is read"}
	index := either("false = none of it is searched by similarity", &huma.Schema{Type: "boolean", Enum: []any{false}}, listOf(text(""), "paths in the value"))
	put := request([]string{"namespace", "key", "value"}, members{
		"namespace": labels("at least one label"), "key": text(""), "value": free(""), "index": index, "ttl": {Type: "number", Description: "minutes, above 0"},
	})
	remove := request([]string{"key"}, members{"namespace": labels(""), "key": text("")})
	search := request(nil, page(members{
		"namespace_prefix": listOf(text(""), ""), "filter": free("by members of the value; $eq, $ne, $gt, $gte, $lt, $lte"), "query": text("order by similarity to it"),
		"refresh_ttl": refresh,
	}, 10))
	spaces := request(nil, page(members{"prefix": listOf(text("* is any label"), ""), "suffix": listOf(text("* is any label"), ""), "max_depth": one()}, 100))
	get := []*huma.Param{
		{Name: "key", In: "query", Required: true, Schema: text("")}, queryParam("namespace", either("labels joined by periods, or repeated", text(""), listOf(text(""), ""))),
		queryParam("refresh_ttl", refresh),
	}
	return tagged("store", []operation{
		{method: "PUT", path: "/store/items", id: "put_item", summary: "Write an item", body: put, needsBody: true, status: http.StatusNoContent, errors: []int{http.StatusBadRequest}},
		{method: "GET", path: "/store/items", id: "get_item", summary: "Read an item", text: "A missing item is null.", query: get, answer: orNothing(ref("Item")), errors: []int{http.StatusNotFound}},
		{method: "DELETE", path: "/store/items", id: "delete_item", summary: "Delete an item, if it is there", body: remove, needsBody: true, status: http.StatusNoContent},
		{method: "POST", path: "/store/items/search", id: "search_items", summary: "List items", body: search, answer: filled(members{"items": listOf(ref("Item"), "")})},
		{method: "POST", path: "/store/namespaces", id: "list_namespaces", summary: "List namespaces", body: spaces, answer: filled(members{"namespaces": listOf(listOf(text(""), ""), "")})},
	})
}
