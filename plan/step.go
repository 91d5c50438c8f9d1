package plan

import (
	"time"

	"github.com/slipway-dev/slipway"
)

// Verb says what a Step does.
type Verb string

// The verbs. Steps are executed in the order in which Next lists them.
const (
	Switch  Verb = "switch"  // send new requests to Endpoint of RevisionID; without Endpoint let them wait
	Unroute Verb = "unroute" // forget the deployment's route
	Ensure  Verb = "ensure"  // bring Blueprint up, or up again; for a running workload it renews what the runtime must redact
	Drain   Verb = "drain"   // let RevisionID finish and exit
	Remove  Verb = "remove"  // end RevisionID with all its processes and forget it
	Destroy Verb = "destroy" // remove the deployment's data
	Report  Verb = "report"  // tell that RevisionID reached Status, and why
	Gone    Verb = "gone"    // tell that what a retired or deleted deployment was told to end has ended
	Wait    Verb = "wait"    // look again at Until, even if nothing changes
)

// Step is one thing to do next. Steps are comparable.
type Step struct {
	Verb       Verb
	RevisionID string
	Blueprint  *slipway.Blueprint     // Ensure
	Endpoint   string                 // Switch; "" = nothing serves
	Status     slipway.RevisionStatus // Report: DEPLOYING, DEPLOYED or DEPLOY_FAILED
	Reason     string                 // Report with DEPLOY_FAILED: one sentence
	Until      time.Time              // Wait
}

// Settings are the planner's bounds.
type Settings struct {
	// ReadyDeadline is how long an attempt of a candidate may take to become ready (control-plane reference 10, row 1).
	ReadyDeadline time.Duration
	// Attempts is how often a candidate is started before its exits make it fail; at least 1.
	Attempts int
	// BackoffMin is the pause before the first restart; it doubles with every further one up to BackoffMax.
	BackoffMin, BackoffMax time.Duration
}

// Defaults returns the settings of an installation that sets nothing.
func Defaults() Settings {
	return Settings{ReadyDeadline: 300 * time.Second, Attempts: 3, BackoffMin: time.Second, BackoffMax: time.Minute}
}

// Backoff returns the pause before the restart that follows the given number of restarts.
func (s Settings) Backoff(restarts int) time.Duration {
	d := s.BackoffMin
	for ; restarts > 0 && d < s.BackoffMax; restarts-- {
		d *= 2
	}
	return min(d, s.BackoffMax)
}
