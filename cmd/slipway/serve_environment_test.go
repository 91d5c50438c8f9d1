package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/graphconfig"
)

// getenvOf reads a map as the environment.
func getenvOf(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

// Every server setting of agent-server reference 18 is honoured, and a value that is wrong stops the start with a sentence
// that names it.
func TestServerSettingsAreHonouredOrRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value, wrong string // wrong "" = every text is right
		of           func(serveSettings) any
		want, absent any
	}{
		"N_JOBS_PER_WORKER":                 {"3", "0", func(s serveSettings) any { return s.slots }, 3, 10},
		"SLIPWAY_WORKERS":                   {"2", "many", func(s serveSettings) any { return s.workers }, 2, 1},
		"BG_JOB_TIMEOUT_SECS":               {"1.5", "-1", func(s serveSettings) any { return s.runTimeout }, 1500 * time.Millisecond, 24 * time.Hour},
		"BG_JOB_MAX_RETRIES":                {"1", "0", func(s serveSettings) any { return s.maxAttempts }, 1, 3},
		"BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS": {"7", "3601", func(s serveSettings) any { return s.drainGrace }, 7 * time.Second, 180 * time.Second},
		"RESUMABLE_STREAM_TTL_SECONDS":      {"9", "x", func(s serveSettings) any { return s.streamTTL }, 9 * time.Second, 120 * time.Second},
		"HTTP_MAX_REQUEST_BODY_BYTES":       {"1000", "1e3", func(s serveSettings) any { return s.maxBody }, int64(1000), int64(300 << 20)},
		"MOUNT_PREFIX":                      {"/a/", "a", func(s serveSettings) any { return s.mountPrefix }, "/a", ""},
		"CORS_ALLOW_ORIGINS":                {"http://a, http://b", "", func(s serveSettings) any { return strings.Join(s.origins, "|") }, "http://a|http://b", ""},
		"LOG_LEVEL":                         {"warning", "loud", func(s serveSettings) any { return s.level }, slog.LevelWarn, slog.LevelInfo},
		"LOG_JSON":                          {"True", "perhaps", func(s serveSettings) any { return s.log.json }, true, false},
		"LOG_COLOR":                         {"0", "red", func(s serveSettings) any { return s.log.color }, false, true},
		"METRIC_PREFIX":                     {"own_", "1 x", func(s serveSettings) any { return s.metricPrefix }, "own_", ""},
		"LANGGRAPH_CONFIG":                  {`{"g":{"context":{}}}`, `[]`, func(serveSettings) any { return true }, true, true},
	} {
		s, err := readServeSettings(getenvOf(map[string]string{name: c.value}))
		if err != nil || c.of(s) != c.want {
			t.Errorf("%s=%s: got %v (%v), want %v", name, c.value, c.of(s), err, c.want)
		}
		if s, err = readServeSettings(getenvOf(nil)); err != nil || c.of(s) != c.absent {
			t.Errorf("without %s: got %v (%v), want %v", name, c.of(s), err, c.absent)
		}
		if c.wrong == "" {
			continue
		}
		if _, err = readServeSettings(getenvOf(map[string]string{name: c.wrong})); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s=%q: must ", name, c.wrong)) {
			t.Errorf("%s=%s: got %v, want a sentence that names it", name, c.wrong, err)
		}
	}
}

func TestListenAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flag string
		env  map[string]string
		want string // "" = refused
	}{
		{"", nil, "127.0.0.1:2024"},
		{"127.0.0.1:0", map[string]string{"PORT": "9", "LANGGRAPH_SERVER_HOST": "x"}, "127.0.0.1:0"},
		{"", map[string]string{"PORT": "8000"}, ":8000"},
		{"", map[string]string{"PORT": "8000", "LANGGRAPH_SERVER_PORT": "8001"}, ":8001"},
		{"", map[string]string{"LANGGRAPH_SERVER_HOST": "0.0.0.0"}, "0.0.0.0:2024"},
		{"", map[string]string{"LANGGRAPH_SERVER_HOST": "[::1]", "PORT": "80"}, "[::1]:80"},
		{"", map[string]string{"PORT": "http"}, ""},
		{"", map[string]string{"LANGGRAPH_SERVER_PORT": "70000"}, ""},
	} {
		got, err := listenAddress(c.flag, getenvOf(c.env))
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q %v: got %q (%v), want %q", c.flag, c.env, got, err, c.want)
		}
	}
}

// Variables of other servers that mean nothing here are told once, each with its reason; those that are not set are not.
func TestUnusedVariablesAreTold(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tellUnused(slog.New(slog.NewTextHandler(&out, nil)), getenvOf(map[string]string{"DATABASE_URI": "postgres://u:secret@h/d", "REDIS_URI": "x", "BG_JOB_ISOLATED_LOOPS": "true"}))
	for _, want := range []string{"name=DATABASE_URI", "SLIPWAY_DATABASE_URL", "name=REDIS_URI", "name=BG_JOB_ISOLATED_LOOPS"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not told:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "secret") || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("told too much:\n%s", &out)
	}
}

// Every variable that agent-server reference 18 names for the server is a setting, stands above a key of the file, or is
// told to be unused.
func TestEveryVariableOfTheReferenceHasATreatment(t *testing.T) {
	t.Parallel()
	settings := []string{
		"N_JOBS_PER_WORKER", "BG_JOB_TIMEOUT_SECS", "BG_JOB_MAX_RETRIES", "BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS", "RESUMABLE_STREAM_TTL_SECONDS",
		"HTTP_MAX_REQUEST_BODY_BYTES", "MOUNT_PREFIX", "CORS_ALLOW_ORIGINS", "LOG_LEVEL", "LOG_JSON", "LOG_COLOR", "METRIC_PREFIX", "LANGGRAPH_CONFIG",
	}
	for _, name := range settings {
		asked := false
		_, _ = readServeSettings(func(n string) string { asked = asked || n == name; return "" })
		if !asked {
			t.Errorf("%s is not read", name)
		}
	}
	for _, name := range []string{
		"LANGSERVE_GRAPHS", "LANGGRAPH_AUTH", "LANGGRAPH_HTTP", "LANGGRAPH_STORE", "LANGGRAPH_CHECKPOINTER", "LANGGRAPH_UI", "LANGGRAPH_UI_CONFIG",
		"LANGGRAPH_WEBHOOKS", "LANGGRAPH_ENCRYPTION",
	} {
		if graphconfig.Overrides()[name] == "" {
			t.Errorf("%s stands above no key", name)
		}
	}
	for _, name := range []string{
		"DATABASE_URI", "POSTGRES_URI", "REDIS_URI", "BG_JOB_ISOLATED_LOOPS", "LANGGRAPH_CLOUD_LICENSE_KEY", "LSD_PROTOCOL_V2_BUFFER_SIZE", "A2A_A2UI_ENABLED",
		"A2A_A2UI_TOOL_CALL_RESULTS", "A2A_ALLOWED_TOOL_CALL_RESULTS",
	} {
		if !slices.ContainsFunc(unused(), func(v unusedVariable) bool { return v.name == name && v.reason != "" }) {
			t.Errorf("%s is neither honoured nor told", name)
		}
	}
}

// What user code reads is in its workers' environment, the file's env below the process's own.
func TestWorkersGetTheVariablesOfUserCode(t *testing.T) {
	names := []string{
		"LANGSMITH_API_KEY", "LANGSMITH_TRACING", "LANGSMITH_ENDPOINT", "LANGSMITH_PROJECT", "LANGCHAIN_API_KEY", "LANGCHAIN_TRACING_V2", "LANGCHAIN_ENDPOINT",
		"LANGCHAIN_PROJECT", "LANGGRAPH_API_KEY", "LANGGRAPH_API_URL", "LANGGRAPH_STRICT_MSGPACK", "LANGGRAPH_AES_KEY", "LANGGRAPH_AES_JSON_KEYS",
		"LANGGRAPH_DELTA_MAX_SUPERSTEPS_SINCE_SNAPSHOT", "LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS", "LANGGRAPH_NODE_LOADER",
	}
	for _, name := range names {
		t.Setenv(name, "of "+name)
	}
	t.Setenv("FROM_BOTH", "process")
	s := agentServer{bundle: slipway.Bundle{Env: map[string]string{"FROM_BOTH": "file", "FROM_FILE": "file"}}}
	got := s.environment()
	for _, want := range append([]string{"FROM_BOTH=process", "FROM_FILE=file"}, names...) {
		if !strings.Contains(want, "=") {
			want += "=of " + want
		}
		if !slices.Contains(got, want) {
			t.Errorf("%s is not in the workers' environment", want)
		}
	}
}

func TestTracingIsOnWithAKeyOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, false}, {map[string]string{"LANGSMITH_TRACING": "true"}, false}, {map[string]string{"LANGSMITH_API_KEY": "k"}, true},
		{map[string]string{"LANGCHAIN_API_KEY": "k", "LANGCHAIN_TRACING_V2": "False"}, false}, {map[string]string{"LANGSMITH_API_KEY": "k", "LANGSMITH_TRACING": "true"}, true},
	} {
		if got := tracing(getenvOf(c.env)); got != c.want {
			t.Errorf("%v: got %v, want %v", c.env, got, c.want)
		}
	}
}

func TestLogForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		form logForm
		want string
	}{
		{logForm{json: true}, `"level":"WARNING","message":"hot"`},
		{logForm{color: true}, "\x1b[33mtime="},
		{logForm{}, "time="},
		{logForm{}.under(true), `"message":"hot"`},
	} {
		var out bytes.Buffer
		newServeLog(&out, slog.LevelInfo, c.form).Warn("hot")
		if got := out.String(); !strings.Contains(got, c.want) || strings.HasPrefix(got, "\x1b") != (c.form.color && !c.form.json) {
			t.Errorf("%+v: got %q, want %q", c.form, got, c.want)
		}
	}
	if _, err := (&painter{w: io.Discard}).Write([]byte("x level=ERROR y\n")); err != nil {
		t.Error(err)
	}
}

// What the configuration's env says to the server counts like the process's own environment, which goes before it; what is
// the agent server's alone does not.
func TestTheConfigurationsEnvSpeaksToTheServerToo(t *testing.T) {
	t.Parallel()
	bundle := slipway.Bundle{Env: map[string]string{
		"N_JOBS_PER_WORKER": "3", "BG_JOB_MAX_RETRIES": "2", "LG_WEBHOOK_KEY": "s3", databaseURLEnv: "postgres://elsewhere",
	}}
	getenv := withEnv(bundle, getenvOf(map[string]string{"BG_JOB_MAX_RETRIES": "1"}))
	s, err := readServeSettings(getenv)
	if err != nil || s.slots != 3 || s.maxAttempts != 1 {
		t.Errorf("got %d slots and %d attempts (%v), want 3 and 1", s.slots, s.maxAttempts, err)
	}
	c, err := readAppConfig([]byte(`{"webhooks":{"headers":{"A":"Bearer ${{ env.LG_WEBHOOK_KEY }}"}}}`), getenv)
	if err != nil || c.Webhooks.Headers["A"] != "Bearer s3" {
		t.Errorf("got the header %q (%v), want the variable of env in it", c.Webhooks.Headers["A"], err)
	}
	if got := getenv(databaseURLEnv); got != "" {
		t.Errorf("env names the database %q", got)
	}
}
