package beaconapi_test

// The samples of spec 4.5: flags of a sum in its data points, times as numbers in metrics and as strings elsewhere.
const (
	sampleMetrics = `"resourceMetrics":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"platform"}}]},"scopeMetrics":[{"scope":{"name":"platform","version":"0.1.0"},"metrics":[
{"name":"langsmith_http_requests_latency","unit":"seconds","description":"d","gauge":{"dataPoints":[{"asDouble":0.25,"startTimeUnixNano":1736153200000000000,"timeUnixNano":1736153260000000000,"attributes":[{"key":"endpoint","value":{"stringValue":"/runs"}},{"key":"method","value":{"stringValue":"POST"}},{"key":"canary","value":{"stringValue":"canary"}}]}]}},
{"name":"platform_http_requests_failed","unit":"1","description":"d","sum":{"dataPoints":[{"asInt":3,"aggregationTemporality":2,"isMonotonic":true,"startTimeUnixNano":1736153200000000000,"timeUnixNano":1736153260000000000,"attributes":[{"key":"service_name","value":{"stringValue":"api"}}]}]}}
]}]}]}`
	sampleTraces = `"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[{"scope":{"name":"platform"},"spans":[
{"traceId":"71699b6fe85982c7c8995ea3d9c95df2","spanId":"3c191d03fa8be065","parentSpanId":"","name":"POST /runs","kind":2,"startTimeUnixNano":"1736153200000000000","endTimeUnixNano":"1736153260000000000","attributes":[{"key":"canary","value":{"stringValue":"canary"}}],"events":[],"links":[],"droppedAttributesCount":0,"droppedEventsCount":0,"droppedLinksCount":0,"status":{"code":2,"message":"it failed"}}
]}]}]}`
	sampleLogs = `"resourceLogs":[{"resource":{},"scopeLogs":[{"scope":{},"logRecords":[
{"timeUnixNano":"1736153200000000000","severityNumber":13,"severityText":"Warning","body":{"stringValue":"the queue is long"},"attributes":[{"key":"attempt","value":{"intValue":"3"}},{"key":"canary","value":{"stringValue":"canary"}}],"droppedAttributesCount":0,"traceId":"","spanId":""},
{"timeUnixNano":1736153200000000000,"severityNumber":9,"severityText":"Info","body":{"stringValue":"an info"}}
]}]}]}`
)

// samplePart is a sample without its opening brace.
func samplePart(kind string) string {
	return map[string]string{"metrics": sampleMetrics, "traces": sampleTraces, "logs": sampleLogs}[kind]
}

func sample(kind string) string { return "{" + samplePart(kind) }
