package intake

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/slipway-dev/slipway/beacon"
)

// LicenceUsage is what was counted for one licence.
type LicenceUsage struct {
	LicenceID    string              `json:"license_id"`
	Customer     string              `json:"customer"`
	Kind         beacon.Kind         `json:"kind"`
	Status       string              `json:"status"`
	IssuedAt     time.Time           `json:"issued_at"`
	ExpiresAt    time.Time           `json:"expires_at"`
	TraceCount   int64               `json:"trace_count"`
	Transactions int64               `json:"transactions"`
	Duplicates   int64               `json:"duplicates"`
	Late         int64               `json:"late"`
	Snapshots    int64               `json:"snapshots"`
	Measures     map[string]int64    `json:"measures"` // of the latest snapshot
	Spans        int64               `json:"spans"`
	DataPoints   int64               `json:"data_points"`
	LogRecords   int64               `json:"log_records"`
	Refused      int64               `json:"refused"`
	Months       []beacon.MonthUsage `json:"months"`
}

// Usage reports what was counted, per licence and month, licences in the order in which they were issued.
func (s *Service) Usage(ctx context.Context, q beacon.UsageQuery) (out []LicenceUsage, err error) {
	out = []LicenceUsage{}
	var licences []beacon.Licence
	var months []beacon.MonthUsage
	if err := s.store.View(ctx, func(tx beacon.Tx) (err error) {
		if licences, err = tx.Licences(); err != nil {
			return err
		}
		months, err = tx.Months(q)
		return err
	}); err != nil {
		return nil, err
	}
	of := map[string][]beacon.MonthUsage{}
	for _, m := range months {
		of[m.LicenceID] = append(of[m.LicenceID], m)
	}
	for _, l := range licences {
		if q.LicenceID == "" || q.LicenceID == l.ID {
			out = append(out, licenceUsage(l, of[l.ID], s.cfg.Now()))
		}
	}
	return out, nil
}

func licenceUsage(l beacon.Licence, months []beacon.MonthUsage, now time.Time) LicenceUsage {
	u := LicenceUsage{
		LicenceID: l.ID, Customer: l.Customer, Kind: l.Kind, Status: l.Status(now), IssuedAt: l.IssuedAt, ExpiresAt: l.ExpiresAt,
		Measures: map[string]int64{}, Months: slices.Concat([]beacon.MonthUsage{}, months),
	}
	for _, m := range months {
		u.TraceCount += m.TraceCount
		u.Transactions += m.Transactions
		u.Duplicates += m.Duplicates
		u.Late += m.Late
		u.Snapshots += m.Snapshots
		u.Spans += m.Spans
		u.DataPoints += m.DataPoints
		u.LogRecords += m.LogRecords
		u.Refused += m.Refused
		if m.Snapshots > 0 {
			u.Measures = m.Measures
		}
	}
	return u
}

// BillingCSV writes a row for each licence and month: the counts, and for each measure its latest and its highest value.
func BillingCSV(w io.Writer, list []LicenceUsage) error {
	measures := beacon.Measures()
	for _, u := range list {
		for _, m := range u.Months {
			for name := range m.Peaks {
				if !slices.Contains(measures, name) {
					measures = append(measures, name)
				}
			}
		}
	}
	slices.Sort(measures[len(beacon.Measures()):])
	out := csv.NewWriter(w)
	header := []string{"license_id", "customer", "kind", "month", "trace_count", "transactions", "snapshots"}
	for _, name := range measures {
		header = append(header, name, name+"_peak")
	}
	if err := out.Write(header); err != nil {
		return fmt.Errorf("write the billing export: %w", err)
	}
	for _, u := range list {
		for _, m := range u.Months {
			if err := out.Write(billingRow(u, m, measures)); err != nil {
				return fmt.Errorf("write the billing export: %w", err)
			}
		}
	}
	out.Flush()
	return out.Error()
}

func billingRow(u LicenceUsage, m beacon.MonthUsage, measures []string) []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	row := []string{u.LicenceID, cell(u.Customer), string(u.Kind), m.Month, number(m.TraceCount), number(m.Transactions), number(m.Snapshots)}
	for _, name := range measures {
		row = append(row, number(m.Measures[name]), number(m.Peaks[name]))
	}
	return row
}

// cell keeps a customer's name from being run as a formula by a spreadsheet.
func cell(text string) string {
	if text != "" && slices.Contains([]byte("=+-@\t\r"), text[0]) {
		return "'" + text
	}
	return text
}
