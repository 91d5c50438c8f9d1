package control

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/slipway-dev/slipway"
)

// changesKept bounds how many changes a topic remembers; whoever is further behind reads everything anew.
const changesKept = 4096

// topics say which deployments of which listener changed, so that a change wakes only the listener concerned and that one
// reads only what changed.
type topics struct {
	boot string // tells this process from the ones before it
	mu   sync.Mutex
	all  map[string]*topic // by listener id; "" = the embedded one
}

type topic struct {
	version int64
	floor   int64    // changes up to this version are not remembered
	changed []string // the deployment of each version after floor
	next    chan struct{}
}

func newTopics(boot string) *topics { return &topics{boot: boot, all: map[string]*topic{}} }

// of returns the listener's topic; t.mu is held.
func (t *topics) of(listenerID string) *topic {
	found := t.all[listenerID]
	if found == nil {
		found = &topic{next: make(chan struct{})}
		t.all[listenerID] = found
	}
	return found
}

// state returns the version of now and a channel that closes with the next change. Whoever reads the records afterwards
// sees at least that version.
func (t *topics) state(listenerID string) (version int64, next <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.of(listenerID)
	return found.version, found.next
}

// since returns the deployments that changed after the version, each once; ok is false if that is not remembered.
func (t *topics) since(listenerID string, version int64) (ids []string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.of(listenerID)
	if version < found.floor || version > found.version {
		return nil, false
	}
	ids = slices.Clone(found.changed[version-found.floor:])
	slices.Sort(ids)
	return slices.Compact(ids), true
}

func (t *topics) touch(listenerID string, deployments []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.of(listenerID)
	found.version += int64(len(deployments))
	found.changed = append(found.changed, deployments...)
	if drop := len(found.changed) - changesKept; drop > 0 {
		found.changed = slices.Clone(found.changed[drop:])
		found.floor += int64(drop)
	}
	found.wake()
}

// touchAll makes every listener read everything anew: something changed, nobody knows what.
func (t *topics) touchAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, found := range t.all {
		found.version++
		found.floor, found.changed = found.version, nil
		found.wake()
	}
}

func (t *topic) wake() {
	close(t.next)
	t.next = make(chan struct{})
}

func (t *topics) cursor(version int64) string { return fmt.Sprintf("%s.%d", t.boot, version) }

// version reads a cursor of this process; ok is false for any other.
func (t *topics) version(cursor string) (version int64, ok bool) {
	number, ok := strings.CutPrefix(cursor, t.boot+".")
	if !ok {
		return 0, false
	}
	version, err := strconv.ParseInt(number, 10, 64)
	return version, err == nil && version >= 0
}

// tracked notes what a transaction touches, for waking whom it concerns.
type tracked struct {
	slipway.Tx
	touched map[string][]string // deployments by listener
	changes []*deploymentChange // for webhooks
	queued  bool                // a delivery was written
}

// deploymentChange is what a transaction did to one deployment.
type deploymentChange struct {
	before, after slipway.Deployment // before has no id for a new one, after none for one that is gone
	revisions     []slipway.Revision // every status a revision came to
}

// PutDeployment notes the deployment. Every transaction that changes what should run of it puts it.
func (t *tracked) PutDeployment(d slipway.Deployment) error {
	t.note(d)
	c, err := t.change(d.ID)
	if err != nil {
		return err
	}
	c.after = d
	return t.Tx.PutDeployment(d)
}

// PutRevision notes the status that a revision came to.
func (t *tracked) PutRevision(r slipway.Revision) error {
	old, err := t.Revision("", r.DeploymentID, r.ID)
	if err != nil && slipway.ErrorCode(err) != slipway.CodeNotFound {
		return err
	}
	if old.Status != r.Status {
		c, err := t.change(r.DeploymentID)
		if err != nil {
			return err
		}
		c.revisions = append(c.revisions, r)
	}
	return t.Tx.PutRevision(r)
}

// change returns the notes about a deployment, begun with what is stored of it.
func (t *tracked) change(deploymentID string) (*deploymentChange, error) {
	for _, c := range t.changes {
		if c.before.ID == deploymentID || c.after.ID == deploymentID {
			return c, nil
		}
	}
	before, err := t.Deployment("", deploymentID)
	if err != nil && slipway.ErrorCode(err) != slipway.CodeNotFound {
		return nil, err
	}
	c := &deploymentChange{before: before, after: before}
	t.changes = append(t.changes, c)
	return c, nil
}

// PurgeDeployment notes the deployment that goes.
func (t *tracked) PurgeDeployment(id string) error {
	d, err := t.Deployment("", id)
	if err == nil {
		t.note(d)
	}
	return t.Tx.PurgeDeployment(id)
}

func (t *tracked) note(d slipway.Deployment) {
	if t.touched == nil {
		t.touched = map[string][]string{}
	}
	at := d.ListenerID()
	if !slices.Contains(t.touched[at], d.ID) {
		t.touched[at] = append(t.touched[at], d.ID)
	}
}

// wake tells everyone whom a transaction concerns, once it is durable.
func (s *Service) wake(t *tracked) {
	for listenerID, deployments := range t.touched {
		s.topics.touch(listenerID, deployments)
	}
	if t.queued {
		s.outbox.wake()
	}
	s.changed.wake()
}
