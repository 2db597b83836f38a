package cpu

import (
	"bytes"
	"sync"
)

// mapCache is a cache that exists as long as a test.
type mapCache struct {
	mu      sync.Mutex
	entries map[string][]byte
	hits    int
	refused int
}

func (c *mapCache) Get(kind, key string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.entries[kind+" "+key]
	if ok {
		c.hits++
	}
	return v, ok
}

func (c *mapCache) Peek(kind, key string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.entries[kind+" "+key]
	return v, ok
}

func (c *mapCache) Put(kind, key string, value []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[kind+" "+key] = bytes.Clone(value)
	return nil
}

func (c *mapCache) Refuse(string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused++
}

// sharedCode caches compiled code for test devices that wait for code, in tests that check results
// and not compiling: many tests run the same kernels.
var sharedCode = &mapCache{entries: map[string][]byte{}}
