package agentapi

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
)

// HeaderRule says which request headers go somewhere (http.configurable_headers, http.logging_headers): names or patterns
// with *, in any case of letters; excludes win. The zero rule lets none pass.
type HeaderRule struct {
	Includes []string `json:"includes"`
	Excludes []string `json:"excludes"`
}

// pick returns the headers that pass, by their names in lower case.
func (rule HeaderRule) pick(h http.Header) map[string]string {
	if len(rule.Includes) == 0 {
		return nil
	}
	out := map[string]string{}
	for name, values := range h {
		name = strings.ToLower(name)
		if anyMatches(rule.Includes, name) && !anyMatches(rule.Excludes, name) {
			out[name] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
		}
	}
	return out
}

func anyMatches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(strings.ToLower(p), name) })
}

// matches says whether name is what pattern says, * standing for anything.
func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == name
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1:last] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[last])
}

// configured lays the headers that the configuration lets pass into the configurable of a run's config. They win over the
// body: what a proxy in front says of its client is not the client's to change.
func (a *API) configured(config json.RawMessage, r *http.Request) json.RawMessage {
	picked := a.cfg.ConfigurableHeaders.pick(r.Header)
	if len(picked) == 0 {
		return config
	}
	whole, configurable := map[string]json.RawMessage{}, map[string]any{}
	_ = json.Unmarshal(config, &whole) // it has been checked; nothing is an empty config
	_ = json.Unmarshal(whole["configurable"], &rawMembers{configurable})
	for name, value := range picked {
		configurable[name] = value
	}
	inner, err := json.Marshal(configurable)
	if err != nil {
		return config
	}
	whole["configurable"] = inner
	out, err := json.Marshal(whole)
	if err != nil {
		return config
	}
	return out
}

// rawMembers reads an object whose values stay as they were written.
type rawMembers struct{ into map[string]any }

// UnmarshalJSON reads the object.
func (m *rawMembers) UnmarshalJSON(b []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	for name, value := range all {
		m.into[name] = value
	}
	return nil
}

// logged returns the headers of a request that the configuration lets into the log, as one attribute.
func (a *API) logged(r *http.Request) slog.Attr {
	picked := a.cfg.LoggingHeaders.pick(r.Header)
	if len(picked) == 0 {
		return slog.Attr{}
	}
	return slog.Any("headers", picked)
}
