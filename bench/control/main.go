// Command control measures the control API over HTTP on a database that holds many deployments, each with ten revisions
// and secrets: SQLite and a private PostgreSQL, at several sizes. It prints one JSON line per figure and asserts nothing.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/controlapi"
	"github.com/slipway-dev/slipway/blob/dir"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/seal"
	"github.com/slipway-dev/slipway/store/postgres"
	"github.com/slipway-dev/slipway/store/postgres/pgtest"
	"github.com/slipway-dev/slipway/store/sqlite"
)

// revisions is how many each deployment has.
const revisions = 10

// figure is what was measured of one request at one size.
type figure struct {
	Database    string  `json:"database"`
	Deployments int     `json:"deployments"`
	Request     string  `json:"request"`
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	N           int     `json:"n"`
}

func main() {
	databases := flag.String("databases", "sqlite,postgres", "databases to measure")
	sizes := flag.String("deployments", "1000,10000", "how many deployments; the database grows from one to the next")
	n := flag.Int("n", 1000, "requests of each kind")
	flag.Parse()
	if err := run(strings.Split(*databases, ","), strings.Split(*sizes, ","), *n); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(databases, sizes []string, n int) error {
	for _, database := range databases {
		if err := measure(database, sizes, n); err != nil {
			return fmt.Errorf("%s: %w", database, err)
		}
	}
	return nil
}

func measure(database string, sizes []string, n int) (err error) {
	work, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	store, stop, err := open(database, work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	b, err := newBench(database, work, store)
	if err != nil {
		return err
	}
	defer b.server.Close()
	for _, text := range sizes {
		size, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		if err := b.grow(size); err != nil {
			return fmt.Errorf("fill the database: %w", err)
		}
		if err := b.measure(n); err != nil {
			return err
		}
	}
	return nil
}

func open(database, work string) (slipway.Store, func() error, error) {
	if database == "sqlite" {
		s, err := sqlite.OpenControl(filepath.Join(work, "control.db"))
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
	cluster, err := pgtest.Start()
	if err != nil {
		return nil, nil, err
	}
	url, _, err := cluster.Database()
	if err != nil {
		return nil, nil, errors.Join(err, cluster.Stop())
	}
	s, err := postgres.OpenControl(context.Background(), url)
	if err != nil {
		return nil, nil, errors.Join(err, cluster.Stop())
	}
	return s, func() error { return errors.Join(s.Close(), cluster.Stop()) }, nil
}

// bench is a control service with its API on a socket.
type bench struct {
	database string
	store    slipway.Store
	server   *httptest.Server
	key      string
	first    slipway.Deployment
	revision slipway.Revision
	secrets  slipway.SecretSet
	ids      []string
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func newBench(database, work string, store slipway.Store) (*bench, error) {
	key, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		return nil, err
	}
	blobs, err := dir.Open(filepath.Join(work, "blobs"))
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	service := control.New(control.Config{BaseURL: "http://bench.test", UploadKey: []byte("bench")}, control.Deps{
		Store: store, Blob: blobs, Sealer: key, Clock: time.Now, IDs: newID, Random: rand.Reader, Log: log,
	})
	b := &bench{database: database, store: store}
	first, err := service.Bootstrap(context.Background())
	if err != nil {
		return nil, err
	}
	b.key = first.Key
	b.server = httptest.NewServer(controlapi.New(service, controlapi.Config{BaseURL: "http://bench.test", Version: "bench", Log: log}))
	return b, b.prototype(first.TenantID)
}

// prototype makes the deployment that the others are copies of.
func (b *bench) prototype(tenantID string) error {
	const body = `{"name":"first","source":"internal_template","source_config":{"template_id":"agent-js"},"source_revision_config":{},
		"secrets":[{"name":"API_KEY","value":"secret"},{"name":"OTHER","value":"secret"}]}`
	raw, err := b.call(http.MethodPost, "/v2/deployments", body)
	if err != nil {
		return err
	}
	var made struct{ ID string }
	if err := json.Unmarshal(raw, &made); err != nil {
		return err
	}
	return b.store.View(context.Background(), func(tx slipway.Tx) (err error) {
		if b.first, err = tx.Deployment(tenantID, made.ID); err != nil {
			return err
		}
		list, err := tx.Revisions(slipway.RevisionQuery{DeploymentID: made.ID})
		if err != nil {
			return err
		}
		b.revision = list[0]
		b.secrets, err = tx.SecretSet(b.first.SecretSetID)
		return err
	})
}

// grow adds copies until there are size of them.
func (b *bench) grow(size int) error {
	for len(b.ids) < size {
		var ids []string
		err := b.store.Update(context.Background(), func(tx slipway.Tx) error {
			ids = ids[:0]
			for n := len(b.ids); n < min(size, len(b.ids)+200); n++ {
				id, err := b.add(tx, n)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
			return nil
		})
		if err != nil {
			return err
		}
		b.ids = append(b.ids, ids...)
	}
	return nil
}

func (b *bench) add(tx slipway.Tx, n int) (string, error) {
	d, set := b.first, b.secrets
	d.ID, d.Name, d.CreatedAt, d.Status = newID(), fmt.Sprint("deployment-", n), time.Now(), slipway.DeploymentReady
	set.ID, set.DeploymentID = newID(), d.ID
	d.SecretSetID = set.ID
	r := b.revision
	r.DeploymentID, r.SecretSetID, r.Status = d.ID, set.ID, slipway.Deployed
	var list []slipway.Revision
	for i := range revisions {
		r.ID, r.Number, r.CreatedAt = newID(), int64(i+1), time.Now()
		list = append(list, r)
	}
	d.ActiveRevisionID = r.ID
	err := errors.Join(tx.PutDeployment(d), tx.PutSecretSet(set))
	for _, r := range list {
		err = errors.Join(err, tx.PutRevision(r))
	}
	return d.ID, err
}

// measure makes requests of every kind, one after the other.
func (b *bench) measure(n int) error {
	any := func() string { return b.ids[mathrand.IntN(len(b.ids))] }
	for _, k := range []struct {
		name, method string
		path, body   func(i int) string
	}{
		{"PATCH with a new revision", http.MethodPatch, func(int) string { return "/v2/deployments/" + any() },
			func(i int) string { return fmt.Sprintf(`{"secrets":[{"name":"API_KEY","value":"v%d"}]}`, i) }},
		{"get", http.MethodGet, func(int) string { return "/v2/deployments/" + any() }, nil},
		{"list of 100", http.MethodGet, func(int) string { return "/v2/deployments?limit=100" }, nil},
		{"list of 100, name_contains", http.MethodGet, func(i int) string { return fmt.Sprintf("/v2/deployments?limit=100&name_contains=ment-%d", i%10) }, nil},
		{"list of 100, from the middle", http.MethodGet, func(int) string { return fmt.Sprintf("/v2/deployments?limit=100&offset=%d", len(b.ids)/2) }, nil},
		{"revisions of one", http.MethodGet, func(int) string { return "/v2/deployments/" + any() + "/revisions" }, nil},
	} {
		took := make([]float64, n)
		for i := range took {
			body := ""
			if k.body != nil {
				body = k.body(i)
			}
			began := time.Now()
			if _, err := b.call(k.method, k.path(i), body); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			took[i] = float64(time.Since(began).Microseconds()) / 1000
		}
		slices.Sort(took)
		raw, err := json.Marshal(figure{b.database, len(b.ids), k.name, took[n/2], took[n*99/100], n})
		if err != nil {
			return err
		}
		fmt.Println(string(raw))
	}
	return nil
}

func (b *bench) call(method, path, body string) ([]byte, error) {
	req, err := http.NewRequest(method, b.server.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Api-Key", b.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := b.server.Client().Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, res.Status, raw)
	}
	return raw, err
}
