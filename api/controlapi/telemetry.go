package controlapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway/api/authn"
	"github.com/slipway-dev/slipway/beacon"
	"github.com/slipway-dev/slipway/control"
)

// TelemetryPreview is what would be sent to the collector now.
type TelemetryPreview struct {
	Requests []beacon.SenderRequest `json:"requests" nullable:"false" doc:"in the order of each queue, without the licence"`
	More     bool                   `json:"more" doc:"more items wait than are shown"`
}

type previewInput struct {
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"how many queued items at most, of each queue"`
}

// telemetry registers what the installation tells of its own telemetry (spec 4.5).
func (a *api) telemetry() {
	const path = "/v2/telemetry/"
	wide := func(op huma.Operation) huma.Operation { return reaching(control.ReachOrganisation, op) }
	huma.Register(a.huma, wide(operation("get_telemetry_status", http.MethodGet, path+"status", "Say how the installation's telemetry and licence stand")), a.telemetryStatus)
	huma.Register(a.huma, wide(operation("preview_telemetry", http.MethodGet, path+"preview", "Show exactly what would be sent to the collector now")), a.previewTelemetry)
}

func (a *api) telemetryStatus(ctx context.Context, _ *struct{}) (*struct{ Body beacon.SenderStatus }, error) {
	if err := a.svc.MayReadTelemetry(authn.Principal(ctx)); err != nil {
		return nil, a.problem(err)
	}
	if a.cfg.Telemetry == nil {
		return &struct{ Body beacon.SenderStatus }{beacon.SenderStatus{Mode: "offline", Licence: beacon.LicenceStatus{Status: "none"}}}, nil
	}
	return &struct{ Body beacon.SenderStatus }{a.cfg.Telemetry.Status()}, nil
}

func (a *api) previewTelemetry(ctx context.Context, in *previewInput) (*struct{ Body TelemetryPreview }, error) {
	if err := a.svc.MayReadTelemetry(authn.Principal(ctx)); err != nil {
		return nil, a.problem(err)
	}
	out := TelemetryPreview{Requests: []beacon.SenderRequest{}}
	if a.cfg.Telemetry != nil {
		var err error
		if out.Requests, out.More, err = a.cfg.Telemetry.Preview(in.Limit); err != nil {
			return nil, a.problem(err)
		}
	}
	return &struct{ Body TelemetryPreview }{out}, nil
}
