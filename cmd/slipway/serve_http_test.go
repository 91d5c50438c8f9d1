package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/api/agentapi"
)

func TestHTTPOfTheConfiguration(t *testing.T) {
	t.Parallel()
	c, err := readAppConfig([]byte(`{"http":{"app":"./web.py:app","enable_custom_route_auth":true,"middleware_order":"auth_first","mount_prefix":"/x/",
		"disable_store":true,"disable_meta":true,"configurable_headers":{"includes":["x-*"],"excludes":["x-a"]},
		"cors":{"allow_origins":["http://a"],"allow_origin_regex":"http://.*","max_age":5}}}`), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	got := c.HTTP.lay(agentapi.Config{AllowOrigins: []string{"http://environment"}})
	if want := (agentapi.AppConfig{There: true, RouteAuth: true, AuthFirst: true}); got.App != want {
		t.Errorf("app: got %+v, want %+v", got.App, want)
	}
	if !reflect.DeepEqual(got.Disable, []string{"store", "meta"}) || !reflect.DeepEqual(got.AllowOrigins, []string{"http://a"}) || !got.FixedCORS {
		t.Errorf("got %+v", got)
	}
	if got.CORS.OriginPattern == nil || *got.CORS.MaxAge != 5 || got.ConfigurableHeaders.Excludes[0] != "x-a" {
		t.Errorf("got %+v", got)
	}
	if a, b := c.HTTP.prefix(""), c.HTTP.prefix("/environment"); a != "/x" || b != "/environment" {
		t.Errorf("prefixes: got %q and %q", a, b)
	}
	for config, want := range map[string]string{
		`{"http":{"middleware_order":"last"}}`:                  "http.middleware_order",
		`{"http":{"mount_prefix":"x"}}`:                         "http.mount_prefix",
		`{"http":{"cors":{"allow_origin_regex":"http://(.*"}}}`: "http.cors.allow_origin_regex",
	} {
		if _, err := readAppConfig([]byte(config), func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", config, err, want)
		}
	}
}
