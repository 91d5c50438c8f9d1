package agentapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/slipway-dev/slipway"
)

// body is a decoded JSON object whose members are taken one by one; broken rules are collected.
type body struct {
	members  map[string]json.RawMessage
	problems slipway.Problems
	at       []any
}

// maxDepth bounds how deep a body may be nested. Graph libraries, serialisers and databases give up between 1000 and
// 10000 levels; what a client sends is laid into other documents and must stay readable wherever it ends up.
const maxDepth = 500

// readRaw returns the whole body as it came.
func (a *API) readRaw(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, a.cfg.MaxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, slipway.Errorf(slipway.CodeTooLarge, "the request body is larger than %d bytes (HTTP_MAX_REQUEST_BODY_BYTES)", a.cfg.MaxBody)
	}
	if err != nil {
		return nil, slipway.Errorf(slipway.CodeInvalid, "the request body cannot be read: %w", err)
	}
	return raw, nil
}

// read returns the whole body, made clean: valid Unicode, no U+0000, not too deep.
func (a *API) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	raw, err := a.readRaw(w, r)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	if tooDeep(raw) {
		return nil, slipway.Errorf(slipway.CodeInvalid, "the request body is nested deeper than %d levels; flatten it", maxDepth)
	}
	return clean(raw), nil
}

// tooDeep counts brackets outside strings.
func tooDeep(raw []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// clean replaces the escapes of U+0000 and of halves of a surrogate pair by that of U+FFFD, in place: many libraries take
// neither.
func clean(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`\u`)) {
		return raw
	}
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		switch c := escape(raw[i:]); {
		case utf16.IsSurrogate(c) && utf16.DecodeRune(c, escape(raw[min(i+6, len(raw)):])) != utf8.RuneError:
			i += 10 // a whole pair
		case c == 0 || utf16.IsSurrogate(c):
			copy(raw[i:], `\ufffd`)
		}
		i++ // the escaped character
	}
	return raw
}

// escape is the code unit that b begins with as \uXXXX, -1 if it does not.
func escape(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// body decodes the request's object; an empty body is {}.
func (a *API) body(w http.ResponseWriter, r *http.Request) (*body, error) {
	raw, err := a.read(w, r)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("{}")
	}
	return parseBody(raw, "body")
}

func parseBody(raw []byte, at ...any) (*body, error) {
	b := &body{at: at}
	if err := json.Unmarshal(raw, &b.members); err != nil {
		if json.Valid(raw) {
			return nil, slipway.Errorf(slipway.CodeInvalid, "the request body must be a JSON object")
		}
		return nil, slipway.Errorf(slipway.CodeInvalid, "the request body is not valid JSON: %w", err)
	}
	return b, nil
}

// err is what is wrong with the members taken so far.
func (b *body) err() error { return b.problems.Err() }

func (b *body) wrong(name, format string, args ...any) {
	b.problems.Add(append(slices.Clone(b.at), name), format, args...)
}

// raw returns a member, nil if it is absent or null.
func (b *body) raw(name string) json.RawMessage {
	raw := b.members[name]
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// take decodes a member into v; false if it is absent.
func (b *body) take(name, want string, v any) bool {
	raw := b.raw(name)
	if raw == nil {
		return false
	}
	if err := json.Unmarshal(raw, v); err != nil {
		b.wrong(name, "must be %s, got %s", want, excerpt(raw))
		return false
	}
	return true
}

func (b *body) object(name string) json.RawMessage {
	var any map[string]json.RawMessage
	if b.take(name, "an object", &any) {
		return b.raw(name)
	}
	return nil
}

func (b *body) text(name string) string {
	var s string
	b.take(name, "a string", &s)
	return s
}

// optional is a string that may be absent; nil if it is.
func (b *body) optional(name string) *string {
	var s string
	if !b.take(name, "a string", &s) {
		return nil
	}
	return &s
}

func (b *body) required(name string) {
	if b.raw(name) == nil {
		b.problems.Missing(append(slices.Clone(b.at), name))
	}
}

func (b *body) boolean(name string) bool {
	var v bool
	b.take(name, "true or false", &v)
	return v
}

func (b *body) integer(name string, fallback, low, high int) int {
	var f float64
	if !b.take(name, "an integer", &f) {
		return fallback
	}
	if f != math.Trunc(f) || f < float64(low) || f > float64(high) {
		b.wrong(name, "must be an integer from %d to %d, got %v", low, high, f)
		return fallback
	}
	return int(f)
}

func (b *body) enum(name, fallback string, allowed ...string) string {
	var s string
	if !b.take(name, "a string", &s) {
		return fallback
	}
	if !slices.Contains(allowed, s) {
		b.wrong(name, "must be one of %s, got %q", strings.Join(allowed, ", "), s)
		return fallback
	}
	return s
}

// texts takes a list of strings, or one string.
func (b *body) texts(name string) []string {
	raw := b.raw(name)
	if raw == nil {
		return nil
	}
	if raw[0] == '"' {
		return []string{b.text(name)}
	}
	var list []string
	b.take(name, "a list of strings", &list)
	return list
}

func (b *body) list(name string) []string {
	var list []string
	b.take(name, "a list of strings", &list)
	return list
}

// enums takes a list of strings, or one, all of which must be allowed.
func (b *body) enums(name string, allowed []string) []string {
	list := b.texts(name)
	for _, s := range list {
		if !slices.Contains(allowed, s) {
			b.wrong(name, "%q is not one of %s", s, strings.Join(allowed, ", "))
		}
	}
	return list
}

func (b *body) uuid(name string) string {
	s := b.text(name)
	if s == "" {
		return ""
	}
	id, ok := parseUUID(s)
	if !ok {
		b.wrong(name, "must be a UUID, got %q", s)
	}
	return id
}

func excerpt(raw []byte) string {
	if len(raw) > 80 {
		return string(bytes.ToValidUTF8(raw[:80], nil)) + "…"
	}
	return string(raw)
}

// parseUUID accepts the forms with and without dashes and returns the canonical one.
func parseUUID(s string) (string, bool) {
	hex := strings.ToLower(s)
	if len(hex) == 36 {
		if hex[8] != '-' || hex[13] != '-' || hex[18] != '-' || hex[23] != '-' {
			return "", false
		}
		hex = hex[:8] + hex[9:13] + hex[14:18] + hex[19:23] + hex[24:]
	}
	if len(hex) != 32 || strings.Trim(hex, "0123456789abcdef") != "" {
		return "", false
	}
	for _, c := range hex {
		if !strings.ContainsRune("0123456789abcdef", c) {
			return "", false
		}
	}
	return hex[:8] + "-" + hex[8:12] + "-" + hex[12:16] + "-" + hex[16:20] + "-" + hex[20:], true
}

// pathID returns a path segment that must be a UUID; "" if the route has none of that name.
func pathID(r *http.Request, name string) (string, error) {
	s := r.PathValue(name)
	if s == "" {
		return "", nil
	}
	id, ok := parseUUID(s)
	if !ok {
		return "", slipway.Errorf(slipway.CodeInvalid, "Invalid %s: must be a UUID, got %q", strings.ReplaceAll(name, "_", " "), s)
	}
	return id, nil
}

// runPath returns the thread and the run that a path names.
func runPath(r *http.Request) (threadID, runID string, err error) {
	if threadID, err = pathID(r, "thread_id"); err != nil {
		return "", "", err
	}
	runID, err = pathID(r, "run_id")
	return threadID, runID, err
}

// query returns a query parameter without U+0000.
func query(r *http.Request, name string) string {
	return strings.ReplaceAll(r.URL.Query().Get(name), "\x00", "\uFFFD")
}

func queryBool(r *http.Request, name string) (bool, error) {
	switch s := query(r, name); strings.ToLower(s) {
	case "", "0", "false":
		return false, nil
	case "1", "true":
		return true, nil
	default:
		return false, slipway.Errorf(slipway.CodeInvalid, "query.%s must be true or false, got %q", name, s)
	}
}

func queryInt(r *http.Request, name string, fallback, low, high int) (int, error) {
	s := query(r, name)
	if s == "" {
		return fallback, nil
	}
	var n int
	if _, err := fmt.Sscanf(s+"\n", "%d\n", &n); err != nil || n < low || n > high {
		return 0, slipway.Errorf(slipway.CodeInvalid, "query.%s must be an integer from %d to %d, got %q", name, low, high, s)
	}
	return n, nil
}

// queryList accepts repeated keys, one JSON list and a comma-joined list.
func queryList(r *http.Request, name string) []string {
	values := r.URL.Query()[name]
	if len(values) != 1 {
		return values
	}
	var list []string
	if strings.HasPrefix(values[0], "[") && json.Unmarshal([]byte(values[0]), &list) == nil {
		return list
	}
	return strings.Split(values[0], ",")
}

// noEmpty drops empty names, as a query without value yields.
func noEmpty(list []string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// checkNames refuses names that are not allowed.
func checkNames(where string, names, allowed []string) error {
	for _, n := range names {
		if !slices.Contains(allowed, n) {
			return slipway.Errorf(slipway.CodeInvalid, "%s: %q is not one of %s", where, n, strings.Join(allowed, ", "))
		}
	}
	return nil
}
