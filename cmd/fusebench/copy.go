package main

import (
	goruntime "runtime"
	"sync"
	"time"
	"unsafe"
)

// A memcpy is the plain copy that times are compared with: Go's copy, by as
// many goroutines as the device has threads, between aligned memory that was
// touched before.
type memcpy struct {
	dst, src []byte
	threads  int
}

// smallCopy is what one thread copies faster than it hands half of it over.
const smallCopy = 1 << 20

func newMemcpy(bytes, threads int) *memcpy {
	if threads == 0 {
		threads = goruntime.GOMAXPROCS(0)
	}
	if bytes < smallCopy {
		threads = 1
	}
	m := &memcpy{aligned(bytes), aligned(bytes), threads}
	for i := range m.src {
		m.src[i] = byte(i)
	}
	m.run() // touches dst
	return m
}

// aligned memory starts at a multiple of 64, a cache line.
func aligned(n int) []byte {
	b := make([]byte, n+64)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & 63
	return b[skip : skip+n]
}

// run copies once.
func (m *memcpy) run() time.Duration {
	start := time.Now()
	if m.threads == 1 {
		copy(m.dst, m.src)
		return time.Since(start)
	}
	var wg sync.WaitGroup
	for i := range m.threads {
		lo, hi := part(len(m.src), i, m.threads), part(len(m.src), i+1, m.threads)
		wg.Go(func() { copy(m.dst[lo:hi], m.src[lo:hi]) })
	}
	wg.Wait()
	return time.Since(start)
}

// part is where the i-th of n parts of size begins, at a cache line.
func part(size, i, n int) int {
	if i == n {
		return size
	}
	return size / n * i &^ 63
}
