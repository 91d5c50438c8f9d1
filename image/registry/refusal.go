package registry

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"syscall"

	"github.com/slipway-dev/slipway"
)

// The codes of the distribution protocol that are used in several places.
const (
	unauthorized = "UNAUTHORIZED"
	denied       = "DENIED"
	sizeInvalid  = "SIZE_INVALID"
	uploadBad    = "BLOB_UPLOAD_INVALID"
)

// refusal is an answer that is not a success, in the protocol's shape.
type refusal struct {
	status  int
	code    string
	message string
}

// Error returns the message.
func (r refusal) Error() string { return r.message }

func badName(message string) error {
	return refusal{http.StatusBadRequest, "NAME_INVALID", message}
}

func badDigest(digest string) error {
	if len(digest) > 100 {
		digest = digest[:100] + "…"
	}
	return refusal{http.StatusBadRequest, "DIGEST_INVALID", "the digest \"" + digest + "\" is none of this content's; digests are sha256: and 64 hexadecimal digits"}
}

func unknownUpload() error {
	return refusal{http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", "there is no such upload; begin it again"}
}

// refuse answers an error. What is nobody's fault but ours is logged, never shown.
func (r *Registry) refuse(w http.ResponseWriter, req *http.Request, err error) {
	var answer refusal
	switch {
	case errors.As(err, &answer):
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		answer = refusal{http.StatusServiceUnavailable, "UNAVAILABLE", "the registry's disk is full; its operator must make room"}
	default:
		answer = refusal{http.StatusInternalServerError, "UNKNOWN", "something went wrong inside slipway; its log says what"}
	}
	if answer.status >= 500 {
		r.log.Error("registry request failed", "method", req.Method, "path", req.URL.Path, "error", err)
	}
	type entry struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.status)
	_ = json.NewEncoder(w).Encode(map[string][]entry{"errors": {{answer.code, answer.message}}}) // the client is gone if this fails
}

// ignored drops the failure to write an answer: the client is gone and nobody is left to tell.
func ignored(error) error { return nil }

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// invalid is a refusal towards the control service: one sentence about an image name.
func invalid(format string, args ...any) error {
	return slipway.Errorf(slipway.CodeInvalid, format, args...)
}
