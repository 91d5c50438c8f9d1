package agentapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

func systemOperations() []operation {
	health := record([]string{"services", "failures", "parts"}, members{
		"ok": {Type: "boolean"}, "services": filled(members{"database": text("ok, or what is wrong"), "workers": text("ok, starting, or what is wrong")}),
		"failures": mapOf(text(""), "graphs that cannot be loaded"),
		"parts":    mapOf(text(""), "other code of the application that cannot be loaded, by its key of the configuration"),
	})
	version := func() *huma.Schema { return orNothing(text("null where no graph is of the language")) }
	on := func() *huma.Schema { return &huma.Schema{Type: "boolean"} }
	info := filled(members{
		"version": text("of slipway"), "langgraph_py_version": version(), "langgraph_js_version": version(), "context": text("py, js or both"),
		"flags": filled(members{
			"assistants": on(), "crons": on(), "langsmith": on(), "langsmith_tracing_replicas": on(), "stream_namespaces": on(), "strict_resume": on(),
		}),
		"metadata": free("of the deployment"),
	})
	format := queryParam("format", choice("prometheus", "", "prometheus", "json"))
	return tagged("system", []operation{
		{method: "GET", path: "/ok", id: "ok", summary: "Tell that the server serves", text: "With check_db it says whether it can work, and answers 500 if not.", query: []*huma.Param{queryParam("check_db", flag(""))}, answer: health, others: map[int]*huma.Schema{http.StatusInternalServerError: health}, open: true},
		{method: "GET", path: "/info", id: "info", summary: "Describe the server", answer: info, open: true},
		{method: "GET", path: "/metrics", id: "metrics", summary: "Measure the server", text: "In the text format of Prometheus, or with format=json the same figures as JSON.", query: []*huma.Param{format}, media: "text/plain", answer: text(""), json: figuresShape()},
		{method: "GET", path: "/openapi.json", id: "openapi", summary: "Get this description", answer: free("")},
		{method: "GET", path: "/docs", id: "docs", summary: "Get this description as a page", media: "text/html", answer: text("")},
	})
}

func figuresShape() *huma.Schema {
	number := func() *huma.Schema { return &huma.Schema{Type: "number"} }
	summed := func() *huma.Schema { return filled(members{"count": amount(""), "sum": number()}) }
	latency := listOf(filled(members{"method": text(""), "path": text(""), "count": amount(""), "sum": number()}), "")
	requests := listOf(filled(members{"method": text(""), "path": text(""), "status": text(""), "count": number()}), "")
	return filled(members{
		"queue":   filled(members{"pending": amount("of the deployment, delayed runs too"), "running": amount("of the deployment"), "oldest_pending_age_secs": number()}),
		"workers": filled(members{"max": amount("runs at once"), "active": amount("runs"), "available": amount("runs")}),
		"runs": filled(members{
			"attempts_started": amount(""), "succeeded": amount(""), "cancelled": amount(""), "failed_retriable": amount(""), "failed_after_retry": amount(""),
			"queue_wait_ms": summed(), "execution_ms": summed(),
		}),
		"http": filled(members{"requests": requests, "latency_ms": latency, "streams_open": number()}),
	})
}
