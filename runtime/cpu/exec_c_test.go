//go:build cgo && unix

package cpu

import (
	"bytes"
	"math/rand/v2"
	goruntime "runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/runtime"
)

// heap has objects be in Go's heap for a moment.
var heap []*[10]*int

// addresses fills memory of C with those of objects of Go that nobody has, as operands
// in Go's memory leave them.
func addresses(memory unsafe.Pointer, n int) {
	words := unsafe.Slice((*uintptr)(memory), n)
	for i := range words {
		heap = append(heap, new([10]*int))
		words[i] = uintptr(unsafe.Pointer(heap[i]))
	}
	heap = nil
}

// Memory of C in which Go stores pointers forgets what was there: the collector looks at
// that while it marks, and an address that is no object any more ends the process.
func TestMemoryOfCForgets(t *testing.T) {
	var all sync.WaitGroup
	done := make(chan bool)
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				goruntime.GC()
			}
		}
	})
	const n = 20_000
	var a arena
	for range 30 {
		if !a.reset(8 * n) {
			t.Fatal("no memory")
		}
		addresses(unsafe.Pointer(unsafe.SliceData(arenaSlice[uintptr](&a, n))), n)
		a.wipe()
		goruntime.GC()
		a.reset(8 * n)
		s := arenaSlice[unsafe.Pointer](&a, n)
		for i := range 3 * n {
			s[i%n] = a.base
		}
		a.wipe()

		var c cMemory
		addresses(c.alloc(8*n), n)
		c.free()
		c.all = nil
		fresh := unsafe.Slice((*byte)(c.alloc(8*n)), 8*n) // what was just freed, mostly
		if len(bytes.Trim(fresh, "\x00")) > 0 {
			t.Error("new memory has what was there before")
		}
		c.free()
	}
	close(done)
	all.Wait()
}

// So does the arena of a run.
func TestRunForgets(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 1, Compile: runtime.CompileOff})
	k := arithmetic(t, "mul")[0]
	onDevice(t, d, k, kerneltest.NewLaunch(rand.New(rand.NewPCG(1, 1)), k, []int64{100}, 1, kerneltest.Dense))
	seen := 0
	for _, crews := range []*crews{d.wide, d.alone} {
		w, err := crews.lend()
		if err != nil {
			t.Fatal(err)
		}
		if a := &w.exec.(*cExecutor).arena; a.used > 0 {
			seen++
			if s := unsafe.Slice((*byte)(a.base), a.size); len(bytes.Trim(s, "\x00")) > 0 {
				t.Errorf("of %d bytes of a run some are left", a.used)
			}
		}
		crews.giveBack(w)
	}
	if seen == 0 {
		t.Error("nothing ran in C")
	}
}
