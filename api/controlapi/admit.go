package controlapi

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"regexp"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
	"github.com/slipway-dev/slipway/control"
)

// reachKey is where an operation says in its metadata what it is about, if that is not to be seen from its path.
const reachKey = "reach"

// subjectLimit bounds the text of a path parameter in an audit entry.
const subjectLimit = 200

var pathParameter = regexp.MustCompile(`\{([a-z_]+)\}`)

// reaching says what an operation is about: who may call it at all depends on that (control.Reach).
func reaching(reach control.Reach, op huma.Operation) huma.Operation {
	op.Metadata = map[string]any{reachKey: reach}
	return op
}

// authenticate puts the principal into the context of every operation that has a security requirement, and records the
// attempts that were refused.
func (a *api) authenticate(ctx huma.Context, next func(huma.Context)) {
	if len(ctx.Operation().Security) == 0 {
		next(ctx)
		return
	}
	r, _ := humago.Unwrap(ctx)
	call := callOf(ctx)
	who, err := a.svc.Admit(ctx.Context(), a.cfg.Authn.Credential(r), call)
	if who.RequestID != "" {
		ctx.SetHeader("X-Request-Id", who.RequestID)
	}
	if err != nil {
		a.refuse(ctx, err)
	} else {
		next(huma.WithValue(ctx, authn.Key{}, who))
	}
	if ctx.Status() == http.StatusForbidden {
		a.svc.Refused(ctx.Context(), who, call.Operation, subjectOf(ctx, call))
	}
}

// bodied is middleware that refuses an absent body where the call needs one as what it is, a failed validation; the
// framework would answer 400.
func (a *api) bodied(ctx huma.Context, next func(huma.Context)) {
	needs := ctx.Operation().RequestBody
	if needs == nil || !needs.Required {
		next(ctx)
		return
	}
	body := bufio.NewReaderSize(ctx.BodyReader(), 16)
	if _, err := body.Peek(1); errors.Is(err, io.EOF) {
		var problems slipway.Problems
		problems.Missing([]any{"body"})
		a.refuse(ctx, problems.Err())
		return
	}
	next(&replaying{inner: ctx, body: &rereader{Reader: body}})
}

// callOf says what a request is about. A deployment in the path is what the call is about, unless the operation says
// otherwise.
func callOf(ctx huma.Context) control.Call {
	op := ctx.Operation()
	call := control.Call{Operation: op.OperationID, DeploymentID: ctx.Param("deployment_id"), ListenerID: ctx.Param("listener_id")}
	if call.DeploymentID == "" {
		call.DeploymentID = ctx.Param("project_id")
	}
	reach, said := op.Metadata[reachKey].(control.Reach)
	switch {
	case said && reach == control.ReachDeployment && call.DeploymentID == "":
		call.DeploymentID = ctx.Query("deployment_id")
		call.Reach = reach
	case said:
		call.Reach = reach
	case call.DeploymentID != "":
		call.Reach = control.ReachDeployment
	}
	return call
}

// subjectOf is the id of what a refused call was about: the deployment, else the last thing its path names.
func subjectOf(ctx huma.Context, call control.Call) string {
	id := call.DeploymentID
	if names := pathParameter.FindAllStringSubmatch(ctx.Operation().Path, -1); id == "" && len(names) > 0 {
		id = ctx.Param(names[len(names)-1][1])
	}
	return id[:min(len(id), subjectLimit)]
}
