// Package telemetry is the sending half of telemetry (spec 1.5, 4.5; control-plane reference 9): a durable outbox, the
// licence, and what an installation tells about itself. Nothing here ever stops anything else: whoever records something
// does not wait for the collector. DESIGN.md says how the outbox keeps its promises.
package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/beacon"
)

// Config says what is sent where. Zero durations and bounds take the defaults named.
type Config struct {
	Dir      string // of the outbox; belongs to the sender
	URL      string // of the collector; "" = nothing is ever sent
	Key      string // licence key; "" = nothing is ever sent
	Version  string // of slipway (spec 9.3)
	Switches beacon.Switches
	Off      bool   // phoning home is switched off as a whole for usage and operational telemetry; billing goes on
	Salt     []byte // of the installation, for hashed identifiers

	Refresh     time.Duration // between verifications of the licence; 300 s
	Export      time.Duration // between exports of metrics, traces and logs; 60 s
	UsageEvery  time.Duration // between usage snapshots; 24 h, at 02:00 UTC
	Slow        time.Duration // requests that take longer are traced; 2 s
	RetryMin    time.Duration // first pause after a failure, doubled each time; 1 s
	RetryMax    time.Duration // longest pause; 5 min
	Billing     int64         // bytes of billing telemetry that may wait; 256 MiB
	Operational int64         // bytes of operational telemetry that may wait, then the oldest goes; 32 MiB

	Now func() time.Time
	// Log gets what the sender has to say; it must not lead back to Handler.
	Log *slog.Logger
	// Measure tells numbers about the installation at the moment; nil = none.
	Measure func(ctx context.Context) ([]Metric, error)
	// Usage tells the measures of a usage snapshot; nil = none are sent.
	Usage func(ctx context.Context) (map[string]int64, error)
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.Refresh, 300*time.Second)
	def(&c.Export, time.Minute)
	def(&c.UsageEvery, 24*time.Hour)
	def(&c.Slow, 2*time.Second)
	def(&c.RetryMin, time.Second)
	def(&c.RetryMax, 5*time.Minute)
	if c.Billing == 0 {
		c.Billing = 256 << 20
	}
	if c.Operational == 0 {
		c.Operational = 32 << 20
	}
	if c.Off {
		c.Switches = beacon.Switches{NoLogs: true, NoMetrics: true, NoTraces: true, NoUsage: true}
	}
	return c
}

// Sender sends an installation's telemetry. It is safe for concurrent use.
type Sender struct {
	cfg     Config
	streams beacon.Streams
	offline string // why nothing is sent; "" = it is

	licence     *licence
	billing     *queue // nil offline
	operational *queue // nil offline
	known       *known
	requests    *requests
	logs        *gathered
	started     time.Time

	mu   sync.Mutex
	memo memo
}

// memo is what a sender remembers over restarts.
type memo struct {
	OnlineSince time.Time `json:"online_since"` // what was counted before is never sent; zero = offline
	UsageTo     time.Time `json:"usage_to"`     // end of the last usage snapshot
}

// outbox bounds.
const (
	billingSegment     = 4 << 20
	operationalSegment = 1 << 20
)

// Open opens the outbox. Without a collector or a licence that talks to one it makes a sender that never sends anything, and
// says so once.
func Open(cfg Config) (*Sender, error) {
	cfg = cfg.withDefaults()
	s := &Sender{cfg: cfg, known: newKnown(), requests: newRequests(cfg.Slow, cfg.Now), logs: &gathered{redactor: beacon.Redactor{Salt: cfg.Salt}}, started: cfg.Now()}
	if s.offline = cfg.offline(); s.offline != "" {
		cfg.Log.Info("no telemetry is sent", "reason", s.offline)
		return s, s.forgetOnline()
	}
	s.streams = beacon.StreamsOf(cfg.Version, cfg.Key, cfg.Switches)
	to, err := newCollector(cfg.URL, cfg.Now)
	if err != nil {
		return nil, err
	}
	if err := s.openQueues(to); err != nil {
		return nil, err
	}
	return s, s.rememberOnline()
}

// offline says why nothing is sent (spec 4.5, 9.3; control-plane reference 9); "" = something is.
func (c Config) offline() string {
	switch {
	case c.URL == "":
		return "no telemetry URL is configured"
	case c.Key == "":
		return "no licence is configured; give one with --license"
	case beacon.KindOf(c.Key) == beacon.Offline:
		return "the licence is an offline one"
	case !beacon.StreamsOf(c.Version, c.Key, c.Switches).Billing:
		return "this version is before 0.9.0"
	}
	return ""
}

func (s *Sender) openQueues(to collector) error {
	dir := s.cfg.Dir
	billing, err := openJournal(journalConfig{
		dir: filepath.Join(dir, "billing"), segmentBytes: billingSegment, maxBytes: s.cfg.Billing, name: s.known.note, lost: s.known.lost,
	})
	if err != nil {
		return err
	}
	operational, err := openJournal(journalConfig{
		dir: filepath.Join(dir, "operational"), segmentBytes: operationalSegment, maxBytes: s.cfg.Operational, dropOldest: true,
	})
	if err != nil {
		return errors.Join(err, billing.close())
	}
	warn := func(message string) func(error) {
		return func(err error) { s.cfg.Log.Warn(message, "error", err.Error()) }
	}
	s.licence = openLicence(dir, s.cfg.Key, s.cfg.Refresh, to, s.cfg.Now, warn("licence not verified; everything goes on"))
	for _, q := range []struct {
		queue   **queue
		journal *journal
		message string
	}{{&s.billing, billing, "billing telemetry waits"}, {&s.operational, operational, "operational telemetry waits"}} {
		*q.queue = newQueue(q.journal, to, s.licence, s.cfg.Now)
		(*q.queue).retryMin, (*q.queue).retryMax, (*q.queue).onError = s.cfg.RetryMin, s.cfg.RetryMax, warn(q.message)
	}
	s.billing.refusals, s.billing.taken = filepath.Join(dir, "refused.jsonl"), s.known.taken
	return nil
}

// Online says whether anything is sent.
func (s *Sender) Online() bool { return s.offline == "" }

// OnlineSince is when the installation began to send: what was counted before is never sent.
func (s *Sender) OnlineSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memo.OnlineSince
}

// Watch returns a handler that serves as next and tells of its requests.
func (s *Sender) Watch(service string, next http.Handler) http.Handler {
	if !s.streams.Metrics && !s.streams.Traces {
		return next
	}
	return s.requests.watch(service, next)
}

// Handler returns a log handler that passes everything on to next and sends warnings and errors.
func (s *Sender) Handler(next slog.Handler) slog.Handler {
	if !s.streams.Logs {
		return next
	}
	return handler{next: next, to: s.logs}
}

// Run verifies, gathers and sends until ctx ends.
func (s *Sender) Run(ctx context.Context) error {
	if !s.Online() {
		<-ctx.Done()
		return ctx.Err()
	}
	var all sync.WaitGroup
	for _, loop := range []func(context.Context){s.licence.run, s.billing.run, s.operational.run, s.exports, s.snapshots} {
		all.Go(func() { loop(ctx) })
	}
	all.Wait()
	return ctx.Err()
}

// Close closes the outbox.
func (s *Sender) Close() error {
	if !s.Online() {
		return nil
	}
	return errors.Join(s.billing.journal.close(), s.operational.journal.close())
}

// exports queues what was gathered, at every interval and at the end.
func (s *Sender) exports(ctx context.Context) {
	for sleep(ctx, s.cfg.Export) {
		s.queueSignals(ctx)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	s.queueSignals(last)
}

func (s *Sender) queueSignals(ctx context.Context) {
	list := s.signals(ctx, true)
	if err := s.operational.add(list); err != nil {
		s.cfg.Log.Warn("operational telemetry not queued", "error", err.Error())
	}
}

// signals writes what was gathered as OTLP; with reset it is gathered anew.
func (s *Sender) signals(ctx context.Context, reset bool) []record {
	var out []record
	put := func(kind byte, request map[string]any) {
		payload, err := json.Marshal(request)
		if err != nil {
			s.cfg.Log.Warn("telemetry not written", "error", err.Error())
			return
		}
		out = append(out, record{kind, payload})
	}
	r, v := s.resource(), s.cfg.Version
	if s.streams.Metrics {
		list := append(s.requests.metrics(reset), s.losses()...)
		if s.cfg.Measure != nil {
			more, err := s.cfg.Measure(ctx)
			if err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn("the installation could not be measured", "error", err.Error())
			}
			list = append(list, more...)
		}
		put(kindMetrics, export(r, v, "resourceMetrics", "scopeMetrics", "metrics", metricsOf(s.logs.redactor, list, s.started, s.cfg.Now())))
	}
	if spans := s.requests.takeSpans(reset); s.streams.Traces && len(spans) > 0 {
		put(kindTraces, export(r, v, "resourceSpans", "scopeSpans", "spans", spans))
	}
	if records := s.logs.take(reset); s.streams.Logs && len(records) > 0 {
		put(kindLogs, export(r, v, "resourceLogs", "scopeLogs", "logRecords", records))
	}
	return out
}

// losses tells what of operational telemetry there was no room for.
func (s *Sender) losses() []Metric {
	_, _, _, dropped, _ := s.operational.journal.size()
	var out []Metric
	for _, n := range []struct {
		component string
		lost      int64
	}{{"traces", s.requests.lost()}, {"logs", s.logs.lost()}, {"outbox", dropped}} {
		out = append(out, Metric{
			Name: "platform_telemetry_dropped", Unit: "1", Description: "Items of telemetry dropped for want of room",
			Value: float64(n.lost), Total: true, Attributes: map[string]string{"component": n.component},
		})
	}
	return out
}

func (s *Sender) resource() resource {
	list, _ := attributesOf(s.logs.redactor, map[string]string{
		"service.name": "slipway", "service.version": s.cfg.Version, "service.instance.id": s.cfg.Dir,
		"os.type": runtime.GOOS, "host.arch": runtime.GOARCH, "telemetry.sdk.name": "slipway", "telemetry.sdk.language": "go",
	})
	return resource{Attributes: list}
}
