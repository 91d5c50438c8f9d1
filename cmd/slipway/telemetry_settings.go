package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/beacon"
)

// The settings of telemetry in the environment (spec 8; control-plane reference 9).
const (
	licenseEnv        = "SLIPWAY_LICENSE"
	licenseKeyEnv     = "LANGSMITH_LICENSE_KEY"
	refreshEnv        = "LICENSE_REFRESH_INTERVAL_SECONDS"
	phoneHomeEnv      = "PHONE_HOME_ENABLED"
	phoneHomeUsageEnv = "PHONE_HOME_USAGE_REPORTING_ENABLED"
	loggingEnv        = "BEACON_LOGGING_ENABLED"
	metricsEnv        = "BEACON_METRICS_ENABLED"
	tracingEnv        = "BEACON_TRACING_ENABLED"
)

// telemetrySettings say what `slipway up` sends where.
type telemetrySettings struct {
	url, license, licenseFile     string
	given                         []string // switches as name=true or name=false
	interval, export, usage, slow time.Duration

	refresh  time.Duration
	switches beacon.Switches
	off      bool // PHONE_HOME_ENABLED = false
}

func (s *telemetrySettings) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.url, "telemetry-url", "", "address of the collector that telemetry is sent to; without one nothing is ever sent")
	flags.StringVar(&s.license, "license", "", "licence key; also "+licenseKeyEnv+" or "+licenseEnv+", which no process list shows")
	flags.StringVar(&s.licenseFile, "license-file", "", "file that holds the licence key")
	flags.StringArrayVar(&s.given, "telemetry", nil, "logs=false, metrics=false or traces=false sends none of these (repeatable); in a configuration file telemetry.logs and so on")
	flags.DurationVar(&s.interval, "trace-interval", time.Hour, "interval in which traces are counted (1ms to 24h)")
	flags.DurationVar(&s.export, "telemetry-export", time.Minute, "time between exports of metrics, traces and logs (100ms to 24h)")
	flags.DurationVar(&s.usage, "usage-interval", 24*time.Hour, "time between usage snapshots (1s to 8760h)")
	flags.DurationVar(&s.slow, "slow-request", 2*time.Second, "requests that take longer are traced in telemetry (1ms to 24h)")
}

// read completes the settings with the names that they have elsewhere in the environment (spec 8).
func (s *telemetrySettings) read(getenv func(string) string) error {
	if err := s.check(); err != nil {
		return err
	}
	file, err := s.switchesGiven()
	if err != nil {
		return err
	}
	if s.license, err = s.readLicense(getenv); err != nil {
		return err
	}
	if len(s.license) > beacon.MaxKeyLength || strings.ContainsAny(s.license, " \t\r\n") {
		return errors.New("the licence is no licence key; give the whole key as it was issued, in one line")
	}
	e := environment{getenv: getenv}
	s.refresh = e.seconds(refreshEnv, 300, 1, 86400)
	s.switches = beacon.Switches{
		NoLogs: !e.on(loggingEnv, file["logs"]), NoMetrics: !e.on(metricsEnv, file["metrics"]), NoTraces: !e.on(tracingEnv, file["traces"]),
		NoUsage: !e.on(phoneHomeUsageEnv, nil),
	}
	s.off = !e.on(phoneHomeEnv, nil)
	return errors.Join(e.problems...)
}

func (s *telemetrySettings) check() error {
	for _, f := range []struct {
		flag             string
		given, low, high time.Duration
	}{
		{"--trace-interval", s.interval, time.Millisecond, 24 * time.Hour},
		{"--telemetry-export", s.export, 100 * time.Millisecond, 24 * time.Hour},
		{"--usage-interval", s.usage, time.Second, 8760 * time.Hour},
		{"--slow-request", s.slow, time.Millisecond, 24 * time.Hour},
	} {
		if f.given < f.low || f.given > f.high {
			return fmt.Errorf("%s is %s; give a time from %s to %s", f.flag, f.given, f.low, f.high)
		}
	}
	return nil
}

// switchesGiven reads the switches config.telemetry.* (spec 8).
func (s *telemetrySettings) switchesGiven() (map[string]*bool, error) {
	out := map[string]*bool{}
	for _, text := range s.given {
		name, value, _ := strings.Cut(text, "=")
		on, err := strconv.ParseBool(value)
		if err != nil || name != "logs" && name != "metrics" && name != "traces" {
			return nil, fmt.Errorf("--telemetry %q is no switch; give logs, metrics or traces, each as NAME=true or NAME=false", text)
		}
		out[name] = &on
	}
	return out, nil
}

func (s *telemetrySettings) readLicense(getenv func(string) string) (string, error) {
	if s.license != "" || s.licenseFile == "" {
		return firstOf(s.license, getenv(licenseKeyEnv)), nil
	}
	raw, err := os.ReadFile(s.licenseFile)
	if err != nil {
		return "", fmt.Errorf("cannot read the licence: %w; correct --license-file", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// on reads a switch: the environment, else what was given, else on.
func (e *environment) on(name string, given *bool) bool {
	text := strings.TrimSpace(e.getenv(name))
	if text == "" {
		return given == nil || *given
	}
	v, err := strconv.ParseBool(text)
	if err != nil {
		e.wrong(name, "must be true or false")
	}
	return v
}
