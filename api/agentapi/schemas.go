package agentapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/engine"
)

// maxXray bounds the depth of a drawing: deeper graphs are drawn with xray=true.
const maxXray = 100

// getSchemas answers GET /assistants/{assistant_id}/schemas (reference 2, 16).
func (a *API) getSchemas(w http.ResponseWriter, r *http.Request) error {
	raw, err := a.engine.Schemas(r.Context(), r.PathValue("assistant_id"))
	if err != nil {
		return err
	}
	return write(w, raw)
}

// getDrawing answers GET /assistants/{assistant_id}/graph.
func (a *API) getDrawing(w http.ResponseWriter, r *http.Request) error {
	xray, err := queryXray(r)
	if err != nil {
		return err
	}
	raw, err := a.engine.Drawing(r.Context(), r.PathValue("assistant_id"), xray)
	if err != nil {
		return err
	}
	return write(w, raw)
}

// getSubgraphs answers GET /assistants/{assistant_id}/subgraphs and …/subgraphs/{namespace}.
func (a *API) getSubgraphs(w http.ResponseWriter, r *http.Request) error {
	recurse, err := queryBool(r, "recurse")
	if err != nil {
		return err
	}
	namespace := strings.ReplaceAll(r.PathValue("namespace"), "\x00", "\uFFFD")
	raw, err := a.engine.Subgraphs(r.Context(), r.PathValue("assistant_id"), namespace, recurse)
	if err != nil {
		return err
	}
	return write(w, raw)
}

// queryXray reads true, false or a depth; a number is always a depth.
func queryXray(r *http.Request) (engine.Xray, error) {
	s := query(r, "xray")
	switch strings.ToLower(s) {
	case "", "false":
		return 0, nil
	case "true":
		return engine.XrayAll, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > maxXray {
		return 0, slipway.Errorf(slipway.CodeInvalid, "query.xray must be true, false or a depth from 0 to %d, got %q", maxXray, s)
	}
	return engine.Xray(n), nil
}
