package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/beacon"
)

func readTelemetry(t *testing.T, env map[string]string, args ...string) (telemetrySettings, error) {
	t.Helper()
	var s telemetrySettings
	cmd := &cobra.Command{Use: "up"}
	cmd.Flags().String("config", "", "")
	s.flags(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string { return env[name] }
	if err := settingsOf(cmd, getenv).read(); err != nil {
		return s, err
	}
	return s, s.read(getenv)
}

func TestTelemetrySettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, config := file("key", " lcl_file\n"), file("c.yaml", "telemetry-url: http://c\ntelemetry: {logs: false, traces: false}\nlicense: lcl_config\n")
	type want struct {
		url, license string
		switches     beacon.Switches
		off          bool
	}
	for name, test := range map[string]struct {
		env  map[string]string
		args []string
		want want
	}{
		"nothing":     {want: want{}},
		"flags":       {args: []string{"--telemetry-url", "http://a", "--license", "lcl_a"}, want: want{url: "http://a", license: "lcl_a"}},
		"environment": {env: map[string]string{"SLIPWAY_TELEMETRY_URL": "http://b", "SLIPWAY_LICENSE": "lcl_b"}, want: want{url: "http://b", license: "lcl_b"}},
		"old name":    {env: map[string]string{"LANGSMITH_LICENSE_KEY": "lcl_o"}, want: want{license: "lcl_o"}},
		"key file":    {env: map[string]string{"LANGSMITH_LICENSE_KEY": "lcl_o"}, args: []string{"--license-file", key}, want: want{license: "lcl_file"}},
		"file":        {args: []string{"--config", config}, want: want{url: "http://c", license: "lcl_config", switches: beacon.Switches{NoLogs: true, NoTraces: true}}},
		"all off": {
			env: map[string]string{
				"BEACON_LOGGING_ENABLED": "false", "BEACON_METRICS_ENABLED": "False", "BEACON_TRACING_ENABLED": "0", "PHONE_HOME_USAGE_REPORTING_ENABLED": "false",
			},
			want: want{switches: beacon.Switches{NoLogs: true, NoMetrics: true, NoTraces: true, NoUsage: true}},
		},
		"on":            {env: map[string]string{"BEACON_LOGGING_ENABLED": "true"}, args: []string{"--config", config}, want: want{url: "http://c", license: "lcl_config", switches: beacon.Switches{NoTraces: true}}},
		"no phone home": {env: map[string]string{"PHONE_HOME_ENABLED": "false"}, want: want{off: true}},
	} {
		s, err := readTelemetry(t, test.env, test.args...)
		if got := (want{s.url, s.license, s.switches, s.off}); err != nil || got != test.want {
			t.Errorf("%s: got %+v (%v), want %+v", name, got, err, test.want)
		}
	}
	for name, test := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"switch":   {map[string]string{"PHONE_HOME_USAGE_REPORTING_ENABLED": "off"}, nil, "PHONE_HOME_USAGE_REPORTING_ENABLED"},
		"unknown":  {nil, []string{"--telemetry", "billing=false"}, "billing=false"},
		"interval": {nil, []string{"--trace-interval", "48h"}, "--trace-interval"},
		"refresh":  {map[string]string{"LICENSE_REFRESH_INTERVAL_SECONDS": "0"}, nil, "LICENSE_REFRESH_INTERVAL_SECONDS"},
		"no file":  {nil, []string{"--license-file", filepath.Join(dir, "none")}, "--license-file"},
		"two keys": {nil, []string{"--license", "lcl_a lcl_b"}, "licence"},
	} {
		if _, err := readTelemetry(t, test.env, test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error that names %s", name, err, test.want)
		}
	}
}
