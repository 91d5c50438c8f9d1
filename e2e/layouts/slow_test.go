//go:build layouts

package layouts_test

import "testing"

// TestSlowLayouts needs minutes where nothing is cached: `make test-layouts`.
func TestSlowLayouts(t *testing.T) {
	t.Parallel()
	for _, l := range slow() {
		t.Run(l.name, func(t *testing.T) { l.check(t) })
	}
}
