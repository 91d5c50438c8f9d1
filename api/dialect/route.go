package dialect

import (
	"net/url"
	"slices"
	"strings"
)

// canonicalPath returns the path in canonical names.
func canonicalPath(path string) string {
	for _, r := range routes {
		if rest, ok := strings.CutPrefix(path, r.upstream); ok {
			return r.canonical + rest
		}
	}
	for _, e := range ends {
		if rest, ok := strings.CutSuffix(path, e.upstream); ok && strings.Contains(rest, "/revisions/") {
			return rest + e.canonical
		}
	}
	return path
}

// upstreamPath returns the path in upstream's names.
func upstreamPath(path string) string {
	for _, r := range routes {
		if rest, ok := strings.CutPrefix(path, r.canonical); ok {
			return r.upstream + rest
		}
	}
	for _, e := range ends {
		if rest, ok := strings.CutSuffix(path, e.canonical); ok && strings.Contains(rest, "/revisions/") {
			return rest + e.upstream
		}
	}
	return path
}

// query returns the raw query with the values of the table's parameters translated; what is not concerned keeps its bytes.
func (t *tree) query(raw string) string {
	if raw == "" {
		return raw
	}
	pairs := strings.Split(raw, "&")
	for i, pair := range pairs {
		key, text, _ := strings.Cut(pair, "=")
		n := t.root.members[key]
		if n == nil || len(n.values) == 0 {
			continue
		}
		if list, err := url.QueryUnescape(text); err == nil {
			if other := n.list(list); other != list {
				pairs[i] = key + "=" + url.QueryEscape(other)
			}
		}
	}
	return strings.Join(pairs, "&")
}

// list translates the elements of a comma list.
func (n *node) list(text string) string {
	parts := strings.Split(text, ",")
	for i, part := range parts {
		if other, ok := n.values[strings.TrimSpace(part)]; ok {
			parts[i] = other
		}
	}
	return strings.Join(parts, ",")
}

func carries(path string) bool {
	return slices.ContainsFunc(carriers, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}
