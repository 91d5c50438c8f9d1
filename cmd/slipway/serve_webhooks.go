package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/webhook"
)

// webhookConfig is the key `webhooks` of the graph configuration (agent-server reference 4.4).
type webhookConfig struct {
	EnvPrefix *string           `json:"env_prefix"`
	Headers   map[string]string `json:"headers"`
	Payload   []string          `json:"payload"`
	URL       struct {
		RequireHTTPS    bool     `json:"require_https"`
		AllowedDomains  []string `json:"allowed_domains"`
		AllowedPorts    []int    `json:"allowed_ports"`
		MaxURLLength    int      `json:"max_url_length"`
		DisableLoopback *bool    `json:"disable_loopback"`
	} `json:"url"`
}

// reference is a variable in a header's value: ${{ env.NAME }}.
var reference = regexp.MustCompile(`\$\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)

// resolve puts the environment's values into the headers; a variable that is missing, or outside the prefix, stops the start.
func (w *webhookConfig) resolve(getenv func(string) string) error {
	prefix := "LG_WEBHOOK_"
	if w.EnvPrefix != nil {
		prefix = *w.EnvPrefix
	}
	for name, value := range w.Headers {
		var wrong error
		w.Headers[name] = reference.ReplaceAllStringFunc(value, func(found string) string {
			variable := reference.FindStringSubmatch(found)[1]
			switch {
			case !strings.HasPrefix(variable, prefix):
				wrong = fmt.Errorf("webhooks.headers.%s names %s; only variables that begin with %s may be sent (webhooks.env_prefix)", name, variable, prefix)
			case getenv(variable) == "":
				wrong = fmt.Errorf("webhooks.headers.%s needs the environment variable %s; set it as a secret of the deployment or in env", name, variable)
			}
			return getenv(variable)
		})
		if wrong != nil {
			return wrong
		}
		if strings.ContainsAny(w.Headers[name], "\r\n") {
			return fmt.Errorf("webhooks.headers.%s has a line break in its value", name)
		}
	}
	return nil
}

func (c appConfig) webhookPolicy() engine.WebhookPolicy {
	url := c.Webhooks.URL
	return engine.WebhookPolicy{
		Disabled: c.HTTP.DisableWebhooks, RequireHTTPS: url.RequireHTTPS, AllowedDomains: url.AllowedDomains, AllowedPorts: url.AllowedPorts,
		MaxURLLength: url.MaxURLLength, AllowLoopback: c.allowsLoopback(), Headers: c.Webhooks.Headers, Payload: c.Webhooks.Payload,
	}
}

func (c appConfig) allowsLoopback() bool {
	disabled := c.Webhooks.URL.DisableLoopback
	return disabled != nil && !*disabled
}

// webhookSender keeps deliveries from this machine, unless the configuration allows it, and from cloud metadata always.
func (c appConfig) webhookSender() *webhook.Sender {
	cfg := webhook.Config{Clock: now, Refuse: webhook.NotHere}
	if c.allowsLoopback() {
		cfg.Refuse = webhook.NotMetadata
	}
	return webhook.New(cfg)
}
