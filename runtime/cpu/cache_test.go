package cpu

import (
	"bytes"
	"sync"
)

// mapCache is a cache that lives as long as a test.
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

// sharedCode is what devices of tests have compiled that wait for code and look at what
// it computes, not at how it came about: many tests run the same kernels.
var sharedCode = &mapCache{entries: map[string][]byte{}}
