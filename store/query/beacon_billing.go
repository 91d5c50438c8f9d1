package query

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/beacon"
)

// rowsPerInsert is how many transactions one statement stores; a power of two.
const rowsPerInsert = 128

const (
	insertTransactions = `INSERT INTO transactions (customer, id, licence_id, month, trace_count, interval_end, received_at, doc) VALUES `
	transactionRow     = `(?, ?, ?, ?, ?, ?, ?, ?)`
	onlyNew            = ` ON CONFLICT (customer, id) DO NOTHING RETURNING month, trace_count`
)

// counted is what the database says of one new transaction.
type counted struct {
	month  string
	traces int64
}

func scanCounted(s scanner) (c counted, err error) { return c, s.Scan(&c.month, &c.traces) }

// AddTransactions stores the new ones among the transactions and counts them.
func (t *beaconTx) AddTransactions(l beacon.Licence, list []beacon.TraceTransaction, now time.Time) (int, error) {
	months := map[string]counters{}
	inserted := 0
	rest := list
	for _, size := range powers(len(list), rowsPerInsert) {
		fresh, err := t.insertTransactions(l, rest[:size], now)
		if err != nil {
			return 0, err
		}
		rest = rest[size:]
		inserted += len(fresh)
		for _, f := range fresh {
			n := months[f.month]
			n.traces += f.traces
			n.transactions++
			months[f.month] = n
		}
	}
	if inserted < len(list) {
		n := months[beacon.Month(now)]
		n.duplicates += int64(len(list) - inserted)
		months[beacon.Month(now)] = n
	}
	return inserted, t.addMonths(l.ID, months)
}

func (t *beaconTx) insertTransactions(l beacon.Licence, list []beacon.TraceTransaction, now time.Time) ([]counted, error) {
	args := make([]any, 0, 8*len(list))
	for _, x := range list {
		args = append(args, l.Customer, x.ID, l.ID, beacon.Month(x.StartIntervalTime), x.TraceCount, micros(x.EndIntervalTime), micros(now), encode(x))
	}
	rows := strings.Repeat(transactionRow+", ", len(list)-1) + transactionRow
	return all(t.c, scanCounted, insertTransactions+rows+onlyNew, args...)
}

// addMonths adds in the order of the months, so that two transactions never wait for each other.
func (t *beaconTx) addMonths(licenceID string, months map[string]counters) error {
	names := make([]string, 0, len(months))
	for month := range months {
		names = append(names, month)
	}
	slices.Sort(names)
	for _, month := range names {
		if err := t.add(licenceID, month, months[month]); err != nil {
			return err
		}
	}
	return nil
}

// AddLate counts transactions that are too old to be stored.
func (t *beaconTx) AddLate(l beacon.Licence, n int, now time.Time) error {
	return t.add(l.ID, beacon.Month(now), counters{late: int64(n)})
}

const (
	putSnapshot = `INSERT INTO snapshots (licence_id, interval_start, interval_end, month, received_at, measures) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (licence_id, interval_start, interval_end) DO UPDATE SET received_at = excluded.received_at, measures = excluded.measures`
	haveSnapshot   = `SELECT 1 FROM snapshots WHERE licence_id = ? AND interval_start = ? AND interval_end = ?`
	monthSnapshots = `SELECT measures FROM snapshots WHERE licence_id = ? AND month = ? ORDER BY interval_end, interval_start`
	putMeasures    = `UPDATE months SET measures = ?, peaks = ? WHERE licence_id = ? AND month = ?`
)

// PutSnapshot stores a snapshot and works out again what its month's snapshots say, in whatever order they came.
func (t *beaconTx) PutSnapshot(l beacon.Licence, s beacon.UsageSnapshot, now time.Time) error {
	month := beacon.Month(s.From)
	_, known, err := one(t.c, scalar[int64], haveSnapshot, l.ID, micros(s.From), micros(s.To))
	if err != nil {
		return err
	}
	n := counters{snapshots: 1}
	if known {
		n.snapshots = 0
	}
	if err := t.add(l.ID, month, n); err != nil {
		return err
	}
	if _, err := t.c.Exec(putSnapshot, l.ID, micros(s.From), micros(s.To), month, micros(now), measuresText(s.Measures)); err != nil {
		return err
	}
	return t.reconcile(l.ID, month)
}

func (t *beaconTx) reconcile(licenceID, month string) error {
	all, err := all(t.c, scanMeasures, monthSnapshots, licenceID, month)
	if err != nil || len(all) == 0 {
		return err
	}
	peaks := map[string]int64{}
	for _, measures := range all {
		for name, n := range measures {
			peaks[name] = max(peaks[name], n)
		}
	}
	_, err = t.c.Exec(putMeasures, measuresText(all[len(all)-1]), measuresText(peaks), licenceID, month)
	return err
}

func measuresText(m map[string]int64) string {
	if m == nil {
		return "{}"
	}
	return encode(m)
}

func scanMeasures(s scanner) (map[string]int64, error) {
	var text string
	if err := s.Scan(&text); err != nil {
		return nil, err
	}
	return readMeasures(text)
}

func readMeasures(text string) (map[string]int64, error) {
	m := map[string]int64{}
	return m, json.Unmarshal([]byte(text), &m)
}

const selectMonths = `SELECT licence_id, month, trace_count, transactions, duplicates, late, snapshots, measures, peaks, spans,
  data_points, log_records, refused FROM months`

// Months returns what was counted, by customer, licence and month.
func (t *beaconTx) Months(q beacon.UsageQuery) ([]beacon.MonthUsage, error) {
	var w where
	if q.LicenceID != "" {
		w.and("licence_id = ?", q.LicenceID)
	}
	if q.From != "" {
		w.and("month >= ?", q.From)
	}
	if q.To != "" {
		w.and("month <= ?", q.To)
	}
	list, err := all(t.c, scanMonth, selectMonths+w.text, w.args...)
	if err != nil {
		return nil, err
	}
	return list, t.nameCustomers(list)
}

// nameCustomers fills in who the licences belong to and sorts.
func (t *beaconTx) nameCustomers(list []beacon.MonthUsage) error {
	licences, err := t.Licences()
	if err != nil {
		return err
	}
	customers := make(map[string]string, len(licences))
	for _, l := range licences {
		customers[l.ID] = l.Customer
	}
	for i := range list {
		list[i].Customer = customers[list[i].LicenceID]
	}
	slices.SortFunc(list, func(a, b beacon.MonthUsage) int {
		return slices.Compare([]string{a.Customer, a.LicenceID, a.Month}, []string{b.Customer, b.LicenceID, b.Month})
	})
	return nil
}

func scanMonth(s scanner) (m beacon.MonthUsage, err error) {
	var measures, peaks string
	if err = s.Scan(&m.LicenceID, &m.Month, &m.TraceCount, &m.Transactions, &m.Duplicates, &m.Late, &m.Snapshots, &measures, &peaks,
		&m.Spans, &m.DataPoints, &m.LogRecords, &m.Refused); err != nil {
		return m, err
	}
	if m.Measures, err = readMeasures(measures); err != nil {
		return m, err
	}
	m.Peaks, err = readMeasures(peaks)
	return m, err
}
