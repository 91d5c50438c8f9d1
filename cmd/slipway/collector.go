package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/slipway-dev/slipway/api/beaconapi"
	"github.com/slipway-dev/slipway/beacon"
	"github.com/slipway-dev/slipway/intake"
	"github.com/slipway-dev/slipway/seal"
	"github.com/slipway-dev/slipway/store/postgres"
	"github.com/slipway-dev/slipway/store/sqlite"
	"github.com/slipway-dev/slipway/telemetry/otlphttp"
)

// collectorFiles are what a collector keeps in its data directory.
const (
	collectorDatabase = "collector.db"
	issuerKeysFile    = "issuer-keys.json"
)

// collectorGrace is how long requests may take to end when the collector stops.
const collectorGrace = 15 * time.Second

// collectorSettings are the flags of `slipway collector`.
type collectorSettings struct {
	data              collectorData
	listen            string
	forward           string
	forwardHeaders    []string
	rate              int
	keepBilling       int // days
	keepSignals       int // hours
	queueMB           int
	trustedProxies    []string
	enforce, perLicen bool
}

func collectorCommand() *cobra.Command {
	var s collectorSettings
	cmd := &cobra.Command{
		Use: "collector", Short: "Receive the telemetry of installations", Args: cobra.NoArgs,
		Long: "Run the collector that installations send telemetry to. It counts billing telemetry, and queues metrics, traces and\n" +
			"logs for an OTLP backend if there is one. `slipway license issue` makes licences for it, `slipway usage` shows what it\n" +
			"counted. Any OpenTelemetry exporter can send to http://ADDR/v1/beacon with the header X-License-Key.",
		RunE: func(cmd *cobra.Command, _ []string) error { return runCollector(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	s.data.flags(cmd)
	flags.StringVar(&s.listen, "listen", "127.0.0.1:4319", "address to listen on; port 0 takes a free one")
	flags.StringVar(&s.forward, "forward", "", "address of an OTLP/HTTP backend that metrics, traces and logs are sent on to")
	flags.StringArrayVar(&s.forwardHeaders, "forward-header", nil, "header of those requests, as Name=Value (repeatable)")
	flags.IntVar(&s.rate, "rate", intake.DefaultRate, "requests that an address, and a licence, may make in 10 s")
	flags.IntVar(&s.keepBilling, "keep-billing-days", int(intake.DefaultKeepBilling.Hours()/24), "days that transactions and snapshots are kept; totals stay")
	flags.IntVar(&s.keepSignals, "keep-signals-hours", int(intake.DefaultKeepSignals.Hours()), "hours that metrics, traces and logs wait at most")
	flags.IntVar(&s.queueMB, "queue-mb", intake.DefaultQueueBytes>>20, "megabytes of metrics, traces and logs that wait at most")
	flags.StringArrayVar(&s.trustedProxies, "trusted-proxy", nil, "network whose X-Forwarded-For is believed, as 10.0.0.0/8 (repeatable)")
	flags.BoolVar(&s.enforce, "enforce-redaction", false, "drop attributes and log records that an installation must not send")
	flags.BoolVar(&s.perLicen, "metrics-per-license", false, "show each licence's usage at /metrics, by its id")
	return cmd
}

func (s collectorSettings) check() error {
	for _, n := range []struct {
		flag             string
		value, low, most int
	}{
		{"rate", s.rate, 1, 10_000_000}, {"keep-billing-days", s.keepBilling, 32, 36_600},
		{"keep-signals-hours", s.keepSignals, 1, 24 * 366}, {"queue-mb", s.queueMB, 1, 1 << 20},
	} {
		if n.value < n.low || n.value > n.most {
			return fmt.Errorf("--%s is %d; give a number from %d to %d", n.flag, n.value, n.low, n.most)
		}
	}
	return nil
}

// exporter is the way to the backend, nil without one.
func (s collectorSettings) exporter() (beacon.Exporter, error) {
	if s.forward == "" {
		return nil, nil
	}
	headers := map[string]string{}
	for _, h := range s.forwardHeaders {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return nil, errors.New("--forward-header is not of the form Name=Value") // its value may be a secret
		}
		headers[name] = value
	}
	e, err := otlphttp.New(otlphttp.Config{Endpoint: s.forward, Headers: headers, Now: time.Now})
	if err != nil {
		return nil, fmt.Errorf("--forward: %w", err)
	}
	return e, nil
}

func (s collectorSettings) proxies() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range s.trustedProxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--trusted-proxy %q is no network; give one such as 10.0.0.0/8", text)
		}
		out = append(out, p)
	}
	return out, nil
}

// collectorData says where a collector keeps its data: keys and, unless a database is named, records in a directory.
type collectorData struct {
	dir, databaseURL string
}

// databaseVariable names a collector's database in the environment, where no other user sees its password.
const databaseVariable = "SLIPWAY_COLLECTOR_DATABASE_URL"

func (d *collectorData) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.dir, "data-dir", "", "directory of the collector's data")
	cmd.Flags().StringVar(&d.databaseURL, "database-url", "", "keep records in this PostgreSQL database (also "+databaseVariable+")")
	_ = cmd.MarkFlagRequired("data-dir")
}

// database is the address of the PostgreSQL database, "" without one.
func (d collectorData) database() string {
	if d.databaseURL != "" {
		return d.databaseURL
	}
	return os.Getenv(databaseVariable)
}

// collectorStore is a store that can be closed.
type collectorStore interface {
	beacon.Store
	io.Closer
}

func (d collectorData) openStore(ctx context.Context) (collectorStore, error) {
	if url := d.database(); url != "" {
		return postgres.OpenBeacon(ctx, url)
	}
	return sqlite.OpenBeacon(installation{dir: d.dir}.path(collectorDatabase))
}

// exists refuses a directory that no collector has used: commands that only look must not make one.
func (d collectorData) exists() error {
	if _, err := os.Stat(installation{dir: d.dir}.path(issuerKeysFile)); err != nil {
		return fmt.Errorf("%s holds no collector's data; name the --data-dir of `slipway collector`", d.dir)
	}
	return nil
}

// collector is an open collector: its store and what uses it.
type collector struct {
	*intake.Service
	store collectorStore
}

func (c collector) close() error { return c.store.Close() }

// open opens the data of a collector, making it where it is missing. Several processes may have it open.
func (d collectorData) open(ctx context.Context, cfg intake.Config) (collector, error) {
	where := installation{dir: d.dir}
	if err := where.prepare(); err != nil {
		return collector{}, err
	}
	store, err := d.openStore(ctx)
	if err != nil {
		return collector{}, err
	}
	if err := keysNotLost(ctx, where, store); err != nil {
		return collector{}, errors.Join(err, store.Close())
	}
	keys, err := seal.OpenIssuerKeys(where.path(issuerKeysFile), time.Now)
	if err != nil {
		return collector{}, errors.Join(err, store.Close())
	}
	cfg.Now, cfg.IDs = time.Now, func() string { return uuid.Must(uuid.NewV7()).String() }
	return collector{intake.New(store, keys, cfg), store}, nil
}

// keysNotLost refuses to make new keys where licences exist that only the old ones verify.
func keysNotLost(ctx context.Context, where installation, store beacon.Store) error {
	if _, err := os.Stat(where.path(issuerKeysFile)); !errors.Is(err, fs.ErrNotExist) {
		return nil // there, or OpenIssuerKeys will say what is wrong
	}
	return store.View(ctx, func(tx beacon.Tx) error {
		list, err := tx.Licences()
		if err == nil && len(list) > 0 {
			err = fmt.Errorf("%s is missing, and %d licences were signed with its keys; restore it from a backup", where.path(issuerKeysFile), len(list))
		}
		return err
	})
}

// runCollector serves until ctx ends; then requests may finish.
func runCollector(ctx context.Context, s collectorSettings) error {
	if err := s.check(); err != nil {
		return err
	}
	exporter, err := s.exporter()
	if err != nil {
		return err
	}
	proxies, err := s.proxies()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	c, err := s.data.open(ctx, intake.Config{
		Log: log, Rate: s.rate, KeepBilling: time.Duration(s.keepBilling) * 24 * time.Hour,
		KeepSignals: time.Duration(s.keepSignals) * time.Hour, QueueBytes: int64(s.queueMB) << 20,
	})
	if err != nil {
		return err
	}
	handler := beaconapi.New(c.Service, beaconapi.Config{Log: log, TrustedProxies: proxies, Enforce: s.enforce, PerLicence: s.perLicen})
	return errors.Join(serveCollector(ctx, s.listen, handler, c.Service, exporter), c.close())
}

func serveCollector(ctx context.Context, listen string, handler http.Handler, svc *intake.Service, exporter beacon.Exporter) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s (%w); choose another address with --listen", listen, err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: 2 * time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	fmt.Printf("slipway collector is at http://%s\n", l.Addr())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return svc.Run(ctx, exporter) })
	g.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), collectorGrace)
		defer cancel()
		return server.Shutdown(last)
	})
	return g.Wait()
}
