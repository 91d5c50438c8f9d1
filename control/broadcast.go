package control

import (
	"fmt"
	"sync"
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

// Changed wakes everyone who waits: another process has, or may have, changed the records.
func (s *Service) Changed() { s.changed.wake() }
