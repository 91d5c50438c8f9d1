package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/api/agentapi"
)

// httpConfig is `http` of the graph configuration (agent-server reference 1, 9).
type httpConfig struct {
	App             string              `json:"app"`
	RouteAuth       bool                `json:"enable_custom_route_auth"`
	MiddlewareOrder string              `json:"middleware_order"`
	MountPrefix     string              `json:"mount_prefix"`
	Configurable    agentapi.HeaderRule `json:"configurable_headers"`
	Logging         agentapi.HeaderRule `json:"logging_headers"`
	CORS            *corsConfig         `json:"cors"`

	DisableAssistants bool `json:"disable_assistants"`
	DisableThreads    bool `json:"disable_threads"`
	DisableRuns       bool `json:"disable_runs"`
	DisableStore      bool `json:"disable_store"`
	DisableMeta       bool `json:"disable_meta"`
	DisableUI         bool `json:"disable_ui"`
	DisableMCP        bool `json:"disable_mcp"`
	DisableA2A        bool `json:"disable_a2a"`
	DisableWebhooks   bool `json:"disable_webhooks"`
}

type corsConfig struct {
	Origins       []string `json:"allow_origins"`
	Methods       []string `json:"allow_methods"`
	Headers       []string `json:"allow_headers"`
	Credentials   *bool    `json:"allow_credentials"`
	OriginPattern string   `json:"allow_origin_regex"`
	Expose        []string `json:"expose_headers"`
	MaxAge        *int     `json:"max_age"`
}

func (c httpConfig) check() error {
	var errs []error
	if !slices.Contains([]string{"", "auth_first", "middleware_first"}, c.MiddlewareOrder) {
		errs = append(errs, fmt.Errorf("http.middleware_order is %q; use auth_first or middleware_first", c.MiddlewareOrder))
	}
	if c.MountPrefix != "" && !strings.HasPrefix(c.MountPrefix, "/") {
		errs = append(errs, fmt.Errorf("http.mount_prefix is %q; it must start with a slash", c.MountPrefix))
	}
	if c.CORS != nil {
		if _, err := regexp.Compile(c.CORS.OriginPattern); err != nil {
			errs = append(errs, fmt.Errorf("http.cors.allow_origin_regex is %q, which is no regular expression: %w", c.CORS.OriginPattern, err))
		}
	}
	return errors.Join(errs...)
}

// prefix is what stands before every path: MOUNT_PREFIX, else the configuration's.
func (c httpConfig) prefix(environment string) string {
	if environment != "" {
		return environment
	}
	return strings.TrimSuffix(c.MountPrefix, "/")
}

// disabled are the groups of routes that are not there.
func (c httpConfig) disabled() []string {
	var groups []string
	for _, group := range []struct {
		name string
		off  bool
	}{
		{"assistants", c.DisableAssistants},
		{"threads", c.DisableThreads},
		{"runs", c.DisableRuns},
		{"store", c.DisableStore},
		{"meta", c.DisableMeta},
		{"ui", c.DisableUI},
		{"mcp", c.DisableMCP},
		{"a2a", c.DisableA2A},
	} {
		if group.off {
			groups = append(groups, group.name)
		}
	}
	return groups
}

// lay puts what the configuration says over the settings of the environment.
func (c httpConfig) lay(api agentapi.Config) agentapi.Config {
	api.App = agentapi.AppConfig{There: c.App != "", RouteAuth: c.RouteAuth, AuthFirst: c.MiddlewareOrder == "auth_first"}
	api.Disable, api.ConfigurableHeaders, api.LoggingHeaders = c.disabled(), c.Configurable, c.Logging
	api.FixedCORS = len(api.AllowOrigins) > 0
	if c.CORS == nil {
		return api
	}
	api.FixedCORS = true
	if len(c.CORS.Origins) > 0 {
		api.AllowOrigins = c.CORS.Origins
	}
	api.CORS = agentapi.CORS{
		Methods: c.CORS.Methods, Headers: c.CORS.Headers, Expose: c.CORS.Expose, Credentials: c.CORS.Credentials, MaxAge: c.CORS.MaxAge,
	}
	if c.CORS.OriginPattern != "" {
		api.CORS.OriginPattern = regexp.MustCompile(c.CORS.OriginPattern) // check has compiled it
	}
	return api
}
