// Package templates holds the applications of the source internal_template, one directory each. None needs a model key.
package templates

import "embed"

// FS holds the templates by their ids.
//
//go:embed agent-js agent-python
var FS embed.FS

// Default is the template that a new installation deploys.
const Default = "agent-js"
