package beacon

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// maxValue bounds an attribute's value and maxMessage a log message, in bytes.
const (
	maxValue   = 128
	maxMessage = 512
)

// treatment is what happens to an attribute that may be sent.
type treatment int

const (
	asIs   treatment = iota + 1 // a word of ours: a method, a status, a phase
	hashed                      // an identifier, recognisable but not readable
	route                       // a path, with everything that could be an identifier replaced
)

// allowed is the whole list of attributes that operational telemetry may bear (spec 4.5, rule 2): what is not here is never
// sent, so a new attribute that holds a payload cannot slip through.
var allowed = map[string]treatment{
	"endpoint": route, "http.route": route, "url.template": route,
	"method": asIs, "http.request.method": asIs, "http.response.status_code": asIs, "status_code": asIs, "error.type": asIs,
	"service_name": asIs, "service.name": asIs, "service.version": asIs, "service.instance.id": hashed,
	"telemetry.sdk.language": asIs, "telemetry.sdk.name": asIs, "telemetry.sdk.version": asIs,
	"os.type": asIs, "host.arch": asIs, "process.runtime.name": asIs, "process.runtime.version": asIs,
	"db.system.name": asIs, "db.operation.name": asIs, "queue": asIs, "outcome": asIs, "phase": asIs, "runtime": asIs,
	"source": asIs, "language": asIs, "component": asIs, "operation": asIs, "code": asIs, "attempt": asIs, "duration_ms": asIs,
	"tenant_id": hashed, "deployment_id": hashed, "revision_id": hashed, "run_id": hashed, "thread_id": hashed,
	"assistant_id": hashed, "organization_id": hashed,
}

var (
	plainForm = regexp.MustCompile(`^[A-Za-z0-9 ._:/{}*+-]*$`)
	stepForm  = regexp.MustCompile(`^(\{[a-z_]{1,40}\}|v[0-9]{1,2}|[a-z][a-z_-]{0,30}|\.well-known)$`)
	// secretForm finds what must not be in a message even by mistake: quoted text, addresses, long tokens, identifiers.
	secretForm = regexp.MustCompile(`"[^"]*"|'[^']*'|` + "`[^`]*`" + `|[a-z][a-z0-9+.-]*://\S+|\S+@\S+|\S*=\S+|[A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]{11,}|[A-Za-z0-9+/_-]{24,}|/\S*/\S*`)
)

// Redactor decides what of a signal may leave an installation. The zero value works; a salt of the installation's own keeps
// hashes from being recognised elsewhere. It is safe for concurrent use.
type Redactor struct {
	Salt []byte
}

// Attribute returns the value under which an attribute may be sent; ok is false if it may not.
func (r Redactor) Attribute(key, value string) (redacted string, ok bool) {
	switch allowed[key] {
	case asIs:
		return value, len(value) <= maxValue && plainForm.MatchString(value)
	case hashed:
		return r.Hash(value), true
	case route:
		return Route(value), true
	}
	return "", false
}

// Hash makes an identifier unreadable: the same one always gives the same 32 digits.
func (r Redactor) Hash(id string) string {
	mac := hmac.New(sha256.New, r.Salt)
	mac.Write([]byte(id))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// Route is a path without anything that could identify: the query is dropped, every step that is not a plain word becomes
// {id}.
func Route(path string) string {
	path, _, _ = strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "#")
	if len(path) > 4*maxValue {
		return "/{long}"
	}
	steps := strings.Split(path, "/")
	for i, step := range steps {
		if step != "" && !stepForm.MatchString(step) {
			steps[i] = "{id}"
		}
	}
	if out := strings.Join(steps, "/"); len(out) <= maxValue {
		return out
	}
	return "/{long}"
}

// Message is a log message that may be sent. Messages of the house are constant; what might still have slipped into one
// (quoted values, addresses, assignments, long tokens, paths) becomes *** and the rest is cut to a bound.
func Message(text string) string {
	if len(text) > 4*maxMessage {
		text = text[:4*maxMessage]
	}
	text = secretForm.ReplaceAllString(strings.ToValidUTF8(text, "?"), "***")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "")
	}
	return text
}
