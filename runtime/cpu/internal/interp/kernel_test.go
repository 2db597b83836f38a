package interp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// build returns the block program of a kernel.
func build(k *codegen.Kernel) (*Program, error) {
	k, err := Lower(k, false)
	if err != nil {
		return nil, err
	}
	return Compile(k, false)
}

// launch is a kernel with its operands' memory in Go.
type launch struct {
	k       *codegen.Kernel
	dims    []int64
	data    [][]byte
	access  []runtime.Access
	scalars []uint64
	share   map[int]int // operands in the memory of another operand
}

// interpret returns the operands' memory after the interpreter has run the launch.
func (l *launch) interpret(t *testing.T) [][]byte {
	t.Helper()
	data := cloneAll(l.data)
	var args []codegen.HostArg
	for i := range l.access {
		args = append(args, codegen.HostArg{Data: data[i], Access: l.access[i]})
	}
	if err := codegen.Interpret(l.k, l.dims, len(l.dims), args, l.scalars); err != nil {
		t.Fatalf("%v\n%v", err, l.k)
	}
	return data
}

func cloneAll(data [][]byte) [][]byte {
	var out [][]byte
	for _, d := range data {
		out = append(out, bytes.Clone(d))
	}
	return out
}

// run evaluates points [0, cut) and [cut, total).
func (l *launch) run(t *testing.T, cut int64) [][]byte {
	t.Helper()
	prog, err := build(l.k)
	if err != nil {
		t.Fatalf("%v\n%v", err, l.k)
	}
	data := cloneAll(l.data)
	a := &operands.Args{Rank: len(l.dims), Scalars: l.scalars, Scratch: make([]byte, prog.Scratch()+64)}
	a.Scratch = a.Scratch[-uintptr(unsafe.Pointer(&a.Scratch[0]))&63:]
	total := int64(1)
	for d, n := range l.dims {
		a.Dims[d] = n
		total *= n
	}
	for i, acc := range l.access {
		o := operands.Operand{Offset: acc.Offset, Stride: acc.Stride, Stages: acc.Stages}
		m := i
		if other, ok := l.share[i]; ok {
			m = other
		}
		if data[m] != nil {
			o.Base = unsafe.Pointer(&data[m][0])
		}
		if l.k.Operands[i].Kind == codegen.Output {
			for d, n := range l.dims {
				if n > 1 && acc.Stride[d] == 0 {
					o.Guard |= 1 << d
				}
			}
		}
		a.Ops = append(a.Ops, o)
	}
	var room Room
	prog.Run(a, &room, 0, cut)
	prog.Run(a, &room, cut, total)
	return data
}

// check compares the results with the interpreter's.
func (l *launch) check(t *testing.T, what string, cut int64) {
	t.Helper()
	want := l.interpret(t)
	got := l.run(t, cut)
	for i, o := range l.k.Operands {
		if o.Kind == codegen.Output {
			if err := sameElements(o.DT, got[i], want[i]); err != nil {
				t.Errorf("%s, output %d, dims %v, cut %d: %v\n%v\n%+v", what, i, l.dims, cut, err, l.k, l.access)
			}
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

func sameElements(dt ir.DType, got, want []byte) error {
	n := dt.Size()
	for i := 0; i < len(got); i += n {
		g, w := operands.Element(unsafe.Pointer(&got[i]), int32(n)), operands.Element(unsafe.Pointer(&want[i]), int32(n))
		if !kernels.SameBits(dt, g, w) {
			return fmt.Errorf("element %d is %#x, not %#x", i/n, g, w)
		}
	}
	return nil
}

// randomBytes fills memory with special and ordinary values.
func randomBytes(rng *rand.Rand, dt ir.DType, n int64) []byte {
	special := specials(dt)
	b := make([]byte, (n+1)*int64(dt.Size()))
	for i := range n {
		bits := special[rng.IntN(len(special))]
		put(unsafe.Pointer(&b[i*int64(dt.Size())]), dt.Size(), bits)
	}
	return b
}

// randomAccess returns a random access like those that fusion makes, and the number of elements
// that it reaches.
func randomAccess(rng *rand.Rand, dims []int64, out bool) (runtime.Access, int64) {
	var a runtime.Access
	size := int64(1)
	order := rng.Perm(len(dims))
	if rng.IntN(2) == 0 {
		for i := range order {
			order[i] = i
		}
	}
	for i := len(order) - 1; i >= 0; i-- {
		d := order[i]
		switch r := rng.IntN(6); {
		case r == 0: // broadcast
		case r == 1 && !out: // flipped
			a.Stride[d] = -size
			a.Offset += size * (dims[d] - 1)
			size *= dims[d]
		case r == 2 && !out: // every second element
			a.Stride[d] = 2 * size
			size *= 2 * dims[d]
		default:
			a.Stride[d] = size
			size *= dims[d]
		}
	}
	if rng.IntN(4) == 0 {
		a.Offset += 3
		size += 3
	}
	if out || rng.IntN(4) > 0 {
		return a, size
	}
	// Read the memory through a transposed view.
	rows := int64(1)
	for _, n := range []int64{2, 3, 5, 7} {
		if size%n == 0 {
			rows = n
		}
	}
	cols := (size + rows - 1) / rows
	a.Stages = []runtime.Stage{{Offset: 1, Dims: []int64{cols, rows}, Stride: []int64{1, cols}}}
	return a, size + cols + 1
}

func (l *launch) randomize(rng *rand.Rand) {
	for _, o := range l.k.Operands {
		acc, n := randomAccess(rng, l.dims, o.Kind == codegen.Output)
		var data []byte
		if o.Kind != codegen.Index {
			data = randomBytes(rng, o.DT, n)
		}
		l.access = append(l.access, acc)
		l.data = append(l.data, data)
	}
	for _, dt := range l.k.Scalars {
		s := specials(dt)
		l.scalars = append(l.scalars, s[rng.IntN(len(s))])
	}
}

// dense makes all accesses row-major.
func (l *launch) dense(rng *rand.Rand) {
	for _, o := range l.k.Operands {
		var a runtime.Access
		size := int64(1)
		for d := len(l.dims) - 1; d >= 0; d-- {
			a.Stride[d] = size
			size *= l.dims[d]
		}
		var data []byte
		if o.Kind != codegen.Index {
			data = randomBytes(rng, o.DT, size)
		}
		l.access = append(l.access, a)
		l.data = append(l.data, data)
	}
}

func TestKernelAccesses(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	shapes := [][]int64{{}, {1}, {5}, {64}, {1000}, {5000}, {3, 700}, {4, 512}, {40, 7}, {9, 130}, {2, 3, 4, 5}, {6, 1, 50}, {1, 1}, {3, 1100}}
	n := 300
	if testing.Short() {
		n = 100
	}
	for i := range n {
		l := &launch{k: kernels.MixedKernel(), dims: shapes[i%len(shapes)]}
		if i < 2*len(shapes) {
			l.dense(rng)
			l.scalars = []uint64{0x40490fdb, 7}
		} else {
			l.randomize(rng)
		}
		total := int64(1)
		for _, n := range l.dims {
			total *= n
		}
		l.check(t, fmt.Sprint("case ", i), rng.Int64N(total+1))
	}
}

func TestRandomKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	n := 200
	if testing.Short() {
		n = 80
	}
	for i := range n {
		k := randomKernel(rng, 10+rng.IntN(60))
		l := &launch{k: k, dims: [][]int64{{130}, {3, 50}, {2100}, {7, 9, 2}}[i%4]}
		if i%2 == 0 {
			l.dense(rng)
		} else {
			l.randomize(rng)
		}
		l.check(t, fmt.Sprint("kernel ", i), 64)
	}
}

var tensorDTypes = []ir.DType{ir.Bool, ir.Uint8, ir.Int32, ir.Int64, ir.Float32, ir.Float64}

// randomKernel returns a kernel of n random instructions over ops of the table.
func randomKernel(rng *rand.Rand, n int) *codegen.Kernel {
	k := &codegen.Kernel{}
	for _, dt := range tensorDTypes {
		kernels.Input(k, dt)
		kernels.Input(k, dt)
		s := specials(dt)
		kernels.Emit(k, ir.Const, dt, s[rng.IntN(len(s))])
	}
	for len(k.Body) < n {
		in := ir.Instr{Op: ir.Op(1 + rng.IntN(int(ir.NumOps)-1)), DT: tensorDTypes[rng.IntN(len(tensorDTypes))], Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}
		info := in.Op.Info()
		if info.Class != ir.ClassElementwise {
			continue
		}
		var dts [4]ir.DType
		for i := range info.Arity {
			a := ir.Ref(len(k.Body) - 1 - rng.IntN(min(len(k.Body), 24)))
			in.Args[i], dts[i] = a, k.Body[a].DT
		}
		if ir.CheckInstr(in, dts[:info.Arity]) == nil {
			k.Body = append(k.Body, in)
		}
	}
	for _, dt := range tensorDTypes {
		for i := len(k.Body) - 1; i >= 0; i-- {
			if k.Body[i].DT == dt {
				kernels.Output(k, ir.Ref(i))
				break
			}
		}
	}
	return k
}

// TestGuardAlone tests kernels where only the guard of an output needs the position.
func TestGuardAlone(t *testing.T) {
	k := &codegen.Kernel{}
	x := kernels.Input(k, ir.Float32)
	kernels.Output(k, kernels.Emit(k, ir.Exp, ir.Float32, 0, x))
	kernels.Output(k, x)
	rng := rand.New(rand.NewPCG(5, 6))
	for _, dims := range [][]int64{{5000}, {3, 2000}, {100, 30}} {
		l := &launch{k: k, dims: dims}
		l.dense(rng)
		l.access[1] = runtime.Access{Offset: 1}
		l.access[2] = runtime.Access{Offset: 1}
		l.check(t, "guard", 1024)
	}
}

// TestInPlace overwrites inputs by outputs with the same access.
func TestInPlace(t *testing.T) {
	for _, n := range []int64{64, 1000, 5000} {
		k := &codegen.Kernel{}
		x, y := kernels.Input(k, ir.Float32), kernels.Input(k, ir.Float32)
		sum := kernels.Emit(k, ir.Add, ir.Float32, 0, x, y)
		kernels.Output(k, sum) // over y, which x*y reads later
		kernels.Output(k, y)   // y itself goes to x's memory
		kernels.Output(k, kernels.Emit(k, ir.Mul, ir.Float32, 0, x, y))
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		l := &launch{k: k, dims: []int64{n}}
		l.dense(rng)
		want := l.interpret(t)
		l.share = map[int]int{2: 1, 3: 0}
		got := l.run(t, n/128*64)
		for out, in := range map[int]int{2: 1, 3: 0, 4: 4} {
			if err := sameElements(ir.Float32, got[in], want[out]); err != nil {
				t.Errorf("n=%d, output %d: %v", n, out, err)
			}
		}
	}
}
