package controlapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
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
	// deliveriesAtOnce bounds how many large ones are in memory.
	deliveriesAtOnce = 8
	// smallDelivery is up to which size one is none of those, in bytes; hardly any push is larger.
	smallDelivery = 64 << 10
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
	mux.HandleFunc("POST "+webhookPath, func(w http.ResponseWriter, r *http.Request) { a.deliver(w, r, room) })
	a.huma.OpenAPI().AddOperation(a.webhookOperation())
}

// deliver takes what a git host sends; the host's signature stands in for an API key. It is known only when the body is
// there, so until then a request gets no more than somebody who may be anybody: nothing is read for an integration that does
// not exist, it must come in time, and nobody waits for room because others send slowly.
func (a *api) deliver(w http.ResponseWriter, r *http.Request, room chan struct{}) {
	id := r.PathValue("integration_id")
	if err := a.svc.KnowsIntegration(r.Context(), id); err != nil {
		problem.Write(w, a.problem(err))
		return
	}
	body, leave, err := a.delivery(w, r, room)
	defer leave()
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		problem.Write(w, &problem.Answer{Status: http.StatusRequestTimeout, Text: "the delivery did not come in time; send it again"})
		return
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

// delivery reads the body; a large one waits for room before the rest of it.
func (a *api) delivery(w http.ResponseWriter, r *http.Request, room chan struct{}) (body []byte, leave func(), err error) {
	leave = func() {}
	from := http.MaxBytesReader(w, io.NopCloser(timedBody(w, r, a.cfg.BodyTime, false)), maxDelivery)
	if body, err = io.ReadAll(io.LimitReader(from, smallDelivery)); err != nil || len(body) < smallDelivery {
		return body, leave, err
	}
	select {
	case room <- struct{}{}:
		leave = func() { <-room }
	case <-r.Context().Done():
		return nil, leave, r.Context().Err()
	}
	rest, err := io.ReadAll(from)
	return append(body, rest...), leave, err
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
			"404": {Description: "No such integration"}, "408": {Description: "Not here in time"}, "413": {Description: "Larger than 26214400 bytes"},
		},
	}
}
