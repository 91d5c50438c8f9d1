package controlapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/problem"
	"github.com/slipway-dev/slipway/control"
)

const webhookPath = "/webhooks/githost/{integration_id}"

const (
	// maxDelivery bounds a delivery in bytes; GitHub sends no larger ones.
	maxDelivery = 25 << 20
	// deliveriesAtOnce bounds how many are in memory.
	deliveriesAtOnce = 8
)

// DeliveryResult says what came of a delivery.
type DeliveryResult struct {
	Revisions []DeliveredRevision `json:"revisions" required:"true" nullable:"false" doc:"the revisions that it makes"`
	Ignored   []IgnoredDeployment `json:"ignored" required:"true" nullable:"false" doc:"deployments of the repository that it leaves alone, and why"`
	Reason    string              `json:"reason,omitempty" doc:"why nothing at all came of it"`
}

// DeliveredRevision is a revision that a push made.
type DeliveredRevision struct {
	DeploymentID string `json:"deployment_id" required:"true" format:"uuid" doc:"whose revision it is"`
	RevisionID   string `json:"revision_id" required:"true" format:"uuid" doc:"the revision"`
}

// IgnoredDeployment is a deployment that a push leaves alone.
type IgnoredDeployment struct {
	DeploymentID string `json:"deployment_id" required:"true" format:"uuid" doc:"the deployment"`
	Name         string `json:"name" required:"true" doc:"its name"`
	Reason       string `json:"reason" required:"true" doc:"why it is left alone"`
}

func (a *api) webhooks(mux *http.ServeMux) {
	room := make(chan struct{}, deliveriesAtOnce)
	mux.HandleFunc("POST "+webhookPath, func(w http.ResponseWriter, r *http.Request) {
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
		case <-r.Context().Done():
			return
		}
		a.deliver(w, r)
	})
	a.huma.OpenAPI().AddOperation(a.webhookOperation())
}

// deliver takes what a git host sends; the host's signature stands in for an API key.
func (a *api) deliver(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("integration_id")
	if !slipway.IsUUID(id) {
		problem.Write(w, slipway.Errorf(slipway.CodeNotFound, "Integration ID %.40s not found.", id))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDelivery))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		problem.Write(w, slipway.Errorf(slipway.CodeTooLarge, "the delivery has more than %d bytes", maxDelivery))
		return
	case err != nil:
		problem.Write(w, slipway.Errorf(slipway.CodeBadRequest, "the delivery was cut short; send it again"))
		return
	}
	done, err := a.svc.Deliver(r.Context(), id, r.Header.Get, body)
	if err != nil {
		problem.Write(w, a.problem(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(delivered(done)) // the host is gone if this fails
}

func delivered(d control.Delivered) DeliveryResult {
	out := DeliveryResult{Revisions: []DeliveredRevision{}, Ignored: []IgnoredDeployment{}, Reason: d.Reason}
	for _, r := range d.Revisions {
		out.Revisions = append(out.Revisions, DeliveredRevision(r))
	}
	for _, i := range d.Ignored {
		out.Ignored = append(out.Ignored, IgnoredDeployment(i))
	}
	return out
}

func (a *api) webhookOperation() *huma.Operation {
	text := &huma.Schema{Type: "string"}
	return &huma.Operation{
		OperationID: "deliver_githost_webhook", Method: http.MethodPost, Path: webhookPath, Summary: "Take a delivery of a git host's webhook",
		Parameters: []*huma.Param{{Name: "integration_id", In: "path", Required: true, Schema: text}},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/json": {Schema: &huma.Schema{Type: "object"}},
		}},
		Responses: map[string]*huma.Response{
			"202": {
				Description: "Taken; the answer names the revisions it makes, or says why it makes none",
				Content: map[string]*huma.MediaType{"application/json": {
					Schema: a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[DeliveryResult](), true, ""),
				}},
			},
			"400": {Description: "Signed, but no delivery that can be read"}, "401": {Description: "Not signed by the host"},
			"404": {Description: "No such integration"}, "413": {Description: "Larger than 26214400 bytes"},
		},
	}
}
