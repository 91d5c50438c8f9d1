package slipway

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Tenant owns deployments, keys and everything else; no tenant sees another's things.
type Tenant struct {
	ID        string // uuid
	Name      string // unique in the installation
	CreatedAt time.Time
}

// TenantNameLimit bounds a tenant's name, in characters.
const TenantNameLimit = 100

// ValidTenantName refuses a name that cannot be shown in one line; the error is at body.name.
func ValidTenantName(name string) error {
	var problems Problems
	loc := []any{"body", "name"}
	switch length := utf8.RuneCountInString(name); {
	case !printable(name):
		problems.Add(loc, "%q is no name: use printable characters without a space at either end", name)
	case length == 0 || length > TenantNameLimit:
		problems.Add(loc, "the name has %d characters; give it 1 to %d", length, TenantNameLimit)
	}
	return problems.Err()
}

// printable says whether a text is valid UTF-8 in one line, without control characters or spaces at its ends.
func printable(text string) bool {
	control := strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 })
	return utf8.ValidString(text) && !control && strings.TrimSpace(text) == text
}

// TracingProject is the record under which a deployment's traces are counted; it bears the deployment's name (spec 2.1).
type TracingProject struct {
	ID           string
	TenantID     string
	Name         string
	DeploymentID string
	CreatedAt    time.Time
}
