//go:build linux && amd64

package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	goruntime "runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/codegen/native/amd64"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// threadTime returns the processor time of this thread, without that of other threads.
func threadTime() time.Duration {
	var t syscall.Timespec
	const ofThread = 3 // CLOCK_THREAD_CPUTIME_ID
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, ofThread, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}

// machineTargets lists the targets that this processor supports.
func machineTargets() (list []*native.ISA) {
	if machine.Level() >= machine.AVX512 {
		list = append(list, amd64.AVX512)
	}
	if machine.Level() >= machine.AVX2 {
		list = append(list, amd64.AVX2)
	}
	return list
}

// oneCall is a call of a phase of the greatest length, on memory of the least cached kind.
type oneCall struct {
	p    *machinePhase
	a    args
	data [][]byte
}

// fencedBytes returns memory that ends at an inaccessible page.
func fencedBytes(t testing.TB, n int64) []byte {
	t.Helper()
	page := int64(syscall.Getpagesize())
	whole := (n+page-1)/page*page + 2*page
	mem, err := syscall.Mmap(-1, 0, int(whole), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(mem) })
	for _, fence := range [][]byte{mem[:page], mem[whole-page:]} {
		if err := syscall.Mprotect(fence, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return mem[whole-page-n : whole-page : whole-page]
}

// newOneCall makes operands and fills them by fill.
func newOneCall(t testing.TB, k *codegen.Kernel, class codegen.AccessClass, isa *native.ISA, fill func(dt ir.DType, b []byte)) *oneCall {
	t.Helper()
	u := cgo.Unit{Kernel: k}
	u.Class = make([]codegen.AccessClass, len(k.Operands))
	for i, o := range k.Operands {
		if u.Class[i] = class; o.Kind == codegen.Output && class != codegen.Strided {
			u.Class[i] = codegen.Contiguous
		}
	}
	p, err := newMachinePhase(&u, len(k.Operands), isa, false)
	if err != nil {
		t.Fatalf("%v\n%v", err, k)
	}
	c := &oneCall{p: p, a: args{Args: operands.Args{Rank: 1, Scratch: fencedBytes(t, p.scratch()), Fault: new(indexFault)}}}
	n := p.chunk
	c.a.Dims[0] = n
	for i, o := range k.Operands {
		step := int64(1)
		switch u.Class[i] {
		case codegen.Splat:
			step = 0
		case codegen.Strided:
			step = 17
		}
		op := operand{}
		op.Stride[0] = step
		if o.Kind != codegen.Index {
			for _, in := range k.Body {
				if in.Op == ir.LoadAt && int(uint32(in.Imm)) == i {
					op.IndexSize, op.IndexStride = 1<<18, 32
				}
			}
			b := fencedBytes(t, (step*(n-1)+1+op.IndexSize*op.IndexStride)*int64(o.DT.Size()))
			fill(o.DT, b)
			c.data = append(c.data, b)
			op.Base = unsafe.Pointer(unsafe.SliceData(b))
		}
		c.a.Ops = append(c.a.Ops, op)
	}
	for _, dt := range k.Scalars {
		var b [8]byte
		fill(dt, b[:dt.Size()])
		c.a.Scalars = append(c.a.Scalars, *(*uint64)(unsafe.Pointer(&b)))
	}
	return c
}

// least returns the shortest time of a few calls: the first has cold caches.
func (c *oneCall) least(times int) time.Duration {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	best := time.Duration(math.MaxInt64)
	for range times {
		begin := threadTime()
		c.p.eval(&c.a, 0, c.p.chunk)
		best = min(best, threadTime()-begin)
	}
	goruntime.KeepAlive(c.data)
	return best
}

// fills are the contents of operands: mixed numbers, and single numbers that send every lane
// through a slow path.
func fills(dt ir.DType) map[string]func(ir.DType, []byte) {
	m := map[string]func(ir.DType, []byte){"mixed": func(dt ir.DType, b []byte) { randomFill(rand.New(rand.NewPCG(1, uint64(dt))), dt, b) }}
	if dt.IsFloat() {
		for _, x := range []float64{1e30, 1e-42, 1e300, 1e-310, -745.2, 0.1} {
			m[fmt.Sprint(x)] = func(dt ir.DType, b []byte) {
				bits := uint64(1)
				if dt.IsFloat() {
					bits = ir.FloatBits(dt, x)
				}
				repeat(dt, b, bits)
			}
		}
		return m
	}
	for _, x := range []int64{1, -1, math.MinInt64, 3} {
		m[fmt.Sprint(x)] = func(dt ir.DType, b []byte) { repeat(dt, b, uint64(x)) }
	}
	return m
}

func repeat(dt ir.DType, b []byte, bits uint64) {
	if dt == ir.Bool {
		bits &= 1
	}
	for i := 0; i+dt.Size() <= len(b); i += dt.Size() {
		putBits(b[i:i+dt.Size()], bits)
	}
}

func putBits(b []byte, bits uint64) {
	for i := range b {
		b[i] = byte(bits >> (8 * i))
	}
}

func randomFill(rng *rand.Rand, dt ir.DType, b []byte) {
	for i := 0; i+dt.Size() <= len(b); i += dt.Size() {
		putBits(b[i:i+dt.Size()], kernels.Value(rng, dt))
	}
}

// slower is the factor above the expected time at which a test fails: processors differ, and other
// processes may use the memory bandwidth.
const slower = 5

// TestCallsAreShort measures the longest call of every op on every dtype and in every class, also
// on numbers that take slow paths in all lanes. A garbage collection cannot begin while a call
// runs, so a call may take 200 µs at most.
func TestCallsAreShort(t *testing.T) {
	const most = 200 * time.Microsecond
	for _, isa := range machineTargets() {
		for _, dt := range kernels.DTypes {
			t.Run(isa.Name+"/"+dt.String(), func(t *testing.T) {
				every := kernels.EveryOp(dt, nil)
				longest, what := time.Duration(0), ""
				for s := range every.Stores {
					k, err := codegen.Lower(onlyStore(every, s))
					if err != nil {
						t.Fatal(err)
					}
					for name, fill := range fills(dt) {
						for _, class := range []codegen.AccessClass{codegen.Contiguous, codegen.Strided} {
							if class == codegen.Strided && name != "mixed" || !thorough && s%7 > 0 {
								continue
							}
							c := newOneCall(t, k, class, isa, fill)
							d := c.least(2)
							if in := every.Body[every.Stores[s].Value]; d > longest {
								longest, what = d, fmt.Sprintf("%v to %v of %s, %v, %d points", in.Op, in.DT, name, class, c.p.chunk)
							}
							if in := every.Body[every.Stores[s].Value]; d > most {
								d = min(d, c.least(8))
								if d > slower*most {
									t.Errorf("%v to %v of %s, %v: %v for %d points", in.Op, in.DT, name, class, d, c.p.chunk)
								}
							}
						}
					}
				}
				t.Logf("the longest: %v, %s", longest, what)
			})
		}
	}
}

// onlyStore returns a kernel with a single one of another kernel's stores, and the operands that
// it reads.
func onlyStore(k *codegen.Kernel, store int) *codegen.Kernel {
	one := &codegen.Kernel{Scalars: k.Scalars, Body: k.Body}
	for i, o := range k.Operands {
		if o.Kind != codegen.Output || i == k.Stores[store].Operand {
			one.Operands = append(one.Operands, o)
		}
	}
	one.Stores = []codegen.Store{{Operand: len(one.Operands) - 1, Value: k.Stores[store].Value}}
	return one
}

// TestFarCallsAreShort measures calls on memory that no cache holds: elements pages apart, loads
// through random indices into a table, and rows of a few points.
func TestFarCallsAreShort(t *testing.T) {
	const most = 200 * time.Microsecond
	const table = 1 << 23
	texts := map[string]string{
		"apart":  "in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n%1 = sqrt %0 : float32\nstore 1 %1\n",
		"index":  "in 0 : float32\nin 1 : int32\nout 2 : float32\n%0 = load 1 : int32\n%1 = loadat 0 clamp %0 : float32\nstore 2 %1\n",
		"twice":  "in 0 : uint8\nin 1 : int32\nin 2 : float64\nout 3 : float64\n%0 = load 1 : int32\n%1 = loadat 0 clamp %0 : uint8\n%2 = loadat 2 clamp %0 : float64\n%3 = cast %1 : float64\n%4 = add %2 %3 : float64\nstore 3 %4\n",
		"narrow": "in 0 : uint8\nin 1 : int16\nin 2 : float16\nout 3 : int16\n%0 = load 0 : uint8\n%1 = load 1 : int16\n%2 = load 2 : float16\n%3 = cast %0 : int16\n%4 = add %1 %3 : int16\n%5 = cast %2 : int16\n%6 = add %4 %5 : int16\nstore 3 %6\n",
	}
	for _, isa := range machineTargets() {
		for name, text := range texts {
			k, err := codegen.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if k, err = codegen.Lower(k); err != nil {
				t.Fatal(err)
			}
			for _, n := range []int64{1, 3, 17, 1 << 20} {
				u := cgo.Unit{Kernel: k}
				u.Class = make([]codegen.AccessClass, len(k.Operands))
				if name == "apart" {
					u.Class[0], u.Class[1] = codegen.Strided, codegen.Strided
				}
				p, err := newMachinePhase(&u, len(k.Operands), isa, false)
				if err != nil {
					t.Fatal(err)
				}
				rows := int64(1)
				if n = min(n, p.chunk); n < p.chunk {
					rows = max(p.callRows(n), 1)
				}
				a := args{Args: operands.Args{Rank: 2, Dims: [runtime.MaxRank]int64{rows, n}, Scratch: fencedBytes(t, p.scratch()), Fault: new(indexFault)}}
				rng := rand.New(rand.NewPCG(1, 2))
				for i, o := range k.Operands {
					step, row, count := int64(1), n+5, (n+5)*rows
					switch {
					case name == "apart":
						step, row = 1031, 1031*n+7
						count = row * rows
					case len(k.Operands) > 2 && o.Kind == codegen.Input && i != 1 && name != "narrow":
						count = table + (n+5)*rows
					}
					b := fencedBytes(t, count*int64(o.DT.Size()))
					if o.DT == ir.Int32 {
						for e := range count {
							*(*int32)(unsafe.Pointer(&b[4*e])) = int32(rng.IntN(table))
						}
					} else {
						for at := 0; at < len(b); at += 4096 { // touches every page
							b[at] = 1
						}
					}
					op := operand{Base: unsafe.Pointer(unsafe.SliceData(b)), IndexSize: table, IndexStride: 1}
					op.Stride[0], op.Stride[1] = row, step
					a.Ops = append(a.Ops, op)
				}
				goruntime.LockOSThread()
				best := time.Duration(math.MaxInt64)
				for range 5 {
					spoil()
					begin := threadTime()
					p.eval(&a, 0, rows*n)
					best = min(best, threadTime()-begin)
				}
				goruntime.UnlockOSThread()
				t.Logf("%s, %s, %d rows of %d: %v", isa.Name, name, rows, n, best)
				if best > slower*most {
					t.Errorf("%s, %s: %v for %d rows of %d points", isa.Name, name, best, rows, n)
				}
			}
		}
	}
}

var other = make([]byte, 64<<20)

// spoil fills the caches with other data.
func spoil() {
	for i := 0; i < len(other); i += 64 {
		other[i]++
	}
}
