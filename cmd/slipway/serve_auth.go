package main

import (
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/api/agentapi"
	"github.com/slipway-dev/slipway/engine"
)

// authConfig is what the graph configuration's `auth` says beside its path (agent-server reference 12).
type authConfig struct {
	NoStudio bool              `json:"disable_studio_auth"`
	OpenAPI  agentapi.Security `json:"openapi"`
	Cache    *struct {
		Keys []string `json:"cache_keys"`
		TTL  *float64 `json:"ttl_seconds"`
		Size *int     `json:"max_size"`
	} `json:"cache"`
}

const (
	// authCacheTTL is how long a user is remembered where the configuration has a cache but no time.
	authCacheTTL = time.Minute
	// longestAuthCache keeps the time within what a time.Duration can say.
	longestAuthCache = 366 * 24 * time.Hour
)

func (c authConfig) check() error {
	if c.Cache == nil {
		return nil
	}
	if t := c.Cache.TTL; t != nil && !(*t >= 0) {
		return fmt.Errorf("auth.cache.ttl_seconds is %v; give a number of seconds from 0", *t)
	}
	if n := c.Cache.Size; n != nil && *n < 1 {
		return fmt.Errorf("auth.cache.max_size is %d; give a whole number from 1", *n)
	}
	return nil
}

// engine is the configuration as the engine takes it. studio is what the environment allows debugging UIs.
func (c authConfig) engine(studio engine.Studio) engine.AuthConfig {
	out := engine.AuthConfig{Studio: studio}
	if c.NoStudio {
		out.Studio = engine.Studio{}
	}
	if c.Cache == nil {
		return out
	}
	out.CacheKeys, out.CacheTTL = c.Cache.Keys, authCacheTTL
	if t := c.Cache.TTL; t != nil {
		out.CacheTTL = time.Duration(min(*t, longestAuthCache.Seconds()) * float64(time.Second))
	}
	if c.Cache.Size != nil {
		out.CacheSize = *c.Cache.Size
	}
	return out
}

// shortestStudioKey keeps out keys that can be guessed.
const shortestStudioKey = 16

// studio reads whom the server takes for a debugging UI: who has the key, or, on a developer's own machine, anybody who says so.
func (e *environment) studio() engine.Studio {
	s := engine.Studio{Key: e.getenv("SLIPWAY_STUDIO_KEY"), Open: e.flag("SLIPWAY_STUDIO_OPEN")}
	if s.Key != "" && len(s.Key) < shortestStudioKey {
		e.problems = append(e.problems, fmt.Errorf("SLIPWAY_STUDIO_KEY has %d characters; give one of at least %d", len(s.Key), shortestStudioKey))
	}
	return s
}

func (e *environment) flag(name string) bool {
	switch e.getenv(name) {
	case "true", "1":
		return true
	case "", "false", "0":
		return false
	}
	e.wrong(name, "must be true or false")
	return false
}
