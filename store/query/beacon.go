package query

import (
	"context"

	"github.com/slipway-dev/slipway/beacon"
)

// Beacon keeps a collector's records; it implements beacon.Store. It is safe for concurrent use.
type Beacon struct {
	engine Engine
}

// NewBeacon makes the collector's store over an engine whose database has been migrated.
func NewBeacon(e Engine) *Beacon { return &Beacon{engine: e} }

var _ beacon.Store = (*Beacon)(nil)

// Update runs fn in one serialisable write transaction.
func (s *Beacon) Update(ctx context.Context, fn func(beacon.Tx) error) error {
	return s.engine.Write(ctx, func(c Conn) error { return fn(&beaconTx{c}) })
}

// View runs fn on one consistent snapshot.
func (s *Beacon) View(ctx context.Context, fn func(beacon.Tx) error) error {
	return s.engine.Read(ctx, func(c Conn) error { return fn(&beaconTx{c}) })
}

// beaconTx is one transaction of the collector's store.
type beaconTx struct{ c Conn }

var _ beacon.Tx = (*beaconTx)(nil)

const putLicence = `INSERT INTO licences (id, issued_at, doc) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`

// PutLicence stores a licence.
func (t *beaconTx) PutLicence(l beacon.Licence) error {
	_, err := t.c.Exec(putLicence, l.ID, micros(l.IssuedAt), encode(l))
	return err
}

// Licence returns one licence.
func (t *beaconTx) Licence(id string) (beacon.Licence, error) {
	return find[beacon.Licence](t.c, "Licence "+id+" does not exist", `SELECT doc FROM licences WHERE id = ?`, id)
}

// Licences lists licences, oldest first.
func (t *beaconTx) Licences() ([]beacon.Licence, error) {
	return all(t.c, doc[beacon.Licence], `SELECT doc FROM licences ORDER BY issued_at, id`)
}

// counters is what is added to one month of a licence.
type counters struct {
	traces, transactions, duplicates, late, snapshots int64
	spans, points, records, refused                   int64
}

const addToMonth = `INSERT INTO months
  (licence_id, month, trace_count, transactions, duplicates, late, snapshots, spans, data_points, log_records, refused)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (licence_id, month) DO UPDATE SET
  trace_count = months.trace_count + excluded.trace_count, transactions = months.transactions + excluded.transactions,
  duplicates = months.duplicates + excluded.duplicates, late = months.late + excluded.late,
  snapshots = months.snapshots + excluded.snapshots, spans = months.spans + excluded.spans,
  data_points = months.data_points + excluded.data_points, log_records = months.log_records + excluded.log_records,
  refused = months.refused + excluded.refused`

func (t *beaconTx) add(licenceID, month string, n counters) error {
	_, err := t.c.Exec(addToMonth, licenceID, month, n.traces, n.transactions, n.duplicates, n.late, n.snapshots, n.spans, n.points, n.records, n.refused)
	return err
}

// powers splits a length into parts that are powers of two, largest first and at most most: lists of any length need only
// a few different statements.
func powers(n, most int) []int {
	var parts []int
	for size := most; n > 0; {
		if size > n {
			size /= 2
			continue
		}
		parts = append(parts, size)
		n -= size
	}
	return parts
}
