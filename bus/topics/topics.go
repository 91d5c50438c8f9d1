// Package topics delivers messages to the subscriptions of one process: what every bus does with what it heard.
package topics

import "sync"

// Hub holds the subscriptions of one process. Its zero value is ready; its methods may be called concurrently.
type Hub struct {
	mu     sync.Mutex
	topics map[string]map[*subscriber]struct{}
}

// Deliver hands a message to every subscription of the topic. It never blocks.
func (h *Hub) Deliver(topic string, payload []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.topics[topic] {
		s.push(payload)
	}
}

// Subscribe calls fn for every message of the topic, one at a time and in order, until cancel is called. fn may publish,
// subscribe and cancel. A message that is being handled when cancel is called may still be running when it returns.
func (h *Hub) Subscribe(topic string, fn func(payload []byte)) (cancel func()) {
	s := &subscriber{fn: fn}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.topics == nil {
		h.topics = map[string]map[*subscriber]struct{}{}
	}
	if h.topics[topic] == nil {
		h.topics[topic] = map[*subscriber]struct{}{}
	}
	h.topics[topic][s] = struct{}{}
	return func() { h.unsubscribe(topic, s) }
}

func (h *Hub) unsubscribe(topic string, s *subscriber) {
	s.cancel()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.topics[topic], s)
	if len(h.topics[topic]) == 0 {
		delete(h.topics, topic)
	}
}

// subscriber delivers the messages of one subscription in order, on a goroutine that lives while there are some.
type subscriber struct {
	fn func([]byte)

	mu     sync.Mutex
	queue  [][]byte
	active bool
	gone   bool
}

func (s *subscriber) push(payload []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	s.queue = append(s.queue, payload)
	if !s.active {
		s.active = true
		go s.run()
	}
}

func (s *subscriber) run() {
	for {
		s.mu.Lock()
		if len(s.queue) == 0 || s.gone {
			s.active = false
			s.mu.Unlock()
			return
		}
		payload := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		s.fn(payload)
	}
}

func (s *subscriber) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	s.queue = nil
}
