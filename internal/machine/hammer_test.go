//go:build gc && ((amd64 && (linux || darwin)) || (arm64 && linux))

package machine

import (
	"bytes"
	"compress/gzip"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// nanosOf is the time of one call, the minimum of some.
func nanosOf(addr uintptr, f *frame) int64 {
	least := int64(1 << 62)
	for range 20 {
		start := time.Now()
		Call(addr, unsafe.Pointer(f), KeepMXCSR)
		least = min(least, time.Since(start).Nanoseconds())
	}
	return least
}

// deep calls from the bottom of a stack that must grow for it, with a frame on it.
//
//go:noinline
func deep(n int, addr uintptr, in uint64) uint64 {
	var pad [40]uint64
	pad[n%40] = in
	if n > 0 {
		return deep(n-1, addr, in) + pad[(n+1)%40]
	}
	f := frame{in: in}
	Call(addr, unsafe.Pointer(&f), KeepMXCSR)
	return f.out
}

// TestHammer: endless collections, a profile with a thousand samples a second, faults, and code
// that is mapped and freed, while 32 goroutines spend most of the time in native code, in calls as
// long as allowed.
func TestHammer(t *testing.T) {
	if Level() == None {
		t.Skip("no level: nothing is called")
	}
	settled(t, 0)
	length := 10 * time.Second
	if testing.Short() {
		length = time.Second
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	long := mapForCalls(t, clobber(), countDown, load, store)
	short := mapForCalls(t, clobber(), load, addOne, store)
	bad := mapForCalls(t, clobber(), load, deref)
	const probe = 1 << 16
	turns := uint64(probe * 150_000 / max(1, nanosOf(long.Addr(0), &frame{in: probe})))

	var profile bytes.Buffer
	runtime.SetCPUProfileRate(1000) // the next call reports that it is already set
	if err := pprof.StartCPUProfile(&profile); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var calls, faults, collections atomic.Int64
	var wg sync.WaitGroup
	for w := range uint64(32) {
		wg.Go(func() {
			var keep [8][]byte
			for i := w; !stop.Load(); i++ {
				f := &frame{in: turns}
				Call(long.Addr(0), unsafe.Pointer(f), KeepMXCSR)
				if f.out != turns {
					t.Errorf("a loop of %d turns gave %d", turns, f.out)
				}
				if got := deep(int(i%200), short.Addr(0), i); got != i+1 {
					t.Errorf("%d and one is %d", i, got)
				}
				keep[i%8] = make([]byte, 1000+i%5000)
				switch i % 8 {
				case 0:
					if faultOf(func() { Call(bad.Addr(0), unsafe.Pointer(&frame{in: 8}), FlushMXCSR) }) != nil {
						faults.Add(1)
					}
				case 1:
					c, err := Map(join(load, addOne, addOne, store))
					if err != nil {
						t.Error(err)
						return
					}
					if got := deep(3, c.Addr(0), i); got != i+2 {
						t.Errorf("%d and two is %d", i, got)
					}
					if i%16 == 1 {
						c.Free()
					}
					runtime.KeepAlive(c)
				case 2:
					runtime.Stack(make([]byte, 1<<12), i%64 == 2)
				}
				calls.Add(1)
			}
		})
	}
	wg.Go(func() {
		for !stop.Load() {
			runtime.GC()
			collections.Add(1)
		}
	})
	time.Sleep(length)
	stop.Store(true)
	wg.Wait()
	pprof.StopCPUProfile()
	runtime.KeepAlive([]*Code{long, short, bad})
	t.Logf("%d turns, %d rounds, %d faults, %d collections", turns, calls.Load(), faults.Load(), collections.Load())
	if calls.Load() == 0 || faults.Load() == 0 || collections.Load() == 0 {
		t.Error("something never came to run")
	}
	z, err := gzip.NewReader(&profile)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("runtime._ExternalCode")) {
		t.Error("the profile has no sample in native code")
	}
	settled(t, 3)
}
