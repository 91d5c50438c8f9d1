package main

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

func TestAppConfigIsOverriddenByTheEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{"LANGGRAPH_CHECKPOINTER": `{"ttl":{"strategy":"keep_latest","default_ttl":5}}`}
	c, err := readAppConfig([]byte(`{"checkpointer":{"ttl":{"strategy":"delete","default_ttl":60,"sweep_interval_minutes":2,"sweep_limit":7}},"store":{"ttl":{"refresh_on_read":false,"default_ttl":3}}}`),
		func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if got := c.threadTTL(); got == nil || got.Strategy != agent.TTLKeepLatest || got.Minutes != 5 {
		t.Errorf("thread ttl: got %+v", got)
	}
	if every, limit := c.threadSweep(); every != 2*time.Minute || limit != 7 {
		t.Errorf("sweep: got %v %d", every, limit)
	}
	if got := c.items(); !got.KeepOnRead || *got.DefaultTTL != 3 {
		t.Errorf("items: got %+v", got)
	}
}

func TestAppConfigNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{"checkpointer":{"ttl":{"strategy":"burn"}}}`:   "checkpointer.ttl.strategy",
		`{"checkpointer":{"ttl":{"default_ttl":-1}}}`:    "checkpointer.ttl.default_ttl",
		`{"checkpointer":{"ttl":{"sweep_limit":0}}}`:     "checkpointer.ttl.sweep_limit",
		`{"store":{"ttl":{"sweep_interval_minutes":0}}}`: "store.ttl.sweep_interval_minutes",
		`{"store":{"ttl":{"default_ttl":"much"}}}`:       "store.ttl.default_ttl",
	} {
		_, err := readAppConfig([]byte(config), func(string) string { return "" })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error naming %s", config, err, want)
		}
	}
}

func TestWebhookHeadersTakeTheirVariables(t *testing.T) {
	t.Parallel()
	getenv := func(name string) string { return map[string]string{"LG_WEBHOOK_KEY": "s3", "OTHER": "x"}[name] }
	c, err := readAppConfig([]byte(`{"webhooks":{"headers":{"Authorization":"Bearer ${{ env.LG_WEBHOOK_KEY }}"}}}`), getenv)
	if err != nil || c.webhookPolicy().Headers["Authorization"] != "Bearer s3" {
		t.Errorf("got %v, %v", c.webhookPolicy().Headers, err)
	}
	for value, want := range map[string]string{"${{ env.OTHER }}": "env_prefix", "${{env.LG_WEBHOOK_NONE}}": "LG_WEBHOOK_NONE"} {
		if _, err := readAppConfig([]byte(`{"webhooks":{"headers":{"A":"`+value+`"}}}`), getenv); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error naming %s", value, err, want)
		}
	}
}
