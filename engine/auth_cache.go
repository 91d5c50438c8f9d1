package engine

import (
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// userCache remembers who sent the requests with the same values of certain headers (`auth.cache`, reference 12). It holds
// hashes of the values, not the values. It is safe for concurrent use.
type userCache struct {
	headers []string
	ttl     time.Duration
	size    int

	mu    sync.Mutex
	byKey map[cacheKey]*list.Element
	order list.List // of *cachedUser, the one used last in front
}

type cacheKey [sha256.Size]byte

type cachedUser struct {
	key   cacheKey
	user  *agent.User
	until time.Time
}

func newUserCache(c AuthConfig) *userCache {
	u := &userCache{ttl: c.CacheTTL, size: or(c.CacheSize, 1000), byKey: map[cacheKey]*list.Element{}}
	for _, name := range c.CacheKeys {
		u.headers = append(u.headers, strings.ToLower(name))
	}
	return u
}

// key returns what stands for a request's sender. A request without any of the headers says nothing of its sender: it is
// not for the cache.
func (c *userCache) key(header func(string) []string) (key cacheKey, usable bool) {
	if c.ttl <= 0 {
		return key, false
	}
	h := sha256.New()
	put := func(text string) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(text)))
		h.Write(size[:])
		h.Write([]byte(text))
	}
	for _, name := range c.headers {
		values := header(name)
		usable = usable || len(values) > 0
		put(name)
		for _, v := range values {
			put(v)
		}
	}
	return cacheKey(h.Sum(nil)), usable
}

func (c *userCache) get(key cacheKey, now time.Time) *agent.User {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.byKey[key]
	if at == nil {
		return nil
	}
	entry := at.Value.(*cachedUser)
	if !now.Before(entry.until) {
		c.drop(at)
		return nil
	}
	c.order.MoveToFront(at)
	return entry.user
}

func (c *userCache) put(key cacheKey, u *agent.User, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.byKey[key]; at != nil {
		c.drop(at)
	}
	for len(c.byKey) >= c.size {
		c.drop(c.order.Back())
	}
	c.byKey[key] = c.order.PushFront(&cachedUser{key, u, now.Add(c.ttl)})
}

// drop is called with mu held.
func (c *userCache) drop(at *list.Element) {
	delete(c.byKey, at.Value.(*cachedUser).key)
	c.order.Remove(at)
}
