package agentapi

import (
	"net/http"
)

// ok tells that the process serves; with check_db whether it can work (reference 9).
func (a *API) ok(w http.ResponseWriter, r *http.Request) error {
	deep, err := queryBool(r, "check_db")
	if err != nil {
		return err
	}
	if !deep {
		return write(w, object{{"ok", true}})
	}
	h := a.engine.Health(r.Context())
	fine := h.Database == "ok" && h.Workers == "ok"
	answer := object{{"ok", fine}, {"services", map[string]string{"database": h.Database, "workers": h.Workers}}}
	if len(h.Failures) > 0 {
		answer = append(answer, member{"failures", h.Failures})
	}
	if len(h.Parts) > 0 {
		answer = append(answer, member{"parts", h.Parts})
	}
	status := http.StatusOK
	if !fine {
		status = http.StatusInternalServerError
	}
	writeStatus(w, status, answer)
	return nil
}

// info describes the server (reference 9).
func (a *API) info(w http.ResponseWriter, _ *http.Request) error {
	i := a.engine.Info()
	return write(w, object{
		{"version", i.Version}, {"langgraph_py_version", i.LanggraphPython}, {"langgraph_js_version", i.LanggraphNode},
		{"context", i.Context},
		{"flags", object{
			{"assistants", true}, {"crons", true}, {"langsmith", a.cfg.Tracing}, {"langsmith_tracing_replicas", true},
			{"stream_namespaces", true}, {"strict_resume", true},
		}},
		{"metadata", object{{"revision_id", i.RevisionID}}},
	})
}
