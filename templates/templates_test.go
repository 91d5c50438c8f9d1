package templates_test

import (
	"io/fs"
	"testing"

	"github.com/slipway-dev/slipway/templates"
)

func TestEveryTemplateIsDescribed(t *testing.T) {
	t.Parallel()
	described := map[string]bool{}
	for _, tpl := range templates.All() {
		described[tpl.ID] = true
		if tpl.Title == "" || tpl.Description == "" || tpl.Language == "" {
			t.Errorf("%s lacks a title, a description or its language", tpl.ID)
		}
	}
	entries, err := fs.ReadDir(templates.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !described[e.Name()] {
			t.Errorf("%s is a template without a description", e.Name())
		}
		delete(described, e.Name())
	}
	for id := range described {
		t.Errorf("%s is described and is no template", id)
	}
	if templates.All()[0].ID != templates.Default {
		t.Error("the default template is not the first")
	}
}
