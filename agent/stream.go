package agent

import "encoding/json"

// Frame is one event of a run's stream (reference 10.1).
type Frame struct {
	RunID    string
	ThreadID string
	Seq      int64           // position within the run, from 1
	ID       string          // "<unix ms>-<n>", strictly rising within the thread
	Event    string          // "values", "messages/partial", "updates|sub:<uuid>", …
	Data     json.RawMessage // one line
}
