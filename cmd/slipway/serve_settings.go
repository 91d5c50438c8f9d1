package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/engine"
)

// serveSettings are the settings of an agent server (agent-server reference 18).
type serveSettings struct {
	workers     int // processes per language
	slots       int // runs at once per process
	runTimeout  time.Duration
	maxAttempts int
	drainGrace  time.Duration
	streamTTL   time.Duration
	maxBody     int64
	origins     []string
	mountPrefix string
	level       slog.Level
	studio      engine.Studio
	log         logForm
	// metricPrefix begins the names of metrics; "" is the default.
	metricPrefix string
	// traceInterval is the interval in which runs are counted; the platform sets it.
	traceInterval time.Duration
}

// readServeSettings reads the environment; everything that is wrong is told at once.
func readServeSettings(getenv func(string) string) (serveSettings, error) {
	e := environment{getenv: getenv}
	s := serveSettings{
		workers:     e.integer("SLIPWAY_WORKERS", 1, 1, 256),
		slots:       e.integer("N_JOBS_PER_WORKER", 10, 1, 10000),
		runTimeout:  e.seconds("BG_JOB_TIMEOUT_SECS", 86400, 1, 31536000),
		maxAttempts: e.integer("BG_JOB_MAX_RETRIES", 3, 1, 100),
		drainGrace:  e.seconds("BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS", 180, 1, 3600),
		streamTTL:   e.seconds("RESUMABLE_STREAM_TTL_SECONDS", 120, 1, 604800),
		maxBody:     int64(e.integer("HTTP_MAX_REQUEST_BODY_BYTES", 300<<20, 1, math.MaxInt)),
		mountPrefix: e.prefix("MOUNT_PREFIX"),
		level:       e.level("LOG_LEVEL"),
		log:         logForm{json: e.boolean("LOG_JSON", false), color: e.boolean("LOG_COLOR", true)},
		studio:      e.studio(),

		metricPrefix: e.metricPrefix("METRIC_PREFIX"),

		traceInterval: e.seconds(traceIntervalEnv, 3600, 0.001, 86400),
	}
	for _, o := range strings.Split(getenv("CORS_ALLOW_ORIGINS"), ",") {
		if o = strings.TrimSpace(o); o != "" {
			s.origins = append(s.origins, o)
		}
	}
	e.graphConfigs("LANGGRAPH_CONFIG")
	return s, errors.Join(e.problems...)
}

// environment reads settings and collects what is wrong with them.
type environment struct {
	getenv   func(string) string
	problems []error
}

func (e *environment) wrong(name, format string, args ...any) {
	e.problems = append(e.problems, fmt.Errorf("%s=%q: %s", name, e.getenv(name), fmt.Sprintf(format, args...)))
}

func (e *environment) integer(name string, fallback, low, high int) int {
	text := strings.TrimSpace(e.getenv(name))
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		e.wrong(name, "must be a whole number from %d to %d", low, high)
		return fallback
	}
	return n
}

func (e *environment) boolean(name string, fallback bool) bool {
	text := strings.TrimSpace(e.getenv(name))
	if text == "" {
		return fallback
	}
	b, err := strconv.ParseBool(strings.ToLower(text))
	if err != nil {
		e.wrong(name, "must be true or false")
		return fallback
	}
	return b
}

func (e *environment) seconds(name string, fallback, low, high float64) time.Duration {
	text, n := strings.TrimSpace(e.getenv(name)), fallback
	if text != "" {
		var err error
		if n, err = strconv.ParseFloat(text, 64); err != nil || !(n >= low && n <= high) {
			e.wrong(name, "must be a number of seconds from %v to %v", low, high)
			n = fallback
		}
	}
	return time.Duration(n * float64(time.Second))
}

func (e *environment) prefix(name string) string {
	p := strings.TrimSuffix(e.getenv(name), "/")
	if p != "" && !strings.HasPrefix(p, "/") {
		e.wrong(name, "must start with a slash")
	}
	return p
}

// metricForm is what the name of a metric may begin with.
var metricForm = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)

func (e *environment) metricPrefix(name string) string {
	p := strings.TrimSpace(e.getenv(name))
	if p != "" && (len(p) > 64 || !metricForm.MatchString(p)) {
		e.wrong(name, "must be at most 64 letters, digits, underscores and colons, and not begin with a digit")
		return ""
	}
	return p
}

func (e *environment) level(name string) slog.Level {
	text := strings.ToUpper(e.getenv(name))
	levels := map[string]slog.Level{
		"": slog.LevelInfo, "DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo, "WARNING": slog.LevelWarn, "WARN": slog.LevelWarn,
		"ERROR": slog.LevelError, "CRITICAL": slog.LevelError,
	}
	l, ok := levels[text]
	if !ok {
		e.wrong(name, "must be DEBUG, INFO, WARNING, ERROR or CRITICAL")
	}
	return l
}

func (e *environment) graphConfigs(name string) {
	raw := e.getenv(name)
	if raw == "" {
		return
	}
	var all map[string]graphConfig
	if err := json.Unmarshal([]byte(raw), &all); err != nil {
		e.wrong(name, "must be a JSON object from graph id to {\"configurable\"} or {\"context\"}: %v", err)
	}
}
