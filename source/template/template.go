// Package template unpacks the templates that come with the program.
package template

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/slipway-dev/slipway"
)

// Fetcher copies templates out of a file system with one directory per template.
type Fetcher struct{ templates fs.FS }

var _ slipway.SourceFetcher = (*Fetcher)(nil)

// New makes a Fetcher.
func New(templates fs.FS) *Fetcher { return &Fetcher{templates: templates} }

// Fetch implements slipway.SourceFetcher.
func (f *Fetcher) Fetch(_ context.Context, job slipway.BuildJob, dir string, _ func(string)) (string, error) {
	entries, err := fs.ReadDir(f.templates, ".")
	if err != nil {
		return "", fmt.Errorf("read templates: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
		if e.IsDir() && e.Name() == job.TemplateID {
			sub, err := fs.Sub(f.templates, e.Name())
			if err != nil {
				return "", fmt.Errorf("read template: %w", err)
			}
			return "", os.CopyFS(dir, sub)
		}
	}
	return "", slipway.Errorf(slipway.CodeBadRequest, "there is no template %q: choose one of %s", job.TemplateID, strings.Join(names, ", "))
}
