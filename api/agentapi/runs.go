package agentapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
)

// reasonDisconnected is recorded when a closed connection cancels its run (reference 17.6).
const reasonDisconnected = "client disconnected"

func showRun(r agent.Run) object {
	kwargs := r.Kwargs
	kwargs.Config = withoutAuth(orEmpty(kwargs.Config))
	kwargs.Input = orNull(kwargs.Input)
	var reason any
	if r.CancelReason != "" {
		reason = r.CancelReason
	}
	return object{
		{"run_id", r.ID}, {"thread_id", r.ThreadID}, {"assistant_id", r.AssistantID}, {"created_at", stamp(r.CreatedAt)},
		{"updated_at", stamp(r.UpdatedAt)}, {"status", r.Status}, {"metadata", orEmpty(r.Metadata)}, {"kwargs", kwargs},
		{"multitask_strategy", r.Multitask}, {"langsmith_session_name", nil}, {"cancel_reason", reason},
	}
}

// ShowRun renders a run as clients see it.
func ShowRun(r agent.Run) json.RawMessage {
	raw, _ := encode(showRun(r)) // what the store held encodes
	return raw
}

func runFields() []string {
	return []string{
		"run_id", "thread_id", "assistant_id", "created_at", "updated_at", "status", "metadata", "kwargs", "multitask_strategy",
		"langsmith_session_name", "cancel_reason",
	}
}

// withoutAuth drops what authentication put into configurable: it is not for clients (reference 4).
func withoutAuth(config json.RawMessage) json.RawMessage {
	if !bytes.Contains(config, []byte(`"langgraph_auth_`)) {
		return config
	}
	var all, configurable map[string]json.RawMessage
	if json.Unmarshal(config, &all) != nil || json.Unmarshal(orEmpty(all["configurable"]), &configurable) != nil {
		return json.RawMessage("{}")
	}
	maps.DeleteFunc(configurable, func(k string, _ json.RawMessage) bool { return strings.HasPrefix(k, "langgraph_auth_") })
	all["configurable"], _ = encode(configurable)
	raw, _ := encode(all)
	return raw
}

// runURL is the path of a run as the SDKs read it from Content-Location (reference 1).
func runURL(r agent.Run, stateless bool) string {
	if stateless {
		return "/runs/" + r.ID
	}
	return "/threads/" + r.ThreadID + "/runs/" + r.ID
}

// createRun answers POST /threads/{t}/runs and POST /runs.
func (a *API) createRun(w http.ResponseWriter, r *http.Request) error {
	call, err := a.runCall(w, r)
	if err != nil {
		return err
	}
	run, err := a.engine.CreateRun(r.Context(), call.request)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Location", runURL(run, call.request.Stateless))
	return write(w, showRun(run))
}

// createRuns answers POST /runs/batch: all or none.
func (a *API) createRuns(w http.ResponseWriter, r *http.Request) error {
	calls, err := a.batch(w, r)
	if err != nil {
		return err
	}
	requests := make([]engine.RunRequest, 0, len(calls))
	for _, call := range calls {
		requests = append(requests, call.request)
	}
	runs, err := a.engine.CreateRuns(r.Context(), requests)
	if err != nil {
		return err
	}
	return write(w, collect(runs, showRun))
}

// listRuns answers GET /threads/{t}/runs.
func (a *API) listRuns(w http.ResponseWriter, r *http.Request) error {
	q, names, err := runQuery(r)
	if err != nil {
		return err
	}
	runs, err := a.engine.Runs(r.Context(), q)
	if err != nil {
		return err
	}
	return write(w, collect(runs, func(r agent.Run) object { return showRun(r).only(names) }))
}

func runQuery(r *http.Request) (q agent.RunQuery, names []string, err error) {
	if q.ThreadID, err = pathID(r, "thread_id"); err != nil {
		return q, nil, err
	}
	if q.Limit, err = queryInt(r, "limit", 10, 1, 1000); err != nil {
		return q, nil, err
	}
	if q.Offset, err = queryInt(r, "offset", 0, 0, 1<<31); err != nil {
		return q, nil, err
	}
	if s := query(r, "status"); s != "" {
		q.Status = agent.RunStatus(s)
		statuses := []string{"pending", "running", "error", "success", "timeout", "interrupted"}
		if err := checkNames("query.status", []string{s}, statuses); err != nil {
			return q, nil, err
		}
	}
	names = noEmpty(queryList(r, "select"))
	return q, names, checkNames("query.select", names, runFields())
}

func (a *API) getRun(w http.ResponseWriter, r *http.Request) error {
	threadID, runID, err := runPath(r)
	if err != nil {
		return err
	}
	run, err := a.engine.Run(r.Context(), threadID, runID)
	if err != nil {
		return err
	}
	return write(w, showRun(run))
}

func (a *API) deleteRun(w http.ResponseWriter, r *http.Request) error {
	threadID, runID, err := runPath(r)
	if err != nil {
		return err
	}
	if err := a.engine.DeleteRun(r.Context(), threadID, runID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// cancelRun answers POST …/cancel: 202 without wait, 204 with (reference 17.6).
func (a *API) cancelRun(w http.ResponseWriter, r *http.Request) error {
	threadID, runID, err := runPath(r)
	if err != nil {
		return err
	}
	wait, err := queryBool(r, "wait")
	if err != nil {
		return err
	}
	action, err := cancelAction(r)
	if err != nil {
		return err
	}
	reason, err := cancelReason(r, action)
	if err != nil {
		return err
	}
	if err := a.engine.Cancel(r.Context(), threadID, runID, action, reason, wait); err != nil {
		return err
	}
	if wait {
		w.Header().Set("Location", "/threads/"+threadID+"/runs/"+runID+"/join")
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	writeStatus(w, http.StatusAccepted, object{})
	return nil
}

func cancelAction(r *http.Request) (agent.CancelAction, error) {
	action := query(r, "action")
	if action == "" {
		return agent.CancelInterrupt, nil
	}
	return agent.CancelAction(action), checkNames("query.action", []string{action}, []string{"interrupt", "rollback"})
}

func cancelReason(r *http.Request, action agent.CancelAction) (string, error) {
	switch reason := query(r, "reason"); {
	case reason == "":
		return "cancelled by request", nil
	case reason != "taken":
		return "", slipway.Errorf(slipway.CodeInvalid, "query.reason must be \"taken\" or left out, got %q", reason)
	case action != agent.CancelInterrupt:
		return "", slipway.Errorf(slipway.CodeInvalid, "query.reason=taken goes only with action=interrupt")
	}
	return "taken: cancelled by request", nil
}

// cancelRuns answers POST /runs/cancel.
func (a *API) cancelRuns(w http.ResponseWriter, r *http.Request) error {
	b, err := a.body(w, r)
	if err != nil {
		return err
	}
	selection := engine.CancelSelection{
		ThreadID: b.uuid("thread_id"), RunIDs: b.uuids("run_ids"), Status: b.text("status"), AssistantID: b.text("assistant_id"),
	}
	if err := b.err(); err != nil {
		return err
	}
	if err := checkSelection(selection); err != nil {
		return err
	}
	action, err := cancelAction(r)
	if err != nil {
		return err
	}
	if err := a.engine.CancelMany(r.Context(), selection, action, "cancelled by request"); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// checkSelection holds the texts of reference 4.
func checkSelection(s engine.CancelSelection) error {
	byID := s.ThreadID != "" || len(s.RunIDs) > 0
	switch {
	case s.AssistantID != "" && (byID || s.Status != ""):
		return slipway.Errorf(slipway.CodeInvalid, "Cannot specify 'thread_id', 'run_ids', or 'status' when using 'assistant_id'")
	case s.Status != "" && byID:
		return slipway.Errorf(slipway.CodeInvalid, "Cannot specify 'thread_id' or 'run_ids' when using 'status'")
	case s.Status != "" && !slices.Contains([]string{"pending", "running", "all"}, s.Status):
		return slipway.Errorf(slipway.CodeInvalid, "Invalid status: must be 'pending', 'running', or 'all'")
	case s.Status == "" && s.AssistantID == "" && (s.ThreadID == "" || len(s.RunIDs) == 0):
		return slipway.Errorf(slipway.CodeInvalid, "Must provide either a status, an assistant_id, or both 'thread_id' and 'run_ids'")
	}
	return nil
}
