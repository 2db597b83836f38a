//go:build linux || darwin

package native_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
)

// fenced is memory between two pages that cannot be accessed.
type fenced struct {
	mem  []byte
	page int
}

func newFenced(t testing.TB, bytes int) *fenced {
	t.Helper()
	page := os.Getpagesize()
	n := (bytes+page-1)/page*page + 2*page
	mem, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(mem) })
	for _, fence := range [][]byte{mem[:page], mem[n-page:]} {
		if err := syscall.Mprotect(fence, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return &fenced{mem, page}
}

// cut returns so many bytes that begin at the first fence or end at the second.
func (f *fenced) cut(bytes int, atEnd bool) []byte {
	if end := len(f.mem) - f.page; atEnd {
		return f.mem[end-bytes : end : end]
	}
	return f.mem[f.page : f.page+bytes : f.page+bytes]
}

// place describes the memory of an operand of an exact launch.
type place struct {
	class     codegen.AccessClass
	step, row int64 // elements from a point to the next, and from a row to the next; not for staged operands
	first     int64 // element of the first point
	count     int64 // number of elements
	size      int64 // of the axis of an index; apart is the distance between its elements
	apart     int64
	positions []int64 // of staged operands: the element of each point
}

// exact is a launch whose operands have not one byte too many, each at a fence.
type exact struct {
	k       *codegen.Kernel
	places  []place
	data    [][]byte
	rows, n int
	scalars []uint64
}

// fences are memories that launches use in turn.
type fences struct {
	t    testing.TB
	list []*fenced
}

func (f *fences) at(i int) *fenced {
	for len(f.list) <= i {
		f.list = append(f.list, newFenced(f.t, 1<<18))
	}
	return f.list[i]
}

func fill(rng *rand.Rand, dt ir.DType, b []byte) {
	size := dt.Size()
	for i := 0; i+size <= len(b); i += size {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], kernels.Value(rng, dt))
		copy(b[i:i+size], w[:])
	}
}

// placed makes a place that holds exactly the elements that an operand's points reach.
func placed(rng *rand.Rand, class codegen.AccessClass, output bool, rows, n int, axis int64) place {
	p := place{class: class, size: axis}
	N, R := int64(n), int64(rows)
	switch class {
	case codegen.Contiguous:
		p.step, p.row = 1, N
		if rng.IntN(3) == 0 {
			p.row += int64(rng.IntN(5))
		}
	case codegen.Splat:
		p.row = int64(rng.IntN(3))
	case codegen.Strided:
		p.step = 2 + int64(rng.IntN(2))
		p.row = p.step * N
		if !output && rng.IntN(8) == 0 {
			p.step = 0
		}
	case codegen.Staged:
		total := R * N
		p.count = 1 + rng.Int64N(total)
		for range total {
			p.positions = append(p.positions, rng.Int64N(p.count))
		}
	}
	if !output && rng.IntN(3) == 0 {
		p.row = -p.row
	}
	if !output && class == codegen.Strided && rng.IntN(2) == 0 {
		p.step = -p.step
	}
	lo, hi := int64(0), p.count-1
	if class != codegen.Staged {
		lo = min(0, p.step*(N-1)) + min(0, p.row*(R-1))
		hi = max(0, p.step*(N-1)) + max(0, p.row*(R-1))
	}
	if axis > 0 {
		p.apart = 1 + rng.Int64N(2)
		if class == codegen.Contiguous && rng.IntN(2) == 0 {
			p.apart = hi - lo + 1
		}
		hi += p.apart * (axis - 1)
	}
	p.first, p.count = -lo, hi-lo+1
	return p
}

// newExact chooses places and fills operands.
func newExact(rng *rand.Rand, f *fences, k *codegen.Kernel, v native.Variant, rows, n int) *exact {
	l := &exact{k: k, rows: rows, n: n}
	for i, o := range k.Operands {
		axis := int64(0)
		for _, in := range k.Body {
			if in.Op == ir.LoadAt && int(uint32(in.Imm)) == i {
				axis = 1 + rng.Int64N(9)
			}
		}
		p := placed(rng, v.Class[i], o.Kind == codegen.Output, rows, n, axis)
		l.add(rng, f, o, p)
	}
	for _, dt := range k.Scalars {
		l.scalars = append(l.scalars, kernels.Value(rng, dt))
	}
	return l
}

func (l *exact) add(rng *rand.Rand, f *fences, o codegen.Operand, p place) {
	if o.Kind == codegen.Index {
		p.first = rng.Int64N(1<<40) - 1<<20
		l.places, l.data = append(l.places, p), append(l.data, nil)
		return
	}
	b := f.at(len(l.data)).cut(int(p.count)*o.DT.Size(), rng.IntN(2) == 0)
	fill(rng, o.DT, b)
	l.places, l.data = append(l.places, p), append(l.data, b)
}

// frame writes the launch to a frame.
func (l *exact) frame(f *native.Func) ([]uint64, unsafe.Pointer) {
	words, p := frameFor(f)
	words[native.FramePoints/8], words[native.FrameRows/8] = uint64(l.n), uint64(l.rows)
	for i, o := range l.k.Operands {
		at, size := &l.places[i], int64(1)
		w := words[(native.FrameArgs+i*native.OperandBytes)/8:]
		if o.Kind == codegen.Index {
			w[0] = uint64(at.first)
		} else {
			size = int64(o.DT.Size())
			w[0] = uint64(int64(uintptr(unsafe.Pointer(unsafe.SliceData(l.data[i])))) + at.first*size)
		}
		w[native.Step/8], w[native.RowStep/8] = uint64(at.step*size), uint64(at.row*size)
		w[native.IndexSize/8], w[native.IndexStep/8] = uint64(at.size), uint64(at.apart*size)
		if at.class == codegen.Staged {
			list := make([]int64, len(at.positions))
			for j, e := range at.positions {
				if list[j] = e * size; o.Kind == codegen.Index {
					list[j] += at.first
				}
			}
			w[native.Step/8], w[native.RowStep/8] = 0, 0
			w[native.Positions/8] = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(list))))
			kept = append(kept, list)
		}
	}
	copy(words[f.Scalars/8:], l.scalars)
	return words, p
}

var kept [][]int64 // objects whose addresses are in frames

// call runs code. The error says where it touched memory that it must not.
func (l *exact) call(f *native.Func, code *machine.Code, mxcsr uint32) (words []uint64, err error) {
	words, p := l.frame(f)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("%v", x)
			if a, ok := x.(interface{ Addr() uintptr }); ok {
				err = fmt.Errorf("%w%s", err, l.nearest(a.Addr()))
			}
		}
		runtime.KeepAlive(words)
		kept = kept[:0]
	}()
	machine.Call(code.Addr(0), p, mxcsr)
	return words, nil
}

func (l *exact) nearest(a uintptr) string {
	var s strings.Builder
	for i, d := range l.data {
		if b := uintptr(unsafe.Pointer(unsafe.SliceData(d))); len(d) > 0 && a+1<<13 > b && a < b+uintptr(len(d))+1<<13 {
			fmt.Fprintf(&s, "; operand %d of %d bytes, at byte %d", i, len(d), int(a)-int(b))
		}
	}
	return s.String()
}

// interpret runs the launch in the interpreter, whose operands have one stride per dim. The points
// of staged operands have no stride, so each point becomes a launch.
func (l *exact) interpret() error {
	staged := false
	for i := range l.places {
		staged = staged || l.places[i].class == codegen.Staged
	}
	host := func(r, c int64) (args []codegen.HostArg) {
		for i := range l.places {
			p := &l.places[i]
			a := codegen.HostArg{Data: l.data[i]}
			a.Offset, a.Stride[0], a.Stride[1] = p.first, p.row, p.step
			a.IndexSize, a.IndexStride = p.size, p.apart
			if staged {
				a.Offset += r*p.row + c*p.step
				if p.class == codegen.Staged {
					a.Offset = p.first + p.positions[r*int64(l.n)+c]
				}
			}
			args = append(args, a)
		}
		return args
	}
	if !staged {
		return codegen.Interpret(l.k, []int64{int64(l.rows), int64(l.n)}, 2, host(0, 0), l.scalars)
	}
	for r := range int64(l.rows) {
		for c := range int64(l.n) {
			if err := codegen.Interpret(l.k, []int64{1, 1}, 2, host(r, c), l.scalars); err != nil {
				return err
			}
		}
	}
	return nil
}

func copies(data [][]byte) (out [][]byte) {
	for _, d := range data {
		out = append(out, append([]byte(nil), d...))
	}
	return out
}

// mxcsrFor is the MXCSR of a kernel.
func mxcsrFor(k *codegen.Kernel) uint32 {
	if k.Denormals == ir.FlushDenormals {
		return machine.FlushMXCSR
	}
	return machine.KeepMXCSR
}

// checkExact compares code with the interpreter, in all bytes of all operands. A fault of an index
// is no failure: the results are then undefined, but the recorded fault must be right.
func checkExact(l *exact, f *native.Func, code *machine.Code) error {
	before := copies(l.data)
	words, err := l.call(f, code, mxcsrFor(l.k))
	if err != nil {
		return err
	}
	got := copies(l.data)
	for i := range before {
		copy(l.data[i], before[i])
	}
	err = l.interpret()
	if faulted := words[native.FrameFault/8] != 0; errors.Is(err, ir.ErrIndex) != faulted {
		return fmt.Errorf("fault noted: %v, and the interpreter says %v", faulted, err)
	} else if faulted {
		return nil
	}
	if err != nil {
		return err
	}
	for i, o := range l.k.Operands {
		dt := o.DT
		if o.Kind == codegen.Index {
			continue
		}
		if err := kernels.Same(dt, got[i], l.data[i]); err != nil {
			return fmt.Errorf("operand %d (%v): %w", i, l.places[i].class, err)
		}
	}
	return nil
}

// compileTest is Compile and Map.
func compileTest(t testing.TB, k *codegen.Kernel, v native.Variant, isa *native.ISA) (*native.Func, *machine.Code) {
	t.Helper()
	f, err := native.Compile(k, v, isa, false)
	if err != nil {
		t.Fatalf("%v\n%v", err, k)
	}
	code, err := machine.Map(f.Code)
	if err != nil {
		t.Fatal(err)
	}
	return f, code
}

func lower(t testing.TB, k *codegen.Kernel) *codegen.Kernel {
	t.Helper()
	k, err := codegen.Lower(k)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func parse(t testing.TB, text string) *codegen.Kernel {
	t.Helper()
	k, err := codegen.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return lower(t, k)
}

// randomClasses chooses a class for each operand; for outputs one that they may have.
func randomClasses(rng *rand.Rand, k *codegen.Kernel) (v native.Variant) {
	for _, o := range k.Operands {
		c := codegen.AccessClass(rng.IntN(int(codegen.Staged) + 1))
		if o.Kind == codegen.Output && c != codegen.Strided {
			c = codegen.Contiguous
		}
		v.Class = append(v.Class, c)
	}
	return v
}

// lengths are 1 to 130, or some of them.
func lengths() (list []int) {
	for n := 1; n <= 130; n++ {
		if !testing.Short() || n < 20 || n%16 < 2 || n%16 == 15 {
			list = append(list, n)
		}
	}
	return list
}

// TestNothingBeyond copies rows of every length between operands that end, or begin, at memory that
// must not be touched, in every class and of every dtype: plain, with a loaded guard, through an
// index, and through an index with a guard.
func TestNothingBeyond(t *testing.T) {
	const plain = `in 0 : %[1]v
out 1 : %[1]v
%%0 = load 0 : %[1]v
store 1 %%0
`
	const guarded = `in 0 : %[1]v
in 1 : bool
out 2 : %[1]v
%%0 = load 1 : bool
%%1 = load 0 %%0 : %[1]v
store 2 %%1
`
	const indexed = `in 0 : %[1]v
in 1 : %[2]v
out 2 : %[1]v
%%0 = load 1 : %[2]v
%%1 = loadat 0 %[3]s %%0 : %[1]v
store 2 %%1
`
	const both = `in 0 : %[1]v
in 1 : %[2]v
in 2 : bool
out 3 : %[1]v
%%0 = load 1 : %[2]v
%%1 = load 2 : bool
%%2 = loadat 0 %[3]s %%0 %%1 : %[1]v
store 3 %%2
`
	for _, isa := range runnable() {
		for _, dt := range kernels.DTypes {
			t.Run(isa.Name+"/"+dt.String(), func(t *testing.T) {
				rng, f := rand.New(rand.NewPCG(uint64(dt), 17)), &fences{t: t}
				for which, text := range []string{plain, guarded, indexed, both} {
					for class := codegen.Contiguous; class <= codegen.Staged; class++ {
						index := []ir.DType{ir.Int32, ir.Int64}[rng.IntN(2)]
						mode := []ir.IndexMode{ir.IndexClamp, ir.IndexDrop}[rng.IntN(2)]
						text := text
						if which < 2 {
							text = fmt.Sprintf(text, dt)
						} else {
							text = fmt.Sprintf(text, dt, index, mode)
						}
						k := parse(t, text)
						for _, out := range []codegen.AccessClass{codegen.Contiguous, codegen.Strided} {
							v := all(k, codegen.Contiguous)
							v.Class[0], v.Class[len(v.Class)-1] = class, out
							fn, code := compileTest(t, k, v, isa)
							for _, n := range lengths() {
								l := newExact(rng, f, k, v, 1+rng.IntN(2), n)
								if err := checkExact(l, fn, code); err != nil {
									t.Fatalf("%v to %v, rows of %d: %v\n%v", class, out, n, err, k)
								}
							}
							code.Free()
						}
					}
				}
			})
		}
	}
}

// TestGuardedEdges loads the points that a guard admits, of rows whose other points are outside of
// all memory, as with padding.
func TestGuardedEdges(t *testing.T) {
	const text = `in 0 : %[1]v
index 1
out 2 : %[1]v
scalar 0 : uint32
scalar 1 : uint32
%%0 = indexlo 1 : uint32
%%1 = scalar 0 : uint32
%%2 = scalar 1 : uint32
%%3 = ge %%0 %%1 : bool
%%4 = lt %%0 %%2 : bool
%%5 = and %%3 %%4 : bool
%%6 = load 0 %%5 : %[1]v
store 2 %%6
`
	for _, isa := range runnable() {
		for _, dt := range kernels.DTypes {
			rng, f := rand.New(rand.NewPCG(uint64(dt), 19)), &fences{t: t}
			k := parse(t, fmt.Sprintf(text, dt))
			for _, class := range []codegen.AccessClass{codegen.Contiguous, codegen.Strided} {
				v := all(k, codegen.Contiguous)
				v.Class[0] = class
				fn, code := compileTest(t, k, v, isa)
				for _, n := range lengths() {
					N := int64(n)
					lo := rng.Int64N(N + 1)
					hi := lo + rng.Int64N(N-lo+1)
					step := int64(1)
					if class == codegen.Strided {
						step = 2
					}
					l := &exact{k: k, rows: 1, n: n, scalars: []uint64{uint64(lo), uint64(hi)}}
					l.add(rng, f, k.Operands[0], place{class: class, step: step, row: step * N, first: -lo * step, count: max(1, (hi-lo-1)*step+1)})
					l.add(rng, f, k.Operands[1], place{step: 1, row: N})
					l.places[1].first = 0
					l.add(rng, f, k.Operands[2], place{step: 1, row: N, count: N})
					if err := checkExact(l, fn, code); err != nil {
						t.Fatalf("%s, %v, %v, points %d to %d of %d: %v", isa.Name, dt, class, lo, hi, n, err)
					}
				}
				code.Free()
			}
		}
	}
}

// TestRandomLoads compares kernels with all kinds of loads, each operand at a fence, in random
// classes, also staged ones.
func TestRandomLoads(t *testing.T) {
	n := times(t, 150)
	for _, isa := range runnable() {
		f := &fences{t: t}
		for seed := firstSeed(); seed < firstSeed()+n; seed++ {
			rng := rand.New(rand.NewPCG(uint64(seed), 23))
			modes := []ir.IndexMode{ir.IndexClamp, ir.IndexDrop}
			if rng.IntN(8) == 0 {
				modes = []ir.IndexMode{ir.IndexError}
			}
			tryKernel(t, rng, f, isa, kernels.RandomLoads(rng, 16+rng.IntN(40), modes...), seed)
		}
	}
}

// TestRandomExact compares kernels of any ops.
func TestRandomExact(t *testing.T) {
	n := times(t, 150)
	for _, isa := range runnable() {
		f := &fences{t: t}
		for seed := firstSeed(); seed < firstSeed()+n; seed++ {
			rng := rand.New(rand.NewPCG(uint64(seed), 29))
			tryKernel(t, rng, f, isa, kernels.Random(rng, 4+rng.IntN(60), 0), seed)
		}
	}
}

// TestPressure has 200 or more values alive at once.
func TestPressure(t *testing.T) {
	n := times(t, 6)
	for _, isa := range runnable() {
		f := &fences{t: t}
		for seed := firstSeed(); seed < firstSeed()+n; seed++ {
			rng := rand.New(rand.NewPCG(uint64(seed), 31))
			tryKernel(t, rng, f, isa, kernels.RandomWide(rng, 200+rng.IntN(100)), seed)
		}
	}
}

// tryKernel runs a kernel in a few rows.
func tryKernel(t *testing.T, rng *rand.Rand, f *fences, isa *native.ISA, k *codegen.Kernel, seed int) {
	t.Helper()
	plain := k
	k = lower(t, k)
	v := randomClasses(rng, k)
	fn, code := compileTest(t, k, v, isa)
	defer code.Free()
	for range 3 {
		l := newExact(rng, f, k, v, 1+rng.IntN(4), 1+rng.IntN(130))
		if err := checkExact(l, fn, code); err != nil {
			t.Fatalf("%s, seed %d, %dx%d: %v\nclasses %v\n%v", isa.Name, seed, l.rows, l.n, err, v.Class, plain)
		}
	}
}

// times is n, fewer with -short, or MILLRACE_ROUNDS, which is for runs by hand.
func times(t *testing.T, n int) int {
	t.Helper()
	if text := os.Getenv("MILLRACE_ROUNDS"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if testing.Short() {
		return max(n/5, 2)
	}
	return n
}

// firstSeed is the first seed, from MILLRACE_SEED, for runs by hand.
func firstSeed() (n int) {
	_, _ = fmt.Sscan(os.Getenv("MILLRACE_SEED"), &n)
	return n
}
