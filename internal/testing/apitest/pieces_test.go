package apitest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/ir"
)

// joins are calls that combine tensors; the operands have two dims.
var joins = []struct {
	name string
	call func(x []*tensor) *tensor
	want func(a []array) array
}{
	{"rows", func(x []*tensor) *tensor { return millrace.Concat(0, x...) }, func(a []array) array { return joined(0, a...) }},
	{"columns", func(x []*tensor) *tensor { return millrace.Concat(1, x...) }, func(a []array) array { return joined(1, a...) }},
}

// TestConcatMovesEachElementOnce: a concatenation reads and writes every element once, in
// whatever way its operands are made. The device's counters are those of a copy.
func TestConcatMovesEachElementOnce(t *testing.T) {
	for _, spec := range []string{"cpu:tier=0,explore=wait", "cpu:explore=wait"} {
		dev := openSpec(t, spec)
		counted := func(name string, x *tensor, bytes int64, launches int64) {
			t.Helper()
			before := dev.Stats().Runtime
			if err := x.Eval(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			after := dev.Stats().Runtime
			read, written := after.BytesRead-before.BytesRead, after.BytesWritten-before.BytesWritten
			if read > bytes*6/5 || written > bytes*6/5 {
				t.Errorf("%s: %d bytes read and %d written, %d are joined", name, read, written, bytes)
			}
			if n := after.Launches - before.Launches; n > launches {
				t.Errorf("%s: %d launches of %d at most", name, n, launches)
			}
			x.Release()
		}
		for _, parts := range []int64{2, 3, 8, 17, 64} {
			for axis := range 2 {
				var plain, viewed, computed []*tensor
				bytes := int64(0)
				for i := range int(parts) {
					shape := []int{120, 120}
					shape[axis] = 60 + 40*(i%4)
					x := millrace.UniformOn(dev, millrace.Float32, uint64(i), shape...)
					y := millrace.UniformOn(dev, millrace.Float32, uint64(i), shape[1], shape[0])
					inMemory(t, x, y)
					bytes += 4 * int64(shape[0]*shape[1])
					plain, viewed = append(plain, x), append(viewed, y.T())
				}
				name := fmt.Sprintf("%d along axis %d", parts, axis)
				counted(name, millrace.Concat(axis, plain...), bytes, parts)
				counted(name+", views", millrace.Concat(axis, viewed...), bytes, parts)
				// In a scope, which keeps the operands unwritten while they are recorded.
				err := plain[0].Stream().Scope(func(sc *millrace.Scope) error {
					for i, x := range plain {
						if i%2 == 0 {
							computed = append(computed, x.Exp())
						} else {
							computed = append(computed, viewed[i].Neg())
						}
					}
					all := millrace.Concat(axis, computed...)
					for _, x := range computed {
						x.Release()
					}
					counted(name+", computed", all, bytes, parts)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		x := millrace.UniformOn(dev, millrace.Float32, 1, 300, 200)
		inMemory(t, x)
		for axis := range 3 {
			y, z := x.Neg(), x.AddScalar(1)
			all := millrace.Stack(axis, x, y, x, z, x, x, x, x)
			y.Release()
			z.Release()
			counted(fmt.Sprint("stack along ", axis), all, 8*4*300*200, 8)
		}
		counted("pad", x.Pad(1, millrace.Padding{Before: 20, After: 10}, millrace.Padding{Before: 3, After: 4}), 4*330*207, 1)
	}
}

// TestSmallConcatIsOneKernel: a few elements are selected in one kernel, which counts its reads.
func TestSmallConcatIsOneKernel(t *testing.T) {
	dev := openSpec(t, "cpu:explore=wait")
	var xs []*tensor
	for i := range 4 {
		x := millrace.UniformOn(dev, millrace.Float32, uint64(i), 5, 7)
		inMemory(t, x)
		xs = append(xs, x)
	}
	for axis := range 2 {
		before := dev.Stats().Runtime
		if err := millrace.Concat(axis, xs...).Eval(); err != nil {
			t.Fatal(err)
		}
		after := dev.Stats().Runtime
		if n, read := after.Launches-before.Launches, after.BytesRead-before.BytesRead; n != 1 || read != 4*4*35 {
			t.Errorf("axis %d: %d launches that read %d bytes", axis, n, read)
		}
	}
}

// TestPiecesAgainstLoops: tensors of every dtype are combined in pieces, whatever their size.
func TestPiecesAgainstLoops(t *testing.T) {
	testhook.SetPieces(true)
	defer testhook.SetPieces(false)
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(4, 9))
		for _, dt := range every {
			for axis, join := range joins {
				var ops []operandOf
				for i := range 5 {
					shape := []int{3, 3}
					shape[axis] = 1 + i%3
					ops = append(ops, operandOf{few(rng, dt, shape...), dt})
				}
				trial{name: join.name, operands: ops, dt: dt, call: join.call, want: join.want}.run(t, dev)
			}
		}
		for axis, join := range joins {
			var ops []operandOf
			for i := range 3 {
				shape := []int{6, 6}
				shape[axis] = 2 + i
				ops = append(ops, operandOf{few(rng, ir.Float32, shape...), ir.Float32})
			}
			// Between tensors that are written and read on both sides of the pieces.
			trial{name: join.name + " beside others", operands: ops, dt: ir.Float32,
				call: func(x []*tensor) *tensor {
					made := x[0].MulScalar(2)
					all := join.call([]*tensor{made, x[1].AddScalar(1), x[2], made})
					both := all.Add(all.MaxKeep(axis))
					for _, t := range []*tensor{made, all} {
						t.Release()
					}
					return both
				},
				want: func(a []array) array {
					twice := made(a[0].shape, func(at []int) float64 { return 2 * a[0].get(at...) })
					one := made(a[1].shape, func(at []int) float64 { return a[1].get(at...) + 1 })
					all := join.want([]array{twice, one, a[2], twice})
					return made(all.shape, func(at []int) float64 {
						most := all.get(with(at, axis, 0)...)
						for i := range all.shape[axis] {
							most = max(most, all.get(with(at, axis, i)...))
						}
						return all.get(at...) + most
					})
				}}.run(t, dev)
		}
	})
}
