package controlapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway/api/authn"
	"github.com/slipway-dev/slipway/api/problem"
)

// UploadSlot says where a source archive goes (control-plane reference 5, "Source").
type UploadSlot struct {
	UploadURL  string `json:"upload_url" required:"true" doc:"signed, single-use address to PUT the gzip archive to, without a key"`
	ObjectPath string `json:"object_path" required:"true" doc:"the source_tarball_path of the PATCH that follows"`
}

type uploadOutput struct{ Body UploadSlot }

const uploadPath = "/uploads/{upload_id}"

func (a *api) uploads(mux *http.ServeMux) {
	tail := "/deployments/{deployment_id}/upload-url"
	huma.Register(a.huma, operation("create_upload_url", http.MethodPost, "/v2"+tail, "Ask where to upload a source archive", 404), a.newUpload)
	huma.Register(a.huma, operation("create_upload_url_unversioned", http.MethodPost, tail, "Ask where to upload a source archive", 404), a.newUpload)
	mux.HandleFunc("PUT "+uploadPath, a.acceptUpload)
	a.huma.OpenAPI().AddOperation(uploadOperation())
}

func (a *api) newUpload(ctx context.Context, in *DeploymentPath) (*uploadOutput, error) {
	slot, err := a.svc.NewUpload(ctx, authn.Principal(ctx), in.DeploymentID)
	if err != nil {
		return nil, a.problem(err)
	}
	out := &uploadOutput{}
	out.Body.UploadURL, out.Body.ObjectPath = slot.URL, slot.ObjectPath
	return out, nil
}

// acceptUpload streams the archive of a signed URL to the blob store; it needs no credential.
func (a *api) acceptUpload(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	err := a.svc.AcceptUpload(r.Context(), r.PathValue("upload_id"), q.Get("expires"), q.Get("signature"), r.ContentLength, timedBody(w, r, silence, true))
	if err != nil {
		problem.Write(w, a.problem(err))
		return
	}
	w.WriteHeader(http.StatusOK)
}

func uploadOperation() *huma.Operation {
	text := &huma.Schema{Type: "string"}
	return &huma.Operation{
		OperationID: "put_upload", Method: http.MethodPut, Path: uploadPath, Summary: "Upload a source archive to a signed address",
		Parameters: []*huma.Param{
			{Name: "upload_id", In: "path", Required: true, Schema: text},
			{Name: "expires", In: "query", Required: true, Schema: text},
			{Name: "signature", In: "query", Required: true, Schema: text},
		},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/octet-stream": {Schema: &huma.Schema{Type: "string", Format: "binary"}}, // and any other; what counts is the content
		}},
		Responses: map[string]*huma.Response{
			"200": {Description: "Stored"}, "400": {Description: "No gzip archive"}, "403": {Description: "Not signed, or expired"}, "404": {Description: "Nobody asked for this address"},
			"409": {Description: "Used before"}, "413": {Description: "Larger than 209715200 bytes"},
		},
	}
}
