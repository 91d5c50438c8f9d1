package agentapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// write answers 200 with v as JSON.
func write(w http.ResponseWriter, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	writeBytes(w, http.StatusOK, b)
	return nil
}

func writeStatus(w http.ResponseWriter, status int, v any) {
	b, err := encode(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"detail":"Internal server error"}`)
	}
	writeBytes(w, status, b)
}

func writeBytes(w http.ResponseWriter, status int, b []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// encode leaves <, > and & as they are.
func encode(v any) ([]byte, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// member is one member of an object; raw JSON is passed on byte for byte.
type member struct {
	name  string
	value any
}

// object is a JSON object with its members in order.
type object []member

// only keeps the named members; nil keeps all.
func (o object) only(names []string) object {
	if len(names) == 0 {
		return o
	}
	return slices.DeleteFunc(o, func(m member) bool { return !slices.Contains(names, m.name) })
}

// MarshalJSON writes the object.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := encode(m.name) // a state's keys may hold anything
		if err != nil {
			return nil, err
		}
		b = append(append(b, name...), ':')
		v, err := encode(m.value)
		if err != nil {
			return nil, err
		}
		b = append(b, v...)
	}
	return append(b, '}'), nil
}

// stamp is a time as clients see it; the zero time is null (reference 1).
type stamp time.Time

// MarshalJSON writes ISO-8601 in UTC with microseconds and offset.
func (s stamp) MarshalJSON() ([]byte, error) {
	t := time.Time(s)
	if t.IsZero() {
		return []byte("null"), nil
	}
	return t.UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000000-07:00"`), nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}")
	}
	return raw
}

// paginate sets the pagination headers (reference 1) and cuts the list, which was asked for with one more than limit.
func paginate[T any](w http.ResponseWriter, list []T, limit, offset int) []T {
	if len(list) <= limit {
		w.Header().Set("X-Pagination-Total", strconv.Itoa(offset+len(list)))
		return list
	}
	w.Header().Set("X-Pagination-Next", strconv.Itoa(offset+limit))
	w.Header().Set("X-Pagination-Total", strconv.Itoa(offset+limit+1))
	return list[:limit]
}

// collect turns a list into answers; an empty list is [] and not null.
func collect[T any](list []T, show func(T) object) []object {
	out := make([]object, 0, len(list))
	for _, v := range list {
		out = append(out, show(v))
	}
	return out
}
