package slipway

import "strings"

// Template is a prebuilt application that deployments of the source internal_template start from (spec 2.1).
type Template struct {
	ID          string // the template_id of a source_config
	Title       string // a few words
	Description string // one or two sentences: what it does and what it needs
	Language    Language
}

// validateTemplate checks that the installation has the template. An installation that names none leaves it to the build.
func validateTemplate(problems *Problems, id *string, known []Template) {
	if id == nil || len(known) == 0 {
		return
	}
	ids := make([]string, len(known))
	for i, t := range known {
		if ids[i] = t.ID; t.ID == *id {
			return
		}
	}
	problems.Add(at("source_config", "template_id"), "there is no template %q; use one of %s", short(*id), strings.Join(ids, ", "))
}
