package main

import (
	"net/http"
	"os"
	"strings"

	"github.com/slipway-dev/slipway/api/agentapi"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/feedback"
	"github.com/slipway-dev/slipway/store/postgres"
)

// apiConfig is what the agent server's HTTP side is told.
func (s agentServer) apiConfig(store agentStore, getenv func(string) string) agentapi.Config {
	return agentapi.Config{
		MaxBody: s.settings.maxBody, AllowOrigins: s.settings.origins, MountPrefix: s.settings.mountPrefix, IDs: newID, Log: s.log,
		Version: version, Security: s.config.Auth.OpenAPI, Tracing: tracing(getenv),
		UI:      agentapi.UI{Files: os.DirFS(s.options.bundle), Components: s.bundle.UI},
		Metrics: agentapi.MetricsConfig{Prefix: s.settings.metricPrefix, Labels: metricLabels(getenv), Pool: poolOf(store)},
	}
}

// metricLabels name the deployment and the revision where the platform has told them.
func metricLabels(getenv func(string) string) map[string]string {
	labels := map[string]string{}
	for label, name := range map[string]string{"project_id": "LANGSMITH_HOST_PROJECT_ID", "revision_id": "LANGSMITH_HOST_REVISION_ID"} {
		if value := getenv(name); value != "" {
			labels[label] = value
		}
	}
	return labels
}

// tracing says whether user code traces to LangSmith: with a key, unless it is turned off (agent-server reference 18).
func tracing(getenv func(string) string) bool {
	key := firstOf(getenv("LANGSMITH_API_KEY"), getenv("LANGCHAIN_API_KEY"))
	on := firstOf(getenv("LANGSMITH_TRACING"), getenv("LANGSMITH_TRACING_V2"), getenv("LANGCHAIN_TRACING_V2"))
	return key != "" && !strings.EqualFold(on, "false")
}

// langSmith is where LangSmith answers if LANGSMITH_ENDPOINT says nothing else.
const langSmith = "https://api.smith.langchain.com"

// feedbackOf is the feedback service of the runs that are traced; nil where none is.
func feedbackOf(getenv func(string) string) engine.Feedback {
	if !tracing(getenv) {
		return nil
	}
	endpoint := firstOf(getenv("LANGSMITH_ENDPOINT"), getenv("LANGCHAIN_ENDPOINT"), langSmith)
	key := firstOf(getenv("LANGSMITH_API_KEY"), getenv("LANGCHAIN_API_KEY"))
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // the key goes nowhere else
	return feedback.New(endpoint, key, client).URLs
}

// poolOf tells the connections of a store in PostgreSQL; nil for one in a file.
func poolOf(store agentStore) func() agentapi.Pool {
	pooled, ok := store.(interface{ Pool() postgres.PoolStats })
	if !ok {
		return nil
	}
	return func() agentapi.Pool { return agentapi.Pool(pooled.Pool()) }
}
