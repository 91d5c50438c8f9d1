package slipway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
)

func TestAuditDiff(t *testing.T) {
	t.Parallel()
	before := map[string]any{
		"same": 1, "gone": "x", "deep": map[string]any{"a": 1, "b": nil}, "list": []any{1}, "repo_url": "https://u:canary@h/r",
		"webhook_secret": "canary", "env": []any{map[string]any{"name": "A", "value": "canary"}},
	}
	after := map[string]any{
		"same": 1, "new": true, "deep": map[string]any{"a": 2}, "list": []any{1, 2}, "repo_url": "https://u:canary2@other/r",
		"webhook_secret": "canary2", "env": []any{map[string]any{"name": "B", "value": "canary"}}, "long": strings.Repeat("x", 5000),
	}
	changes, err := slipway.AuditDiff(before, after)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, fmt.Sprintf("%s: %s -> %s", c.Field, c.Before, c.After))
	}
	m := slipway.MaskedSecret
	want := []string{
		"deep.a: 1 -> 2",
		`env: [{"name":"A","value":"` + m + `"}] -> [{"name":"B","value":"` + m + `"}]`,
		`gone: "x" -> `,
		"list: [1] -> [1,2]",
		`long:  -> "(5002 bytes)"`,
		"new:  -> true",
		`repo_url: "https://h/r" -> "https://other/r"`,
		`webhook_secret: "` + m + `" -> "` + m + `"`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if none, err := slipway.AuditDiff(before, before); err != nil || len(none) != 0 {
		t.Errorf("of the same: %v, %v", none, err)
	}
	if all, err := slipway.AuditDiff(nil, map[string]any{"a": 1}); err != nil || len(all) != 1 || all[0].Before != nil {
		t.Errorf("of something new: %v, %v", all, err)
	}
}
