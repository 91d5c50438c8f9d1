package telemetry

import (
	"context"
	"time"

	"github.com/slipway-dev/slipway/beacon"
)

var _ beacon.SenderReport = (*Sender)(nil)

// previewLimit bounds how long a preview may measure the installation.
const previewLimit = 5 * time.Second

// Status implements beacon.SenderReport.
func (s *Sender) Status() beacon.SenderStatus {
	if !s.Online() {
		st := beacon.SenderStatus{Mode: "offline", Reason: s.offline, URL: s.cfg.URL, Licence: beacon.LicenceStatus{Status: "none"}}
		if s.cfg.Key != "" {
			st.Licence = beacon.LicenceStatus{Kind: beacon.KindOf(s.cfg.Key), Status: "unverified"}
			if _, _, ends, _, ok := beacon.Claimed(s.cfg.Key); ok {
				st.Licence.ExpiresAt = moment(ends)
			}
		}
		return st
	}
	st := beacon.SenderStatus{
		Mode: "online", URL: s.cfg.URL, Streams: beacon.StreamNames(s.streams), Licence: s.licence.status(),
		Billing: s.billing.status(), Operational: s.operational.status(),
	}
	if s.streams.Usage && s.cfg.Usage != nil {
		st.NextUsage = moment(s.boundary(s.cfg.Now()).Add(s.cfg.UsageEvery))
	}
	return st
}

// Preview implements beacon.SenderReport.
func (s *Sender) Preview(limit int) (out []beacon.SenderRequest, more bool, err error) {
	out = []beacon.SenderRequest{}
	if !s.Online() {
		return out, false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), previewLimit)
	defer cancel()
	for _, q := range []*queue{s.billing, s.operational} {
		out = append(out, q.preview(limit)...)
		items, _, _, _, _ := q.journal.size()
		more = more || items > int64(min(limit, batchItems))
	}
	now := s.signals(ctx, false)
	for _, r := range now {
		out = append(out, beacon.SenderRequest{Path: newShipment(make([]entry, 1), []record{r}).path, Body: r.payload})
	}
	return out, more, nil
}
