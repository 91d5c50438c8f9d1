package agentapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

func uiOperations() []operation {
	load := request([]string{"name"}, members{"name": {Type: "string", MinLength: new(1), MaxLength: new(longestComponent), Description: "of the component, as a ui message of the graph says"}})
	missing := []int{http.StatusNotFound}
	return tagged("ui", []operation{
		{method: "POST", path: "/ui/{graph}", id: "load_ui", summary: "Get the tags that load a component", text: "Style sheets and a script with absolute addresses; the client puts the id of a shadow root in place of {{shadowRootId}}.", body: load, needsBody: true, media: "text/html", answer: text(""), errors: missing},
		{method: "GET", path: "/ui/{graph}/{file}", id: "get_ui_file", summary: "Get a script or a style sheet of components", query: []*huma.Param{queryParam("v", text("its version, as the tags say: such an answer may be kept for good"))}, media: "text/javascript", further: []string{"text/css"}, answer: text(""), others: map[int]*huma.Schema{http.StatusNotModified: nil}, errors: missing, open: true},
	})
}
