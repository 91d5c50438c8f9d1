package engine

import (
	"sync"

	"github.com/slipway-dev/slipway/agent"
)

// assistantCache holds the system assistants: nearly every run is one of them. It is safe for concurrent use.
type assistantCache struct {
	mu      sync.RWMutex
	byID    map[string]agent.Assistant
	changes int // dropped so far: what was read before a drop must not be put in after it
}

func (c *assistantCache) get(id string) (a agent.Assistant, found bool, changes int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, found = c.byID[id]
	return a, found, c.changes
}

// put keeps a system assistant that was read since get told changes.
func (c *assistantCache) put(a agent.Assistant, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !a.System || changes != c.changes {
		return
	}
	if c.byID == nil {
		c.byID = map[string]agent.Assistant{}
	}
	c.byID[a.ID] = a
}

func (c *assistantCache) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	delete(c.byID, id)
}

// clear drops everything: what a peer changed before its line to here stood has not been heard.
func (c *assistantCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	clear(c.byID)
}
