// Package problem maps errors to answers, in one place for every operation of the control API: status and body as
// FastAPI's clients expect them (spec 7; control-plane reference 1).
package problem

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/slipway-dev/slipway"
)

// Detail is one element of an HTTPValidationError (spec 7). The input is never echoed: it may be a secret.
type Detail struct {
	Loc  []any  `json:"loc"`
	Msg  string `json:"msg"`
	Type string `json:"type"`
}

// Answer is an error as it is answered: `{"detail": [Detail…]}` with 422, `{"detail": "one sentence"}` otherwise.
type Answer struct {
	Status  int
	Text    string
	Details []Detail
}

// Error returns the text.
func (a *Answer) Error() string { return a.Text }

// GetStatus returns the HTTP status.
func (a *Answer) GetStatus() int { return a.Status }

// MarshalJSON writes the body.
func (a *Answer) MarshalJSON() ([]byte, error) {
	if a.Details != nil {
		return json.Marshal(map[string]any{"detail": a.Details})
	}
	return json.Marshal(map[string]any{"detail": a.Text})
}

// From maps an error to its answer. What has no code is internal: its text is for the log, never for the client.
func From(err error) *Answer {
	var answer *Answer
	if errors.As(err, &answer) {
		return answer
	}
	var e *slipway.Error
	if !errors.As(err, &e) {
		return unexpected(err)
	}
	a := &Answer{Status: status(e.Code), Text: e.Message}
	switch {
	case e.Code == slipway.CodeInvalid && len(e.Problems) > 0:
		a.Details = details(e.Problems)
	case e.Code == slipway.CodeInvalid:
		a.Details = []Detail{{Loc: []any{"body"}, Msg: e.Message, Type: "value_error"}}
	case e.Code == slipway.CodeInternal:
		return unexpected(err)
	}
	return a
}

func unexpected(err error) *Answer {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Answer{Status: http.StatusServiceUnavailable, Text: "the request was given up before it was done; try again"}
	}
	return &Answer{Status: http.StatusInternalServerError, Text: "something went wrong inside slipway; its log says what"}
}

func status(code slipway.Code) int {
	switch code {
	case slipway.CodeInvalid:
		return http.StatusUnprocessableEntity
	case slipway.CodeBadRequest:
		return http.StatusBadRequest
	case slipway.CodeUnauthenticated:
		return http.StatusUnauthorized
	case slipway.CodeForbidden:
		return http.StatusForbidden
	case slipway.CodeNotFound:
		return http.StatusNotFound
	case slipway.CodeConflict, slipway.CodeStale:
		return http.StatusConflict
	case slipway.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case slipway.CodeUnavailable:
		return http.StatusServiceUnavailable
	case slipway.CodeInternal:
	}
	return http.StatusInternalServerError
}

func details(problems []slipway.Problem) []Detail {
	out := make([]Detail, len(problems))
	for i, p := range problems {
		out[i] = Detail{Loc: p.Loc, Msg: p.Msg, Type: p.Type}
	}
	return out
}

// Write answers an error outside the API's framework.
func Write(w http.ResponseWriter, err error) {
	a := From(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.Status)
	_ = json.NewEncoder(w).Encode(a) // the client is gone if this fails; nobody is left to tell
}
