package codegen

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

func element(data []byte, dt ir.DType, i int) uint64 {
	d := ir.Dense{TensorType: ir.TensorType{DT: dt}, Data: data}
	return d.At(i)
}

// randomArgs fills the inputs of an elementwise kernel, n elements each.
func randomArgs(rng *rand.Rand, k *Kernel, n int) [][]byte {
	args := make([][]byte, len(k.Operands))
	for i, o := range k.Operands {
		d := ir.NewDense(ir.TensorType{DT: o.DT, Shape: ir.Shape{n}})
		if o.Kind == Input {
			for j := range n {
				d.Set(j, randomBits(rng, o.DT))
			}
		}
		args[i] = d.Data
	}
	return args
}

// runDense interprets k over n points; every operand has stride 1. It returns all operands' memory
// afterwards and does not change args.
func runDense(t *testing.T, k *Kernel, args [][]byte, n int) [][]byte {
	t.Helper()
	host := make([]HostArg, len(args))
	out := make([][]byte, len(args))
	for i := range args {
		out[i] = append([]byte(nil), args[i]...)
		host[i].Data = out[i]
		host[i].Stride[0] = 1
	}
	if err := Interpret(k, []int64{int64(n)}, 1, host, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

func floats(v ...float32) []byte {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

func access(offset int64, strides ...int64) runtime.Access {
	a := runtime.Access{Offset: offset}
	copy(a.Stride[:], strides)
	return a
}

func mustParse(t *testing.T, src string) *Kernel {
	t.Helper()
	k, err := Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const copyKernel = "in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\nstore 1 %0\n"

// reduceKernel folds rows of float32.
func reduceKernel(op string) string {
	return "in 0 : float32\nout 1 : float32 row\n%0 = load 0 : float32\n%1 = " + op + " %0 : float32\nstore 1 %1\n"
}

func TestInterpret(t *testing.T) {
	x := floats(1, 2, 3, 4, 5, 6)
	staged := access(0, 2, 1)
	// A (2,3) matrix transposed, then seen as (3,2): no stride describes it.
	staged.Stages = []runtime.Stage{{Dims: []int64{3, 2}, Stride: []int64{1, 3}}}
	for _, c := range []struct {
		name    string
		kernel  string
		dims    []int64
		kept    int
		in, out runtime.Access
		want    []byte
	}{
		{"dense", copyKernel, []int64{6}, 1, access(0, 1), access(0, 1), x},
		{"transposed", copyKernel, []int64{3, 2}, 2, access(0, 1, 3), access(0, 2, 1), floats(1, 4, 2, 5, 3, 6)},
		{"flipped", copyKernel, []int64{6}, 1, access(5, -1), access(0, 1), floats(6, 5, 4, 3, 2, 1)},
		{"splat", copyKernel, []int64{6}, 1, access(2, 0), access(0, 1), floats(3, 3, 3, 3, 3, 3)},
		{"staged", copyKernel, []int64{3, 2}, 2, staged, access(0, 2, 1), floats(1, 4, 2, 5, 3, 6)},
		{"guarded", copyKernel, []int64{2, 3}, 2, access(0, 3, 1), access(0, 1, 0), floats(1, 4, 0, 0, 0, 0)},
		{"no points", copyKernel, []int64{0}, 1, access(0, 1), access(0, 1), floats(0, 0, 0, 0, 0, 0)},
		{"one point", copyKernel, nil, 0, access(4), access(1), floats(0, 5, 0, 0, 0, 0)},
		{"sum rows", reduceKernel("sum"), []int64{2, 3}, 1, access(0, 3, 1), access(0, 1, 0), floats(6, 15, 0, 0, 0, 0)},
		{"max columns", reduceKernel("max"), []int64{3, 2}, 1, access(0, 1, 3), access(0, 1, 0), floats(4, 5, 6, 0, 0, 0)},
		{"sum all", reduceKernel("sum"), []int64{2, 3}, 0, access(0, 3, 1), access(2, 0, 0), floats(0, 0, 21, 0, 0, 0)},
		{"sum of nothing", reduceKernel("sum"), []int64{2, 0}, 1, access(0, 3, 1), access(0, 1, 0), floats(0, 0, 0, 0, 0, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := make([]byte, len(x))
			args := []HostArg{{x, c.in}, {out, c.out}}
			if err := Interpret(mustParse(t, c.kernel), c.dims, c.kept, args, nil); err != nil {
				t.Fatal(err)
			}
			if string(out) != string(c.want) {
				t.Errorf("got %x, want %x", out, c.want)
			}
		})
	}
}

func TestInterpretIndexAndScalar(t *testing.T) {
	k := mustParse(t, `
index 0
out 1 : float32
scalar 0 : float32
%0 = indexlo 0 : uint32
%1 = convert %0 : float32
%2 = scalar 0 : float32
%3 = mul %1 %2 : float32
store 1 %3
`)
	out := make([]byte, 24)
	args := []HostArg{{nil, access(0, 1, 2)}, {out, access(0, 2, 1)}}
	if err := Interpret(k, []int64{3, 2}, 2, args, []uint64{uint64(math.Float32bits(0.5))}); err != nil {
		t.Fatal(err)
	}
	if want := floats(0, 1, 0.5, 1.5, 1, 2); string(out) != string(want) {
		t.Errorf("got %x, want %x", out, want)
	}
}

func TestInterpretFaults(t *testing.T) {
	k := mustParse(t, copyKernel)
	x, out := floats(1, 2), make([]byte, 8)
	ok := []HostArg{{x, access(0, 1)}, {out, access(0, 1)}}
	for _, c := range []struct {
		name    string
		dims    []int64
		kept    int
		args    []HostArg
		scalars []uint64
		want    string
	}{
		{"past the end", []int64{3}, 1, ok, nil, "operand 0: element 2 of 2"},
		{"before the start", []int64{2}, 1, []HostArg{{x, access(0, -1)}, ok[1]}, nil, "element -1"},
		{"missing operand", []int64{2}, 1, ok[:1], nil, "1 operands"},
		{"extra scalar", []int64{2}, 1, ok, []uint64{1}, "1 scalars"},
		{"kept", []int64{2}, 2, ok, nil, "2 of 1 dims kept"},
		{"reduced", []int64{2}, 0, ok, nil, "reduces nothing"},
	} {
		if err := Interpret(k, c.dims, c.kept, c.args, c.scalars); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestClassify(t *testing.T) {
	l := &runtime.Launch{Rank: 2, Kept: 2, Dims: [runtime.MaxRank]int64{2, 3}}
	staged := access(0, 3, 1)
	staged.Stages = []runtime.Stage{{Dims: []int64{6}, Stride: []int64{1}}}
	l.Args = []runtime.Access{access(0, 3, 1), access(0, 1, 0), access(0, 1, 2), access(5, -3, -1), staged}
	for i, want := range []AccessClass{Contiguous, Splat, Strided, Strided, Staged} {
		if got := ClassOf(l, i); got != want {
			t.Errorf("operand %d: class %d, want %d", i, got, want)
		}
	}
	l.Dims[1] = 1
	if got := ClassOf(l, 2); got != Contiguous {
		t.Errorf("one point: class %d", got)
	}
}
