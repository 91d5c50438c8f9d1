package slipway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"sort"
	"strings"
)

// auditValueLimit bounds one recorded value in bytes; longer ones are cut, since an audit entry is no copy of the data.
const auditValueLimit = 4096

var secretField = regexp.MustCompile(`(?i)(secret|password|passphrase|token|credential|sealed|hash|private_?key|api_?key)s?$`)

// AuditDiff compares two values by their JSON and returns the fields that differ, sorted; nil for before or after means that
// the thing did not exist. Members that hold secrets by their name are masked on both sides, and credentials inside
// addresses are left out, so whatever is passed, no secret gets into the log. A list is compared as one value.
func AuditDiff(before, after any) ([]AuditChange, error) {
	old, err := flattened(before)
	if err != nil {
		return nil, err
	}
	current, err := flattened(after)
	if err != nil {
		return nil, err
	}
	fields := map[string]bool{}
	for field := range old {
		fields[field] = true
	}
	for field := range current {
		fields[field] = true
	}
	changes := []AuditChange{}
	for field := range fields {
		if !bytes.Equal(old[field], current[field]) {
			changes = append(changes, AuditChange{Field: field, Before: guarded(field, old[field]), After: guarded(field, current[field])})
		}
	}
	sort.Slice(changes, func(i, j int) bool { return changes[i].Field < changes[j].Field })
	return changes, nil
}

// AuditSecrets returns the changes of named secrets: what was added, set anew or removed, without any value.
func AuditSecrets(before, set, after []string) []AuditChange {
	had, has, changed := setOf(before), setOf(after), []AuditChange{}
	for _, name := range set {
		c := AuditChange{Field: "secrets." + name, After: mask()}
		if had[name] {
			c.Before = mask()
		}
		changed = append(changed, c)
	}
	for name := range had {
		if !has[name] {
			changed = append(changed, AuditChange{Field: "secrets." + name, Before: mask()})
		}
	}
	sort.Slice(changed, func(i, j int) bool { return changed[i].Field < changed[j].Field })
	return changed
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

func mask() json.RawMessage { return json.RawMessage(`"` + MaskedSecret + `"`) }

// guarded makes a value fit to be kept.
func guarded(field string, value json.RawMessage) json.RawMessage {
	switch {
	case value == nil:
		return nil
	case secretField.MatchString(field[strings.LastIndexByte(field, '.')+1:]):
		return mask()
	case len(value) > auditValueLimit:
		text, err := json.Marshal(fmt.Sprintf("(%d bytes)", len(value)))
		if err != nil {
			return mask()
		}
		return text
	}
	return value
}

// flattened lists the leaves of a value by their path; null and absent are the same.
func flattened(v any) (map[string]json.RawMessage, error) {
	leaves := map[string]json.RawMessage{}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("compare for the audit log: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("compare for the audit log: %w", err)
	}
	return leaves, flatten(leaves, "", tree)
}

func flatten(leaves map[string]json.RawMessage, path string, v any) error {
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		for name, member := range v {
			if err := flatten(leaves, strings.TrimPrefix(path+"."+name, "."), member); err != nil {
				return err
			}
		}
		return nil
	default:
		text, err := json.Marshal(clean(v))
		leaves[path] = text
		return err
	}
}

// clean takes secrets out of a leaf: credentials in addresses, and members with telling names inside lists.
func clean(v any) any {
	switch v := v.(type) {
	case string:
		return withoutUser(v)
	case []any:
		for i := range v {
			v[i] = clean(v[i])
		}
	case map[string]any:
		for name, member := range v {
			if text, ok := member.(string); ok && (name == "value" || secretField.MatchString(name)) && text != "" {
				v[name] = MaskedSecret
				continue
			}
			v[name] = clean(member)
		}
	}
	return v
}

func withoutUser(text string) string {
	if !strings.Contains(text, "://") || !strings.Contains(text, "@") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return text
	}
	u.User = nil
	return u.String()
}
