package beacon

import (
	"slices"
	"time"

	"github.com/slipway-dev/slipway"
)

// MaxMeasures bounds the measures of one snapshot; MaxMeasure one count.
const (
	MaxMeasures = 100
	MaxMeasure  = 1 << 53
)

// UsageSnapshot is what an installation used in an interval, aggregated counts only (spec 4.5).
type UsageSnapshot struct {
	From     time.Time        `json:"from_timestamp"`
	To       time.Time        `json:"to_timestamp"`
	Measures map[string]int64 `json:"measures"`
}

// Measures are the names that the specification knows. Others are kept too: a newer installation may count more.
func Measures() []string {
	return []string{
		"workspaces", "users", "projects", "experiments", "datasets", "evaluators", "run_rules", "annotation_queues",
		"prompts", "prompt_commits", "prompt_pulls", "active_pats_30d",
	}
}

// Validate collects what is wrong with the snapshot.
func (s UsageSnapshot) Validate(problems *slipway.Problems, now time.Time) {
	interval(problems, []any{"body", "to_timestamp"}, s.From, s.To, now)
	if len(s.Measures) > MaxMeasures {
		problems.Add([]any{"body", "measures"}, "there are %d measures; send at most %d", len(s.Measures), MaxMeasures)
		return
	}
	names := make([]string, 0, len(s.Measures))
	for name := range s.Measures {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !wordForm.MatchString(name) || len(name) > MaxWord {
			problems.Add([]any{"body", "measures", clip(name)}, "%q is no name of a measure; use letters, digits, '.', '_' and '-', at most %d", clip(name), MaxWord)
		}
		count(problems, []any{"body", "measures", clip(name)}, s.Measures[name], MaxMeasure)
	}
}
