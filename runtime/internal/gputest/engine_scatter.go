package gputest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/apitest"
	"github.com/millrace-go/millrace/ir"
)

// testEngineScatters compares the public methods with the oracle, bit for bit: every combination
// and every mode, into other memory and in place.
func testEngineScatters(t *testing.T) {
	d := openEngine(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, dt := range []ir.DType{ir.Float32, ir.Float16, ir.BFloat16, ir.Int32, ir.Int8, ir.Uint16, ir.Uint8, ir.Bool} {
		for how := range ir.NumCombines {
			if dt == ir.Bool && how != ir.CombineSet {
				continue
			}
			for mode := range ir.NumIndexModes {
				shape, at := ir.Shape{9, 12}, ir.Shape{9, 12}
				axis := int(how+ir.Combine(mode)) % 2
				at[axis] = 31
				p := &ir.Graph{Inputs: []ir.TensorType{{DT: dt, Shape: shape}, {DT: ir.Int32, Shape: at}, {DT: dt, Shape: at}}}
				p.Nodes = []ir.Node{{Op: ir.Scatter, DT: dt, Shape: shape, NArgs: 3, Attr: &ir.Attr{Axes: []int{axis}, Mode: mode, Combine: how}}}
				for i := range 3 {
					p.Nodes[0].Args[i] = ir.T(i)
				}
				p.Outputs = []int{3}
				var inputs [][]byte
				for _, in := range p.Inputs {
					x := ir.NewDense(in)
					for i := range in.Shape.Elems() {
						v := uint64(rng.IntN(4)) // float16 holds all products of these
						if in.DT == ir.Bool {
							v &= 1
						}
						if in.DT.IsFloat() {
							v = ir.FloatBits(in.DT, float64(v)/2+0.5)
						}
						x.Set(i, v)
					}
					inputs = append(inputs, x.Data)
				}
				for i := 0; i < len(inputs[1]); i += 4 {
					v := rng.IntN(shape[axis])
					if mode != ir.IndexError {
						v += rng.IntN(7) - 3
					}
					binary.LittleEndian.PutUint32(inputs[1][i:], uint32(v))
				}
				want, err := ir.EvalGraph(p, inputs)
				must(t, err)
				name := fmt.Sprintf("%v %v %v", dt, how, mode)
				for _, inPlace := range []bool{false, true} {
					x := apitest.FromBytes(d, p.Inputs[0], inputs[0])
					idx, u := apitest.FromBytes(d, p.Inputs[1], inputs[1]), apitest.FromBytes(d, p.Inputs[2], inputs[2])
					y := x.Scatter(idx, u, axis, how, mode)
					if inPlace {
						x.Release()
					}
					got, err := apitest.Bytes(y)
					if err == nil {
						err = apitest.Differ(p.Inputs[0], got, want[0])
					}
					if err != nil {
						t.Errorf("%s, in place %v: %v", name, inPlace, err)
					}
					if inPlace {
						continue
					}
					if same, err := apitest.Bytes(x); err != nil || !slices.Equal(same, inputs[0]) {
						t.Errorf("%s: what was scattered into is no longer what it was (%v)", name, err)
					}
				}
			}
		}
	}
	noFallbacks(t, d)
}

// testEngineScatterInPlace: the gradient of an embedding is added to zeros in place, in the kernel
// that computes it.
func testEngineScatterInPlace(t *testing.T) {
	d := openEngine(t)
	const rows, width, ids = 300, 16, 90
	at, grad := make([]int32, ids), make([]float32, ids*width)
	want := make([]float32, rows*width)
	for i := range at {
		at[i] = int32(i * 7 % 50)
		for j := range width {
			grad[i*width+j] = float32(i) / 8
			want[int(at[i])*width+j] += 3 * grad[i*width+j]
		}
	}
	idx, g := millrace.FromSliceOn(d, at, ids), millrace.FromSliceOn(d, grad, ids, width)
	must(t, errors.Join(idx.Eval(), g.Eval()))
	before := d.Stats()
	zeros := millrace.ZerosOn(d, millrace.Float32, rows, width)
	y := zeros.IndexAdd(idx, g.MulScalar(3), 0)
	zeros.Release()
	got := values(t, y)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	after := d.Stats()
	if n := after.Runtime.Launches - before.Runtime.Launches; n != 2 {
		t.Errorf("%d kernels, want 2", n)
	}
	if n := after.Runtime.Allocs - before.Runtime.Allocs; n > 2 { // the zeros, and a few bytes for the checks
		t.Errorf("%d allocations, want 2", n)
	}
	if n := after.Runtime.Waits - before.Runtime.Waits; n != 1 {
		t.Errorf("%d waits, want 1", n)
	}
}

// testEngineScatterOutOfRange: an index out of range is an error that names it, the op and the line
// of the call; the target is not changed.
func testEngineScatterOutOfRange(t *testing.T) {
	d := openEngine(t)
	x := millrace.FromSliceOn(d, []float32{1, 2, 3, 4, 5, 6}, 3, 2)
	u := millrace.FromSliceOn(d, []float32{10, 20, 30, 40}, 2, 2)
	for _, c := range []struct {
		name, index, op string
		call            func(at *millrace.Tensor) *millrace.Tensor
	}{
		{"scatteradd", "3", "scatter", func(at *millrace.Tensor) *millrace.Tensor { return x.ScatterAdd(at.Reshape(2, 1), u, 0) }},
		{"indexset", "3", "scatter", func(at *millrace.Tensor) *millrace.Tensor {
			return x.Square().IndexSet(at, u.Exp(), 0).AddScalar(1)
		}},
		{"indexadd of what is looked up", "3", "gather", func(at *millrace.Tensor) *millrace.Tensor {
			return x.IndexAdd(at.MulScalar(0), x.Take(at, 0), 0)
		}},
		{"put at a negative index", "-4", "scatter", func(at *millrace.Tensor) *millrace.Tensor {
			return x.IndexAdd(at.MulScalar(0).SubScalar(4), u, 0)
		}},
	} {
		for range 2 { // a new plan, a known one
			at := millrace.FromSliceOn(d, []int32{0, 3})
			beside := x.AddScalar(1)
			apitest.FailsAtIndex(t, c.name, c.call(at), c.op, c.index, "engine_scatter.go")
			apitest.Holds(t, c.name+", beside it", beside, 2, 3, 4, 5, 6, 7)
			apitest.Holds(t, c.name+", what was scattered into", x.AddScalar(0), 1, 2, 3, 4, 5, 6)
			// The other modes accept it.
			for mode, want := range map[millrace.IndexMode][]float32{
				millrace.IndexClamp: {10, 20, 3, 4, 30, 40}, millrace.IndexDrop: {10, 20, 3, 4, 5, 6},
			} {
				apitest.Holds(t, fmt.Sprintf("%s, mode %v", c.name, mode), x.IndexSet(at, u, 0, mode), want...)
			}
		}
	}
	if n := d.Stats().Runtime.Fallbacks; n != 0 {
		t.Errorf("%d fallbacks", n)
	}
}
