package plan

import (
	"sort"
	"time"

	"github.com/slipway-dev/slipway"
)

// Next returns the steps that lead from what is observed of one deployment towards what is desired of it at now. The last
// step may be a Wait; without one nothing is due until the world changes. What it promises:
//
//   - The active revision is never drained, and never removed unless the deployment is deleted or retired (or it was draining already
//     and its grace is over); it is started again after every exit, with back-off.
//   - A candidate comes up beside the active revision; it is switched to, then reported DEPLOYED, only when ready. One
//     that cannot become ready is reported DEPLOY_FAILED with the reason and removed; the active one goes on.
//   - What is neither active nor candidate ends: at once if it never served, else by draining, and only while the active
//     revision is ready, so that somebody always works off the queue.
//   - New requests go to a ready revision or wait; never to one that is not ready.
//
// Of observed, at most one entry may bear the same revision. Nothing of observed or desired is changed.
func Next(desired slipway.DesiredDeployment, observed []slipway.Observed, now time.Time, settings Settings) []Step {
	p := &planner{desired: desired, seen: map[string]slipway.Observed{}, now: now, settings: settings}
	for _, o := range observed {
		p.seen[o.RevisionID] = o
	}
	if desired.Deleted || desired.Retired {
		p.tearDown()
		return p.steps
	}
	p.route()
	if desired.Active != nil {
		p.active(*desired.Active)
	}
	if p.hasCandidate() {
		p.candidate(*desired.Candidate)
	}
	for _, o := range p.strangers() {
		p.stranger(o)
	}
	p.finishWait()
	return p.steps
}

type planner struct {
	desired  slipway.DesiredDeployment
	seen     map[string]slipway.Observed
	now      time.Time
	settings Settings
	steps    []Step
	wake     time.Time
}

func (p *planner) do(s Step) { p.steps = append(p.steps, s) }

// wakeAt asks for another look at t; the earliest wish wins.
func (p *planner) wakeAt(t time.Time) {
	if p.wake.IsZero() || t.Before(p.wake) {
		p.wake = t
	}
}

func (p *planner) finishWait() {
	if !p.wake.IsZero() {
		p.do(Step{Verb: Wait, Until: p.wake})
	}
}

// tearDown ends every workload of a deleted deployment in one go, and destroys its data unless it may be restored; a step
// that fails ends the sequence, and it starts anew.
func (p *planner) tearDown() {
	p.do(Step{Verb: Unroute})
	for _, id := range p.revisions() {
		p.do(Step{Verb: Remove, RevisionID: id})
	}
	if p.desired.Deleted {
		p.do(Step{Verb: Destroy})
	}
	p.do(Step{Verb: Gone})
}

// route names the one revision that new requests go to. There is no falling back to an older revision: who serves is
// changed by a report and by nothing else (control-plane reference 10, row 16).
func (p *planner) route() {
	if p.hasCandidate() {
		if o, ok := p.ready(p.desired.Candidate); ok {
			p.do(Step{Verb: Switch, RevisionID: o.RevisionID, Endpoint: o.Endpoint})
			return
		}
	}
	s := Step{Verb: Switch}
	if p.desired.Active != nil {
		s.RevisionID = p.desired.Active.RevisionID
	}
	if o, ok := p.ready(p.desired.Active); ok {
		s.Endpoint = o.Endpoint
	}
	p.do(s)
}

func (p *planner) active(b slipway.Blueprint) {
	o, ok := p.seen[b.RevisionID]
	switch {
	case !ok || o.Phase == slipway.PhaseStarting || o.Phase == slipway.PhaseReady:
		p.do(Step{Verb: Ensure, RevisionID: b.RevisionID, Blueprint: p.desired.Active})
	case o.Phase == slipway.PhaseExited:
		p.restart(o, p.desired.Active)
	case o.Phase == slipway.PhaseDraining:
		p.graceOver(o)
	}
}

// graceOver removes a draining workload that does not end by itself; if it is wanted it then starts afresh.
func (p *planner) graceOver(o slipway.Observed) {
	if p.now.Before(o.DrainUntil) {
		p.wakeAt(o.DrainUntil)
		return
	}
	p.do(Step{Verb: Remove, RevisionID: o.RevisionID})
}

// restart brings an exited workload up again once its pause is over.
func (p *planner) restart(o slipway.Observed, b *slipway.Blueprint) {
	due := o.ExitedAt.Add(p.settings.Backoff(o.Restarts))
	if p.now.Before(due) {
		p.wakeAt(due)
		return
	}
	p.do(Step{Verb: Ensure, RevisionID: b.RevisionID, Blueprint: b})
}

func (p *planner) candidate(b slipway.Blueprint) {
	o, ok := p.seen[b.RevisionID]
	switch {
	case ok && o.Phase == slipway.PhaseReady:
		p.do(Step{Verb: Report, RevisionID: b.RevisionID, Status: slipway.Deployed})
		return
	case ok && p.hopeless(o):
		p.do(Step{Verb: Report, RevisionID: b.RevisionID, Status: slipway.DeployFailed, Reason: reason(o, p.settings)})
		p.do(Step{Verb: Remove, RevisionID: b.RevisionID})
		return
	}
	// The report comes first: if the candidate was interrupted meanwhile it is refused, and nothing is started.
	p.do(Step{Verb: Report, RevisionID: b.RevisionID, Status: slipway.Deploying})
	p.bringUp(o, ok)
}

func (p *planner) bringUp(o slipway.Observed, seen bool) {
	b := p.desired.Candidate
	switch {
	case !seen:
		p.do(Step{Verb: Ensure, RevisionID: b.RevisionID, Blueprint: b})
	case o.Phase == slipway.PhaseStarting:
		p.do(Step{Verb: Ensure, RevisionID: b.RevisionID, Blueprint: b})
		p.wakeAt(o.StartedAt.Add(p.settings.ReadyDeadline))
	case o.Phase == slipway.PhaseExited:
		p.restart(o, b)
	case o.Phase == slipway.PhaseDraining:
		p.graceOver(o)
	}
}

// hopeless reports whether a candidate that is not ready will not become it any more.
func (p *planner) hopeless(o slipway.Observed) bool {
	switch {
	case o.Failure != "":
		return true
	case o.Phase == slipway.PhaseExited:
		return o.Restarts+1 >= p.settings.Attempts
	default:
		return o.Phase == slipway.PhaseStarting && !p.now.Before(o.StartedAt.Add(p.settings.ReadyDeadline))
	}
}

// stranger ends a workload that is neither active nor candidate.
func (p *planner) stranger(o slipway.Observed) {
	switch o.Phase {
	case slipway.PhaseReady:
		if _, ok := p.ready(p.desired.Active); ok || p.desired.Active == nil {
			p.do(Step{Verb: Drain, RevisionID: o.RevisionID})
		}
	case slipway.PhaseDraining:
		p.graceOver(o)
	default: // starting: it never served; exited: nothing to lose
		p.do(Step{Verb: Remove, RevisionID: o.RevisionID})
	}
}

// ready returns what is seen of b if it is ready to take requests.
func (p *planner) ready(b *slipway.Blueprint) (slipway.Observed, bool) {
	if b == nil {
		return slipway.Observed{}, false
	}
	o, ok := p.seen[b.RevisionID]
	return o, ok && o.Phase == slipway.PhaseReady && o.Endpoint != ""
}

// hasCandidate is false also for a candidate that is active already.
func (p *planner) hasCandidate() bool {
	d := p.desired
	return d.Candidate != nil && (d.Active == nil || d.Active.RevisionID != d.Candidate.RevisionID)
}

func (p *planner) revisions() []string {
	ids := make([]string, 0, len(p.seen))
	for id := range p.seen {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return ids
}

func (p *planner) strangers() []slipway.Observed {
	var all []slipway.Observed
	for _, id := range p.revisions() {
		if !is(p.desired.Active, id) && !is(p.desired.Candidate, id) {
			all = append(all, p.seen[id])
		}
	}
	return all
}

func is(b *slipway.Blueprint, revisionID string) bool { return b != nil && b.RevisionID == revisionID }
