//go:build gc && ((amd64 && (linux || darwin)) || (arm64 && linux))

package machine

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// frame is the argument of the code below.
type frame struct {
	in, out uint64
	data    [4]float32
}

func join(parts ...[]byte) []byte { return bytes.Join(append(parts, justReturn), nil) }

func mapForCalls(t testing.TB, parts ...[]byte) *Code {
	t.Helper()
	if Level() == None {
		t.Skip("no level: nothing is called")
	}
	return mustMap(t, join(parts...))
}

// TestCall: frames may be on the stack, on the heap and outside. Calls allocate nothing, and Go's
// code continues as if nothing had been changed.
func TestCall(t *testing.T) {
	c := mapForCalls(t, clobber(), load, addOne, store)
	defer runtime.KeepAlive(c)
	addr := c.Addr(0)
	allocs := testing.AllocsPerRun(100, func() {
		f := frame{in: 41}
		Call(addr, unsafe.Pointer(&f), KeepMXCSR)
		if f.out != 42 {
			t.Errorf("on the stack: %d", f.out)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	heap := &frame{in: 6}
	Call(addr, unsafe.Pointer(heap), KeepMXCSR)
	mem, err := allocate(pageSize)
	if err != nil {
		t.Fatal(err)
	}
	defer release(mem)
	outside := (*frame)(unsafe.Pointer(unsafe.SliceData(mem)))
	outside.in = 7
	Call(addr, unsafe.Pointer(outside), KeepMXCSR)
	if heap.out != 7 || outside.out != 8 {
		t.Errorf("on the heap %d, outside %d", heap.out, outside.out)
	}
	var zero [64]byte // cleared by a register that Go keeps at zero
	fill(&zero)
	if zero != [64]byte{} {
		t.Errorf("Go's zero is %v", zero)
	}
}

//go:noinline
func fill(b *[64]byte) { *b = [64]byte{} }

// TestMXCSR: the treatment of denormals is the call's during the call, and the thread's afterwards,
// in all combinations, also after a fault.
func TestMXCSR(t *testing.T) {
	c := mapForCalls(t, multiply)
	bad := mapForCalls(t, load, deref)
	defer runtime.KeepAlive([]*Code{c, bad})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := getMXCSR()
	defer setMXCSR(before)
	const smallest = 0x1p-126
	for _, thread := range []uint32{KeepMXCSR, KeepMXCSR | mxcsrFlags, FlushMXCSR} {
		for _, asked := range []uint32{KeepMXCSR, FlushMXCSR} {
			f := frame{data: [4]float32{smallest, 0.5, -1}}
			setMXCSR(thread)
			Call(c.Addr(0), unsafe.Pointer(&f), asked)
			after := getMXCSR()
			setMXCSR(thread)
			err := faultOf(func() { Call(bad.Addr(0), unsafe.Pointer(&frame{in: 8}), asked) })
			afterFault := getMXCSR()
			setMXCSR(before)
			want := float32(0x1p-127)
			if asked == FlushMXCSR {
				want = 0
			}
			if math.Float32bits(f.data[2]) != math.Float32bits(want) {
				t.Errorf("thread %#x, asked for %#x: %g, want %g", thread, asked, f.data[2], want)
			}
			left := thread
			if !restores && asked == KeepMXCSR {
				left = KeepMXCSR
			}
			if (after^left)&^mxcsrFlags != 0 || (afterFault^left)&^mxcsrFlags != 0 {
				t.Errorf("thread %#x, asked for %#x: afterwards %#x, after a fault %#x", thread, asked, after, afterFault)
			}
			if err == nil {
				t.Error("no fault")
			}
		}
	}
}

// faultOf returns the panic of f, with the stack at its recovery.
func faultOf(f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if e, ok := recover().(error); ok {
			err = &faultError{e, string(debug.Stack())}
		}
	}()
	f()
	return nil
}

type faultError struct {
	error
	stack string
}

func (e *faultError) Unwrap() error { return e.error }

// badPages returns addresses of a missing page, an unreadable page, and a page of a truncated file.
func badPages(t *testing.T) (gone, closed, cut uint64) {
	// Use the lower end of a large hole: the next mapping is put at the upper end.
	hole, err := allocate(1 << 26)
	if err != nil {
		t.Fatal(err)
	}
	if err := release(hole); err != nil {
		t.Fatal(err)
	}
	none, err := syscall.Mmap(-1, 0, pageSize, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(none) })
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(int64(pageSize)); err != nil {
		t.Fatal(err)
	}
	mapped, err := syscall.Mmap(int(file.Fd()), 0, pageSize, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(mapped) })
	if err := file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	return uint64(address(hole)), uint64(address(none)), uint64(address(mapped))
}

// TestFaults: faults in code are panics that name the caller.
func TestFaults(t *testing.T) {
	gone, closed, cut := badPages(t)
	for _, mxcsr := range []uint32{KeepMXCSR, FlushMXCSR} {
		for _, c := range []struct {
			name  string
			parts [][]byte
			in    uint64
			want  string
		}{
			{"nil", [][]byte{load, deref}, 8, "nil pointer"},
			{"an unmapped page", [][]byte{load, deref}, gone, "invalid memory address"},
			{"a closed page", [][]byte{load, deref}, closed, "invalid memory address"},
			{"a file cut short", [][]byte{load, deref}, cut, "invalid memory address"},
			{"an unmapped page, by vector", [][]byte{load, vload}, gone, "invalid memory address"},
			{"after clobbering", [][]byte{clobber(), load, deref}, gone, "invalid memory address"},
			{"division", [][]byte{divide}, 0, "divide by zero"},
		} {
			t.Run(c.name, func(t *testing.T) {
				if c.parts[0] == nil {
					t.Skip("no fault on this processor")
				}
				code := mapForCalls(t, c.parts...)
				defer runtime.KeepAlive(code)
				for range 100 {
					err := faultOf(func() { Call(code.Addr(0), unsafe.Pointer(&frame{in: c.in}), mxcsr) })
					var fault *faultError
					if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) {
						t.Fatalf("got %v, want %q", err, c.want)
					}
					if !strings.Contains(fault.stack, "TestFaults") || !strings.Contains(fault.stack, "internal/machine.call") {
						t.Fatalf("the stack does not say who called:\n%s", fault.stack)
					}
				}
			})
		}
	}
}

// TestFreedCode: freed code has the address nil; a call of the old address faults.
func TestFreedCode(t *testing.T) {
	code := mapForCalls(t)
	addr := code.Addr(0)
	code.Free()
	for _, a := range []uintptr{code.Addr(0), addr} {
		if err := faultOf(func() { Call(a, nil, KeepMXCSR) }); err == nil || !strings.Contains(err.Error(), "invalid memory address") {
			t.Errorf("called at %#x: %v", a, err)
		}
	}
}

// TestRest: the rest of the last page traps.
func TestRest(t *testing.T) {
	code := mapForCalls(t)
	defer runtime.KeepAlive(code)
	all.mu.Lock()
	mem := all.live[code.number].mem
	all.mu.Unlock()
	n := len(justReturn)
	if !bytes.Equal(mem[:n], justReturn) || len(mem) != pageSize {
		t.Fatalf("%d bytes, the first %#x", len(mem), mem[:n])
	}
	for i, b := range mem[n:] {
		if b != trap {
			t.Fatalf("byte %d is %#x", i+n, b)
		}
	}
}

// TestNotWritable: writing to executable pages faults.
func TestNotWritable(t *testing.T) {
	code := mapForCalls(t)
	defer runtime.KeepAlive(code)
	all.mu.Lock()
	mem := all.live[code.number].mem
	all.mu.Unlock()
	if err := faultOf(func() { mem[0] = 0x90 }); err == nil {
		t.Error("code could be written")
	}
}

func BenchmarkCall(b *testing.B) {
	code := mapForCalls(b)
	defer runtime.KeepAlive(code)
	addr := code.Addr(0)
	var f frame
	b.Run("keep", func(b *testing.B) {
		for b.Loop() {
			Call(addr, unsafe.Pointer(&f), KeepMXCSR)
		}
	})
	b.Run("flush", func(b *testing.B) {
		for b.Loop() {
			Call(addr, unsafe.Pointer(&f), FlushMXCSR)
		}
	})
}

func BenchmarkMap(b *testing.B) {
	code := bytes.Repeat(justReturn, 3000)
	for b.Loop() {
		mustMap(b, code).Free()
	}
}
