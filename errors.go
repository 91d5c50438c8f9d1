package slipway

import (
	"errors"
	"fmt"
	"strings"
)

// Code says what kind of failure an error is; each edge maps it to its own answer in exactly one place.
type Code string

// The codes an Error may carry. CodeInternal is what every error without a code counts as.
const (
	CodeInvalid         Code = "invalid"         // the request fails validation; carries Problems (spec 7: 422)
	CodeBadRequest      Code = "bad_request"     // the request conflicts with what is stored (spec 7: 400)
	CodeUnauthenticated Code = "unauthenticated" // no or unknown credential (401)
	CodeForbidden       Code = "forbidden"       // known, but not allowed (403)
	CodeNotFound        Code = "not_found"       // does not exist, or may not be seen (404)
	CodeConflict        Code = "conflict"        // a name, a state or a lease is taken (409)
	CodeTooLarge        Code = "too_large"       // a bound on size was exceeded (413)
	CodeUnavailable     Code = "unavailable"     // try again later (503)
	CodeStale           Code = "stale"           // the caller's lease, epoch or generation is no longer the current one
	CodeInternal        Code = "internal"        // everything else (500)
)

// Problem is one broken rule of a request (spec 7, HTTPValidationError).
type Problem struct {
	// Loc is the path to the field from the request's outside in: strings for members, ints for array positions.
	// The first element is "body", "query" or "path".
	Loc []any
	// Msg names the value and the remedy.
	Msg string
	// Type is a stable machine word such as "value_error" or "missing".
	Type string
}

// Error is an error with a code. Its message is one sentence that a user can act on.
type Error struct {
	Code     Code
	Message  string
	Problems []Problem // only with CodeInvalid
	Err      error     // the cause, for logs; never shown to a user
}

// Error returns the message, followed by every problem's place and message.
func (e *Error) Error() string {
	if len(e.Problems) == 0 {
		return e.Message
	}
	parts := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		parts = append(parts, fmt.Sprintf("%s: %s", place(p.Loc), p.Msg))
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error with the given code; %w keeps the cause reachable.
func Errorf(code Code, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// ErrorCode returns the code of the first Error in err's chain, CodeInternal if there is none, and "" for nil.
func ErrorCode(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// Problems collects broken rules; rules do not stop at the first.
type Problems []Problem

// Add records that the rule about the field at loc is broken.
func (p *Problems) Add(loc []any, format string, args ...any) {
	*p = append(*p, Problem{Loc: loc, Msg: fmt.Sprintf(format, args...), Type: "value_error"})
}

// Missing records that the required field at loc is absent.
func (p *Problems) Missing(loc []any) {
	*p = append(*p, Problem{Loc: loc, Msg: "Field required", Type: "missing"})
}

// Err returns nil without problems, else an Error with CodeInvalid that carries them.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return &Error{Code: CodeInvalid, Message: "the request is not valid", Problems: p}
}

func place(loc []any) string {
	var b strings.Builder
	for i, part := range loc {
		if i > 0 {
			b.WriteByte('.')
		}
		fmt.Fprint(&b, part)
	}
	return b.String()
}
