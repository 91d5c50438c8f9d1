package problem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/problem"
)

func TestEveryCodeHasItsAnswer(t *testing.T) {
	t.Parallel()
	for code, want := range map[slipway.Code]int{
		slipway.CodeInvalid: 422, slipway.CodeBadRequest: 400, slipway.CodeUnauthenticated: 401, slipway.CodeForbidden: 403,
		slipway.CodeNotFound: 404, slipway.CodeConflict: 409, slipway.CodeTooLarge: 413, slipway.CodeUnavailable: 503,
		slipway.CodeStale: 409, slipway.CodeInternal: 500,
	} {
		rec := httptest.NewRecorder()
		problem.Write(rec, fmt.Errorf("around: %w", slipway.Errorf(code, "one sentence")))
		var body struct{ Detail any }
		if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil || rec.Code != want {
			t.Errorf("%s: %d %s, want %d", code, rec.Code, rec.Body, want)
		}
		if _, list := body.Detail.([]any); list != (want == 422) {
			t.Errorf("%s: detail = %v; a list with 422 only", code, body.Detail)
		}
	}
}

func TestInternalErrorsAreNotShown(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errors.New("canary"), slipway.Errorf(slipway.CodeInternal, "canary"), &slipway.Error{Code: slipway.CodeConflict, Message: "taken", Err: errors.New("canary")}} {
		rec := httptest.NewRecorder()
		problem.Write(rec, err)
		if strings.Contains(rec.Body.String(), "canary") {
			t.Errorf("%v is shown: %s", err, rec.Body)
		}
	}
}
