package main

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/engine"
)

func TestAuthConfig(t *testing.T) {
	t.Parallel()
	studio := engine.Studio{Key: "0123456789abcdef"}
	for config, want := range map[string]engine.AuthConfig{
		`{}`: {Studio: studio},
		`{"auth":{"path":"./a.py:auth","disable_studio_auth":true}}`:                           {},
		`{"auth":{"cache":{"cache_keys":["authorization"]}}}`:                                  {Studio: studio, CacheTTL: time.Minute},
		`{"auth":{"cache":{"cache_keys":["authorization"],"ttl_seconds":1.5,"max_size":7}}}`:   {Studio: studio, CacheTTL: 1500 * time.Millisecond, CacheSize: 7},
		`{"auth":{"cache":{"cache_keys":["authorization"],"ttl_seconds":1e300,"max_size":1}}}`: {Studio: studio, CacheTTL: longestAuthCache, CacheSize: 1},
		`{"auth":{"cache":{"cache_keys":["authorization"],"ttl_seconds":0}}}`:                  {Studio: studio},
	} {
		c, err := readAppConfig([]byte(config), func(string) string { return "" })
		if err != nil {
			t.Errorf("%s: %v", config, err)
			continue
		}
		got := c.Auth.engine(studio)
		if got.Studio != want.Studio || got.CacheTTL != want.CacheTTL || got.CacheSize != want.CacheSize {
			t.Errorf("%s: got %+v, want %+v", config, got, want)
		}
	}
}

func TestAuthConfigNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{"auth":{"cache":{"ttl_seconds":-1}}}`: "auth.cache.ttl_seconds is -1",
		`{"auth":{"cache":{"max_size":0}}}`:     "auth.cache.max_size is 0",
	} {
		_, err := readAppConfig([]byte(config), func(string) string { return "" })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", config, err, want)
		}
	}
}

func TestStudioSettings(t *testing.T) {
	t.Parallel()
	read := func(values map[string]string) (serveSettings, error) {
		return readServeSettings(func(name string) string { return values[name] })
	}
	s, err := read(map[string]string{"SLIPWAY_STUDIO_KEY": "0123456789abcdef", "SLIPWAY_STUDIO_OPEN": "true"})
	if err != nil || s.studio != (engine.Studio{Key: "0123456789abcdef", Open: true}) {
		t.Errorf("got %+v, %v", s.studio, err)
	}
	if s, err := read(nil); err != nil || s.studio != (engine.Studio{}) {
		t.Errorf("got %+v, %v; want nobody let in", s.studio, err)
	}
	for name, value := range map[string]string{"SLIPWAY_STUDIO_KEY": "short", "SLIPWAY_STUDIO_OPEN": "maybe"} {
		if _, err := read(map[string]string{name: value}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: got %v", name, value, err)
		} else if name == "SLIPWAY_STUDIO_KEY" && strings.Contains(err.Error(), value+";") {
			t.Errorf("the key stands in the message: %v", err)
		}
	}
}
