package fault

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// The points that the engine passes.
const (
	Alloc   = "alloc"   // device memory
	Compile = "compile" // running a compiler
	Load    = "load"    // loading a compiler's result
	Launch  = "launch"  // running a list of launches
	File    = "file"    // any file operation of a cache

	MapCode     = "mapcode"     // memory for machine code
	ProtectCode = "protectcode" // making it executable
)

// Error is the error of an armed point.
type Error struct{ Point string }

func (e *Error) Error() string { return fmt.Sprintf("injected fault at %s", e.Point) }

var (
	armed atomic.Int32 // number of armed points
	mu    sync.Mutex
	left  = map[string]int{}
	skip  = map[string]int{} // hits that pass before the failures
)

// Set makes the next n hits of a point fail; n < 0 makes all of them fail and
// 0 disarms the point.
func Set(point string, n int) {
	mu.Lock()
	defer mu.Unlock()
	set(point, 0, n)
}

// SetAfter is Set for n hits after pass hits that succeed: a test can fail each of several passes
// of a point in turn.
func SetAfter(point string, pass, n int) {
	mu.Lock()
	defer mu.Unlock()
	set(point, pass, n)
}

func set(point string, pass, n int) {
	if n == 0 {
		delete(left, point)
		delete(skip, point)
	} else {
		left[point], skip[point] = n, pass
	}
	armed.Store(int32(len(left)))
}

// Reset disarms every point.
func Reset() {
	mu.Lock()
	defer mu.Unlock()
	clear(left)
	clear(skip)
	armed.Store(0)
}

// Hit returns an *Error if the point is armed.
func Hit(point string) error {
	if armed.Load() == 0 {
		return nil
	}
	mu.Lock()
	defer mu.Unlock()
	n, ok := left[point]
	if !ok {
		return nil
	}
	switch {
	case skip[point] > 0:
		skip[point]--
		return nil
	case n == 1:
		delete(left, point)
		armed.Store(int32(len(left)))
	case n > 1:
		left[point] = n - 1
	}
	return &Error{point}
}
