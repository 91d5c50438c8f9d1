// Package templates holds the applications of the source internal_template, one directory each. None needs a model key.
package templates

import (
	"embed"

	"github.com/slipway-dev/slipway"
)

// FS holds the templates by their ids.
//
//go:embed agent-js agent-python
var FS embed.FS

// Default is the template that a new installation deploys.
const Default = "agent-js"

// All describes the templates of FS, the default first.
func All() []slipway.Template {
	return []slipway.Template{
		{
			ID: "agent-js", Title: "Chat agent in JavaScript", Language: slipway.Node,
			Description: "A chat agent with one tool and a scripted model: it needs no model key. Its graph is \"agent\".",
		},
		{
			ID: "agent-python", Title: "Chat agent in Python", Language: slipway.Python,
			Description: "A chat agent with one tool and a scripted model: it needs no model key. Its graph is \"agent\".",
		},
	}
}
