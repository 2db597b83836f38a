package main

import (
	"encoding/binary"
	goruntime "runtime"
	"sync"
	"time"
	"unsafe"
)

// hostMemory is memory for plain copies and reads, with which times are compared. It is aligned,
// was touched before, and is used by as many goroutines as the device has threads.
type hostMemory struct {
	dst, src []byte
	threads  int
	sum      uint64 // keeps reads from being optimised away
}

// smallCopy is the size up to which one thread copies faster than it could share the work with
// another.
const smallCopy = 1 << 20

// newHostMemory allocates enough memory to copy and to read that many bytes.
func newHostMemory(bytes, threads int) *hostMemory {
	if threads == 0 {
		threads = goruntime.GOMAXPROCS(0)
	}
	m := &hostMemory{dst: aligned(bytes), src: aligned(bytes), threads: threads}
	for i := range m.src {
		m.src[i] = byte(i)
	}
	m.copy(bytes) // touches dst
	return m
}

// aligned returns n bytes that start at a multiple of 64, the size of a cache line.
func aligned(n int) []byte {
	b := make([]byte, n+64)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & 63
	return b[skip : skip+n]
}

// copy times Go's copy of that many bytes.
func (m *hostMemory) copy(bytes int) time.Duration {
	return m.share(bytes, func(lo, hi int) { copy(m.dst[lo:hi], m.src[lo:hi]) })
}

// read times adding up that many bytes as words. Every thread reads memory as fast as it can.
func (m *hostMemory) read(bytes int) time.Duration {
	var mu sync.Mutex
	return m.share(bytes, func(lo, hi int) {
		sum := sumWords(m.src[lo:hi])
		mu.Lock()
		defer mu.Unlock()
		m.sum += sum
	})
}

func sumWords(b []byte) uint64 {
	var s [8]uint64
	for ; len(b) >= 64; b = b[64:] {
		w := (*[64]byte)(b)
		s[0] += binary.NativeEndian.Uint64(w[0:])
		s[1] += binary.NativeEndian.Uint64(w[8:])
		s[2] += binary.NativeEndian.Uint64(w[16:])
		s[3] += binary.NativeEndian.Uint64(w[24:])
		s[4] += binary.NativeEndian.Uint64(w[32:])
		s[5] += binary.NativeEndian.Uint64(w[40:])
		s[6] += binary.NativeEndian.Uint64(w[48:])
		s[7] += binary.NativeEndian.Uint64(w[56:])
	}
	sum := s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7]
	for _, c := range b {
		sum += uint64(c)
	}
	return sum
}

// share times f on parts of that many bytes, one for each thread.
func (m *hostMemory) share(bytes int, f func(lo, hi int)) time.Duration {
	start := time.Now()
	if m.threads == 1 || bytes < smallCopy {
		f(0, bytes)
		return time.Since(start)
	}
	var wg sync.WaitGroup
	for i := range m.threads {
		lo, hi := part(bytes, i, m.threads), part(bytes, i+1, m.threads)
		wg.Go(func() { f(lo, hi) })
	}
	wg.Wait()
	return time.Since(start)
}

// part returns where the i-th of n parts of size begins, at a cache line.
func part(size, i, n int) int {
	if i == n {
		return size
	}
	return size / n * i &^ 63
}
