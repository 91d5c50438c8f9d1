package control

import (
	"fmt"
	"sync"

	"github.com/slipway-dev/slipway"
)

// broadcast tells everyone who waits that something changed. A waiter takes the state before it reads, so that a change
// during the read is not lost.
type broadcast struct {
	boot    string // tells this process from the ones before it
	mu      sync.Mutex
	version int64
	next    chan struct{}
}

func newBroadcast(boot string) *broadcast {
	return &broadcast{boot: boot, next: make(chan struct{})}
}

// state returns a cursor of now and a channel that closes with the next change.
func (b *broadcast) state() (cursor string, next <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("%s-%d", b.boot, b.version), b.next
}

func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version++
	close(b.next)
	b.next = make(chan struct{})
}

// Hear wakes those whom a change concerns that another control service made. What is remembered of
// keys and tenants may be out of date, too.
func (s *Service) Hear(n slipway.News) {
	s.access.forget()
	switch {
	case n.Missed:
		s.topics.touchAll()
	case n.DeploymentID != "":
		s.topics.touch(n.ListenerID, []string{n.DeploymentID})
	}
	s.beats.wake()
	s.outbox.wake() // deliveries of a process that died are this one's
	s.changed.wake()
}
