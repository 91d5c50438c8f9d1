package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/beacon"
)

// RunBeacon runs the suite of beacon.Store; open returns an empty store that lives as long as the test.
func RunBeacon(t *testing.T, open func(t *testing.T) beacon.Store) {
	for name, test := range map[string]func(t *testing.T, s beacon.Store){
		"licences": licences, "transactions count once": countOnce, "concurrent resends count once": concurrentResends,
		"snapshots are reconciled": snapshots, "signals are a queue": signalQueue, "sweeps": beaconSweeps,
		"a failure leaves nothing": beaconRollback,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func beaconUpdate(t *testing.T, s beacon.Store, fn func(tx beacon.Tx) error) {
	t.Helper()
	must(t, s.Update(context.Background(), fn))
}

func beaconView(t *testing.T, s beacon.Store, fn func(tx beacon.Tx) error) {
	t.Helper()
	must(t, s.View(context.Background(), fn))
}

func licence(n int) beacon.Licence {
	return beacon.Licence{
		ID: fmt.Sprintf("l%d", n), Customer: fmt.Sprintf("customer %d", n), Kind: beacon.Online, Entitlements: []string{"sso"},
		IssuedAt: startTime().Add(time.Duration(n) * time.Second), ExpiresAt: startTime().AddDate(1, 0, 0),
	}
}

func withLicences(t *testing.T, s beacon.Store, n int) {
	t.Helper()
	beaconUpdate(t, s, func(tx beacon.Tx) error {
		for i := range n {
			must(t, tx.PutLicence(licence(i)))
		}
		return nil
	})
}

func licences(t *testing.T, s beacon.Store) {
	withLicences(t, s, 3)
	revoked := licence(1)
	revoked.RevokedAt = startTime()
	beaconUpdate(t, s, func(tx beacon.Tx) error { return tx.PutLicence(revoked) })
	beaconView(t, s, func(tx beacon.Tx) error {
		got, err := tx.Licence("l1")
		must(t, err)
		equal(t, "revoked", got.RevokedAt.Equal(startTime()), true)
		equal(t, "kind and entitlements", fmt.Sprintln(got.Kind, got.Entitlements), "online [sso]\n")
		_, err = tx.Licence("l9")
		wantCode(t, err, slipway.CodeNotFound)
		list, err := tx.Licences()
		must(t, err)
		equal(t, "oldest first", list[0].ID+list[1].ID+list[2].ID, "l0l1l2")
		return nil
	})
}

// trace makes transaction number n, of 10 traces, in the hour n hours after the start.
func trace(n int) beacon.TraceTransaction {
	from := startTime().Add(time.Duration(n) * time.Hour)
	return beacon.TraceTransaction{
		ID: fmt.Sprintf("0192f000-0000-7000-8000-%012d", n), TraceCount: 10, Status: "pending", Type: "trace",
		StartIntervalTime: from, EndIntervalTime: from.Add(time.Hour),
	}
}

func traces(from, to int) []beacon.TraceTransaction {
	var list []beacon.TraceTransaction
	for n := from; n < to; n++ {
		list = append(list, trace(n))
	}
	return list
}

func addTraces(t *testing.T, s beacon.Store, l beacon.Licence, list []beacon.TraceTransaction) (inserted int) {
	t.Helper()
	beaconUpdate(t, s, func(tx beacon.Tx) (err error) {
		inserted, err = tx.AddTransactions(l, list, startTime())
		return err
	})
	return inserted
}

func months(t *testing.T, s beacon.Store, q beacon.UsageQuery) (list []beacon.MonthUsage) {
	t.Helper()
	beaconView(t, s, func(tx beacon.Tx) (err error) {
		list, err = tx.Months(q)
		return err
	})
	return list
}

func countOnce(t *testing.T, s beacon.Store) {
	withLicences(t, s, 3)
	equal(t, "first", addTraces(t, s, licence(0), traces(0, 300)), 300)
	equal(t, "half resent", addTraces(t, s, licence(0), traces(150, 450)), 150)
	equal(t, "twice in one request", addTraces(t, s, licence(0), append(traces(900, 903), traces(900, 903)...)), 3)
	equal(t, "another customer's ids are its own", addTraces(t, s, licence(1), traces(0, 5)), 5)
	renewed := licence(2)
	renewed.Customer = licence(0).Customer
	beaconUpdate(t, s, func(tx beacon.Tx) error { return tx.PutLicence(renewed) })
	equal(t, "resent under a renewed licence", addTraces(t, s, renewed, traces(0, 300)), 0)
	equal(t, "nothing", addTraces(t, s, licence(0), nil), 0)

	all := months(t, s, beacon.UsageQuery{LicenceID: "l0"})
	var count, transactions, duplicates int64
	for _, m := range all {
		count, transactions, duplicates = count+m.TraceCount, transactions+m.Transactions, duplicates+m.Duplicates
	}
	equal(t, "counted", fmt.Sprint(count, transactions, duplicates), "4530 453 153")
	equal(t, "months", fmt.Sprint(all[0].Month, all[0].Customer, len(all)), "2026-01customer 02")
	equal(t, "by month", len(months(t, s, beacon.UsageQuery{LicenceID: "l0", From: "2026-02", To: "2026-02"})), 1)
	equal(t, "of all", len(months(t, s, beacon.UsageQuery{})), 4)
}

func concurrentResends(t *testing.T, s beacon.Store) {
	withLicences(t, s, 1)
	var wg sync.WaitGroup
	inserted := make([]int, 8)
	for i := range inserted {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for from := 0; from < 400; from += 20 {
				list := traces(from, from+40)
				if i%2 == 1 {
					slices.Reverse(list)
				}
				var n int
				if err := s.Update(context.Background(), func(tx beacon.Tx) (err error) {
					n, err = tx.AddTransactions(licence(0), list, startTime())
					return err
				}); err != nil {
					t.Error(err)
				}
				inserted[i] += n
			}
		}()
	}
	wg.Wait()
	sum := 0
	for _, n := range inserted {
		sum += n
	}
	equal(t, "inserted by all", sum, 420)
	var transactions int64
	for _, m := range months(t, s, beacon.UsageQuery{}) {
		transactions += m.Transactions
	}
	equal(t, "counted", transactions, 420)
}

func usageOf(day int, users int64) beacon.UsageSnapshot {
	from := time.Date(2026, 1, day, 2, 0, 0, 0, time.UTC)
	return beacon.UsageSnapshot{From: from, To: from.Add(24 * time.Hour), Measures: map[string]int64{"users": users}}
}

func snapshots(t *testing.T, s beacon.Store) {
	withLicences(t, s, 2)
	put := func(l beacon.Licence, list ...beacon.UsageSnapshot) {
		for _, x := range list {
			beaconUpdate(t, s, func(tx beacon.Tx) error { return tx.PutSnapshot(l, x, startTime()) })
		}
	}
	put(licence(0), usageOf(3, 30), usageOf(1, 99), usageOf(2, 20), usageOf(3, 30)) // late, out of order, twice
	put(licence(1), usageOf(1, 7), beacon.UsageSnapshot{From: usageOf(31, 0).From, To: usageOf(31, 0).To})
	all := months(t, s, beacon.UsageQuery{})
	equal(t, "licence 0", fmt.Sprint(all[0].Snapshots, all[0].Measures, all[0].Peaks), "3 map[users:30] map[users:99]")
	equal(t, "licence 1", fmt.Sprint(all[1].Snapshots, all[1].Measures, all[1].Peaks), "2 map[] map[users:7]")
	put(licence(0), usageOf(1, 5)) // a correction
	all = months(t, s, beacon.UsageQuery{LicenceID: "l0"})
	equal(t, "corrected", fmt.Sprint(all[0].Snapshots, all[0].Measures, all[0].Peaks), "3 map[users:30] map[users:30]")
}

func signals(kind beacon.SignalKind, n int) beacon.Signals {
	return beacon.Signals{Kind: kind, LicenceID: "l0", ReceivedAt: startTime().Add(time.Duration(n) * time.Second), Items: 2, Payload: fmt.Appendf(nil, "%010d", n)}
}

func seqs(list []beacon.Signals) []int64 {
	out := []int64{}
	for _, s := range list {
		out = append(out, s.Seq)
	}
	return out
}

func payloads(list []beacon.Signals) string {
	slices.SortFunc(list, func(a, b beacon.Signals) int { return int(a.Seq - b.Seq) })
	text := ""
	for _, s := range list {
		text += string(s.Payload[len(s.Payload)-1:])
	}
	return text
}

func signalQueue(t *testing.T, s beacon.Store) {
	withLicences(t, s, 1)
	beaconUpdate(t, s, func(tx beacon.Tx) error {
		for n := range 6 {
			must(t, tx.AddSignals(signals(beacon.Traces, n), 1))
		}
		must(t, tx.AddSignals(signals(beacon.Logs, 7), 0))
		return tx.AddSignals(beacon.Signals{Kind: beacon.Metrics, LicenceID: "l0", ReceivedAt: startTime()}, 5)
	})
	claim := func(now, most int, bytes int64) (list []beacon.Signals) {
		at := startTime().Add(time.Duration(now) * time.Second)
		beaconUpdate(t, s, func(tx beacon.Tx) (err error) {
			list, err = tx.ClaimSignals(beacon.Traces, at, at.Add(30*time.Second), most, bytes)
			return err
		})
		return list
	}
	first := claim(0, 2, 1000)
	equal(t, "oldest first", payloads(first), "01")
	equal(t, "as stored", fmt.Sprintln(first[0].Items, first[0].LicenceID, first[0].Kind, first[0].ReceivedAt.Equal(startTime())), "2 l0 traces true\n")
	second := claim(0, 100, 25)
	equal(t, "not those that are held, at most 25 bytes", payloads(second), "23")
	equal(t, "one even if too large", payloads(claim(0, 100, 1)), "4")
	beaconUpdate(t, s, func(tx beacon.Tx) error {
		must(t, tx.DeleteSignals(seqs(first)))
		must(t, tx.DeleteSignals(nil))
		return tx.ReleaseSignals(seqs(second))
	})
	equal(t, "released ones again", payloads(claim(1, 100, 1000)), "235")
	equal(t, "held ones after their time", payloads(claim(60, 100, 1000)), "2345")
	beaconView(t, s, func(tx beacon.Tx) error {
		q, err := tx.QueuedSignals()
		must(t, err)
		equal(t, "queued", fmt.Sprint(q.Batches, q.Items, q.Bytes, q.Oldest.Equal(startTime().Add(2*time.Second))), "5 10 50 true")
		return nil
	})
	m := months(t, s, beacon.UsageQuery{})[0]
	equal(t, "counted", fmt.Sprint(m.Spans, m.LogRecords, m.DataPoints, m.Refused), "12 2 0 11")
}

func beaconSweeps(t *testing.T, s beacon.Store) {
	withLicences(t, s, 1)
	addTraces(t, s, licence(0), traces(0, 10))
	beaconUpdate(t, s, func(tx beacon.Tx) error {
		must(t, tx.PutSnapshot(licence(0), usageOf(1, 1), startTime()))
		must(t, tx.PutSnapshot(licence(0), usageOf(9, 9), startTime()))
		for n := range 10 {
			must(t, tx.AddSignals(signals(beacon.Logs, n), 0))
		}
		n, err := tx.SweepTransactions(startTime().Add(5*time.Hour), 3)
		must(t, err)
		equal(t, "bounded", n, 3)
		n, err = tx.SweepTransactions(startTime().Add(5*time.Hour), 300)
		must(t, err)
		equal(t, "the rest", n, 1) // those that ended before, not at, that time
		n, err = tx.SweepSnapshots(usageOf(5, 0).From, 300)
		must(t, err)
		equal(t, "snapshots", n, 1)
		n, err = tx.SweepSignals(startTime().Add(2*time.Second), 1000, 300)
		must(t, err)
		equal(t, "signals by age", n, 2)
		n, err = tx.SweepSignals(startTime(), 55, 300)
		must(t, err)
		equal(t, "signals by size", n, 3)
		n, err = tx.SweepSignals(startTime(), 55, 300)
		must(t, err)
		equal(t, "nothing left to do", n, 0)
		return nil
	})
	m := months(t, s, beacon.UsageQuery{})[0]
	equal(t, "counts stay", fmt.Sprint(m.TraceCount, m.Transactions, m.Snapshots, m.Peaks, m.LogRecords), "100 10 2 map[users:9] 20")
}

func beaconRollback(t *testing.T, s beacon.Store) {
	withLicences(t, s, 1)
	wantCode(t, s.Update(context.Background(), func(tx beacon.Tx) error {
		_, err := tx.AddTransactions(licence(0), traces(0, 5), startTime())
		must(t, err)
		return slipway.Errorf(slipway.CodeConflict, "no")
	}), slipway.CodeConflict)
	equal(t, "months", len(months(t, s, beacon.UsageQuery{})), 0)
	equal(t, "counted after all", addTraces(t, s, licence(0), traces(0, 5)), 5)
	if err := s.View(context.Background(), func(tx beacon.Tx) error { return tx.PutLicence(licence(1)) }); err == nil {
		t.Error("a view wrote")
	}
}
