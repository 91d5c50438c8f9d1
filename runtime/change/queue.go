// Package change holds what every runtime needs to announce changes: a queue that merges ids and loses none.
package change

import "sync"

// Queue hands ids from many writers to one channel. An id that waits already is merged; none is lost. Put never blocks.
type Queue struct {
	out  chan string
	kick chan struct{}
	stop chan struct{}
	once sync.Once

	mu    sync.Mutex
	order []string
	has   map[string]bool
}

// NewQueue returns a Queue whose goroutine runs until Close.
func NewQueue() *Queue {
	q := &Queue{out: make(chan string), kick: make(chan struct{}, 1), stop: make(chan struct{}), has: map[string]bool{}}
	go q.pump()
	return q
}

// Out is the channel that yields the ids. It is never closed.
func (q *Queue) Out() <-chan string { return q.out }

// Put adds an id unless it waits already.
func (q *Queue) Put(id string) {
	q.mu.Lock()
	if !q.has[id] {
		q.has[id] = true
		q.order = append(q.order, id)
	}
	q.mu.Unlock()
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// Close ends the goroutine; ids put later wait for ever.
func (q *Queue) Close() { q.once.Do(func() { close(q.stop) }) }

func (q *Queue) pump() {
	for {
		id, ok := q.next()
		if !ok {
			select {
			case <-q.kick:
				continue
			case <-q.stop:
				return
			}
		}
		select {
		case q.out <- id:
		case <-q.stop:
			return
		}
	}
}

func (q *Queue) next() (string, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		return "", false
	}
	id := q.order[0]
	q.order = q.order[1:]
	delete(q.has, id)
	return id, true
}
