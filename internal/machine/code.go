package machine

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/millrace-go/millrace/internal/fault"
)

// Supported reports whether this system has executable pages and calls into them. Level says
// whether the processor has the instructions.
func Supported() bool { return callable && pages }

// ErrUnsupported is Map's error if Supported is false.
var ErrUnsupported = fmt.Errorf("machine code made in the process: %w", errors.ErrUnsupported)

// Error says that the system refused memory for code: there is none left, or a policy (seccomp,
// SELinux) forbids executable memory.
type Error struct {
	Op    string // mmap or mprotect, or the system's name for them
	Bytes int
	Err   error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s of %d bytes for machine code: %v", e.Op, e.Bytes, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// FullError says that the maximal number of mappings is in use.
type FullError struct{ Mappings int64 }

func (e *FullError) Error() string {
	return fmt.Sprintf("%d mappings of machine code are in use, as many as there may be", e.Mappings)
}

// maxMappings bounds the mappings of this process. Linux allows 65,530 of all kinds, and Go's
// runtime ends the process when they run out. It is a variable for tests.
var maxMappings int64 = 16384

// Code is machine code in memory. Its pages are returned to the system by Free, or when the Code is
// unreachable.
type Code struct {
	addr    atomic.Uintptr // 0 after Free
	bytes   int
	number  uint64
	cleanup runtime.Cleanup
}

// Addr is the address of the byte at off, 0 after Free. An address keeps nothing alive: the caller
// must hold the Code until the call has returned (runtime.KeepAlive).
func (c *Code) Addr(off int) uintptr {
	a := c.addr.Load()
	if a == 0 {
		return 0
	}
	return a + uintptr(off)
}

// Bytes is the size of its memory, whole pages.
func (c *Code) Bytes() int { return c.bytes }

// Free returns the pages at once. No code may be running in them. Freeing again does nothing.
func (c *Code) Free() {
	if c.addr.Swap(0) == 0 {
		return
	}
	c.cleanup.Stop()
	all.mu.Lock()
	defer all.mu.Unlock()
	all.release(c.number)
}

// Map makes code executable. Several goroutines may call it at once.
func Map(code []byte) (*Code, error) {
	if !Supported() {
		return nil, ErrUnsupported
	}
	if len(code) == 0 {
		return nil, errors.New("no machine code to map")
	}
	if err := all.reserve(); err != nil {
		return nil, err
	}
	mem, err := executable(code)
	if err != nil {
		all.count.Add(-1)
		return nil, err
	}
	return all.publish(mem), nil
}

func executable(code []byte) ([]byte, error) {
	n := len(code) + pageSize - 1
	n -= n % pageSize
	err := fault.Hit(fault.MapCode)
	var mem []byte
	if err == nil {
		mem, err = allocate(n)
	}
	if err != nil {
		return nil, &Error{allocateOp, n, err}
	}
	rest := mem[copy(mem, code):] // execution past the end of the code stops there
	for i := range rest {
		rest[i] = trap
	}
	if err = fault.Hit(fault.ProtectCode); err == nil {
		err = protect(mem)
	}
	if err != nil {
		return nil, errors.Join(&Error{protectOp, n, err}, release(mem))
	}
	settle(mem)
	return mem, nil
}

var pageSize = systemPage()

// mappings are the current ones. They refer to a Code by a weak pointer only.
type mappings struct {
	count atomic.Int64 // including mappings being made
	bytes atomic.Int64

	mu   sync.Mutex
	last uint64 // the last number given
	live map[uint64]mapping
	full bool // the last collection found little to release
}

type mapping struct {
	mem  []byte
	code weak.Pointer[Code]
}

var all = mappings{live: map[uint64]mapping{}}

// Live returns the number of mappings of this process now, and their bytes.
func Live() (count, bytes int64) { return all.count.Load(), all.bytes.Load() }

// reserve counts one more mapping. At the limit it first collects garbage: small programs make
// little garbage, so code that they no longer use may still be mapped. If a collection releases
// little, it is not repeated until some mappings were returned.
func (x *mappings) reserve() error {
	if x.take() {
		return nil
	}
	x.mu.Lock()
	full := x.full
	x.mu.Unlock()
	if !full {
		runtime.GC()
		x.sweep()
		if x.take() {
			return nil
		}
	}
	return &FullError{maxMappings}
}

func (x *mappings) take() bool {
	for {
		n := x.count.Load()
		if n >= maxMappings {
			return false
		}
		if x.count.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// publish makes a Code of memory that is already executable.
func (x *mappings) publish(mem []byte) *Code {
	c := &Code{bytes: len(mem)}
	c.addr.Store(address(mem))
	x.mu.Lock()
	defer x.mu.Unlock()
	x.last++
	c.number = x.last
	x.live[c.number] = mapping{mem, weak.Make(c)}
	x.bytes.Add(int64(len(mem)))
	c.cleanup = runtime.AddCleanup(c, x.collected, c.number)
	return c
}

func (x *mappings) collected(number uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.release(number)
}

// sweep returns unreachable mappings: cleanups run some time after a collection.
func (x *mappings) sweep() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for number, m := range x.live {
		if m.code.Value() == nil {
			x.release(number)
		}
	}
	x.full = x.crowded()
}

func (x *mappings) crowded() bool { return x.count.Load() > maxMappings-maxMappings/16 }

// release returns one mapping; the caller holds the lock. A mapping that the system does not take
// back stays counted.
func (x *mappings) release(number uint64) {
	m, ok := x.live[number]
	if !ok {
		return
	}
	delete(x.live, number)
	if release(m.mem) != nil {
		return
	}
	x.bytes.Add(-int64(len(m.mem)))
	x.count.Add(-1)
	x.full = x.full && x.crowded()
}
