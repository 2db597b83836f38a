package codegen

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/ir"
)

// TestBatches compares rows computed in batches with rows computed one by one.
func TestBatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	check := func(k *Kernel, dims []int64, kept int, args []HostArg) {
		t.Helper()
		scalars := make([]uint64, len(k.Scalars))
		for i := range scalars {
			scalars[i] = randomBits(rng, k.Scalars[i])
		}
		want := cloneArgs(args)
		if err := interpret(k, dims, kept, want, scalars, 1); err != nil {
			t.Fatal(err)
		}
		for _, batch := range []int{2, 7, batchPoints} {
			got := cloneArgs(args)
			if err := interpret(k, dims, kept, got, scalars, batch); err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if !bytes.Equal(got[i].Data, want[i].Data) {
					t.Errorf("%v, batches of %d: operand %d differs\n%s", dims, batch, i, k)
				}
			}
		}
	}
	for range 40 {
		k := randomKernel(rng, 60)
		args := make([]HostArg, len(k.Operands))
		for i, data := range randomArgs(rng, k, 20) {
			args[i] = HostArg{data, access(0, 5, 1)}
			if k.Operands[i].Kind == Input && rng.IntN(3) == 0 {
				args[i].Access = access(rng.Int64N(15), 0, 1)
			}
		}
		check(k, []int64{4, 5}, 2, args)
		check(lowered(t, k), []int64{4, 5}, 2, args)
	}
	for _, src := range []string{rowtext.Softmax, rowtext.Norm, rowtext.Mixed, reduceKernel("sum"), rowsKernel} {
		k := mustParse(t, src)
		for _, dims := range [][]int64{{9, 5}, {9, 1}, {1, 70}, {5, 130}} {
			args := phaseArgs(rng, k, int(dims[0]), int(dims[1]))
			check(k, dims, 1, args)
			check(lowered(t, k), dims, 1, args)
		}
	}
	check(mustParse(t, reduceKernel("sum")), []int64{9, 0}, 1, phaseArgs(rng, mustParse(t, reduceKernel("sum")), 9, 1))
}

// rowsKernel uses row operands where point values are needed.
const rowsKernel = `in 0 : float32 row
in 1 : float32
out 2 : float32
out 3 : float32 row
%0 = load 1 : float32
%1 = cummax %0 : float32
%2 = load 0 : float32
%3 = sort %1 : float32
%4 = add %2 %3 : float32
%5 = max %4 : float32
%6 = neg %5 : float32
store 2 %4
store 3 %6
`

// Values that an output writes into the memory of an input are read by later points, so that the
// interpreter exposes launches that must not work in place.
func TestInterpretInPlace(t *testing.T) {
	k := mustParse(t, copyKernel)
	x := floats(1, 2, 3, 4)
	for _, c := range []struct {
		in, out []byte
		to      int64
	}{{x, x, 1}, {x[:12], x[4:], 0}, {x, x[4:8:16], 0}} {
		copy(x, floats(1, 2, 3, 4))
		out, n := c.out[:cap(c.out)], int64(3)
		if err := Interpret(k, []int64{n}, 1, []HostArg{{c.in, access(0, 1)}, {out, access(c.to, 1)}}, nil); err != nil {
			t.Fatal(err)
		}
		if want := floats(1, 1, 1, 1); !bytes.Equal(x, want) {
			t.Errorf("a copy one further on gives %x, want %x", x, want)
		}
	}
}

// The fault is that of the first row that has one, and earlier rows are stored.
func TestInterpretFirstFault(t *testing.T) {
	k := mustParse(t, "in 0 : float32\nin 1 : int32\nin 2 : int32\nout 3 : float32\n%0 = load 1 : int32\n%1 = load 2 : int32\n"+
		"%2 = loadat 0 error %0 : float32\n%3 = loadat 0 error %1 : float32\n%4 = add %2 %3 : float32\nstore 3 %4\n")
	table := HostArg{floats(1, 2, 3), access(0, 0)}
	table.IndexStride, table.IndexSize = 1, 3
	out := floats(0, 0, 0, 0)
	args := []HostArg{table, {ints(0, 1, 2, 7), access(0, 1)}, {ints(0, 1, 9, 0), access(0, 1)}, {out, access(0, 1)}}
	err := Interpret(k, []int64{4}, 1, args, nil)
	if !errors.Is(err, ir.ErrIndex) || err.Error() != "index out of range: index 9 for 3 elements" {
		t.Errorf("got %v, want index 9", err)
	}
	if want := floats(2, 4, 0, 0); !bytes.Equal(out, want) {
		t.Errorf("stored %x, want %x", out, want)
	}
}
