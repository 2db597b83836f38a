package apitest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/refdev"
	"github.com/millrace-go/millrace/ir"
)

// array belongs to an oracle that shares nothing with the engine: arrays of float64, and loops over
// positions. Tests use whole numbers where sums must be exact.

type array struct {
	shape []int
	v     []float64
}

func newArray(shape ...int) array {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return array{slices.Clone(shape), make([]float64, n)}
}

// made fills an array position by position.
func made(shape []int, f func(at []int) float64) array {
	a := newArray(shape...)
	each(shape, func(at []int) { a.set(f(at), at...) })
	return a
}

// each calls f with every position of a shape in row-major order. f must not keep it.
func each(shape []int, f func(at []int)) {
	at := make([]int, len(shape))
	if slices.Contains(shape, 0) {
		return
	}
	for {
		f(at)
		i := len(at) - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < shape[i] {
				break
			}
			at[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

func (a array) index(at []int) int {
	i := 0
	for d, n := range a.shape {
		i = i*n + at[d]
	}
	return i
}

func (a array) get(at ...int) float64    { return a.v[a.index(at)] }
func (a array) set(x float64, at ...int) { a.v[a.index(at)] = x }

// cast returns an element of an array that broadcasts to the position's shape.
func (a array) cast(at []int) float64 {
	own := slices.Clone(at[len(at)-len(a.shape):])
	for d, n := range a.shape {
		if n == 1 {
			own[d] = 0
		}
	}
	return a.get(own...)
}

func with(at []int, d, x int) []int {
	r := slices.Clone(at)
	r[d] = x
	return r
}

// rows calls f with each row of a along the axes, in row-major order, and the
// positions of its elements.
func (a array) rows(axes []int, f func(at [][]int, row []float64)) {
	outer, inner := slices.Clone(a.shape), slices.Repeat([]int{1}, len(a.shape))
	for _, d := range axes {
		outer[d], inner[d] = 1, a.shape[d]
	}
	each(outer, func(o []int) {
		var at [][]int
		var row []float64
		each(inner, func(i []int) {
			p := slices.Clone(o)
			for _, d := range axes {
				p[d] = i[d]
			}
			at, row = append(at, p), append(row, a.get(p...))
		})
		if at == nil {
			at = [][]int{slices.Clone(o)} // an empty row still has a position
		}
		f(at, row)
	})
}

// folded reduces each row to one number; the axes are removed, or stay with size 1.
func (a array) folded(axes []int, keep bool, f func(row []float64) float64) array {
	wide := slices.Clone(a.shape)
	for _, d := range axes {
		wide[d] = 1
	}
	r := newArray(wide...)
	a.rows(axes, func(at [][]int, row []float64) {
		o := slices.Clone(at[0])
		for _, d := range axes {
			o[d] = 0
		}
		r.set(f(row), o...)
	})
	if keep {
		return r
	}
	var shape []int
	for d, n := range a.shape {
		if !slices.Contains(axes, d) {
			shape = append(shape, n)
		}
	}
	return array{shape, r.v}
}

// mapped replaces each row by another of the same length.
func (a array) mapped(axes []int, f func(row []float64) []float64) array {
	r := newArray(a.shape...)
	a.rows(axes, func(at [][]int, row []float64) {
		for i, x := range f(row) {
			r.set(x, at[i]...)
		}
	})
	return r
}

// whole are small whole numbers, with some repetitions.
func whole(rng *rand.Rand, shape ...int) array {
	return made(shape, func([]int) float64 { return float64(rng.IntN(9) - 3) })
}

// natural are small numbers below n, which unsigned types can hold.
func natural(rng *rand.Rand, n int, shape ...int) array {
	return made(shape, func([]int) float64 { return float64(rng.IntN(max(n, 1))) })
}

// real are numbers around 0.
func real(rng *rand.Rand, shape ...int) array {
	return made(shape, func([]int) float64 { return rng.NormFloat64() * 2 })
}

func (a array) dense(dt ir.DType) ir.Dense {
	d := ir.NewDense(ir.TensorType{DT: dt, Shape: append(ir.Shape{}, a.shape...)})
	for i, x := range a.v {
		if dt.IsFloat() {
			d.Set(i, ir.FloatBits(dt, x))
		} else {
			d.Set(i, uint64(int64(x))<<(64-dt.Bits())>>(64-dt.Bits()))
		}
	}
	return d
}

// tensor makes a tensor of the array; rounded is the tensor's content.
func (a array) tensor(p millrace.Place, dt ir.DType) *tensor {
	d := a.dense(dt)
	return FromBytes(p, d.TensorType, d.Data)
}

func (a array) rounded(dt ir.DType) array { return arrayOf(a.dense(dt)) }

func arrayOf(d ir.Dense) array {
	a := newArray(d.Shape...)
	for i := range a.v {
		a.v[i], _ = Number(ir.ScalarValue{DT: d.DT, Bits: d.At(i)})
	}
	return a
}

// matches compares a tensor with the oracle's array: rounded to the dtype, the values are equal, or
// within tol of the larger of 1 and the wanted one.
func matches(t *tensor, dt ir.DType, want array, tol float64) error {
	if err := t.Err(); err != nil {
		return err
	}
	if t.DType() != dt || !slices.Equal(t.Shape(), append([]int{}, want.shape...)) {
		return fmt.Errorf("got %v%v, want %v%v", t.DType(), t.Shape(), dt, want.shape)
	}
	data, err := Bytes(t)
	if err != nil {
		return err
	}
	got := arrayOf(ir.Dense{TensorType: ir.TensorType{DT: dt, Shape: t.Shape()}, Data: data})
	exact := want.rounded(dt)
	for i, g := range got.v {
		w := exact.v[i]
		if g == w || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g-w) <= tol*max(1, math.Abs(w)) {
			continue
		}
		return fmt.Errorf("element %d of %v is %v, want %v", i, want.shape, g, w)
	}
	return nil
}

// tolerance of composites whose inner functions round: a few units in the last place of the dtype.
func tolerance(dt ir.DType) float64 {
	switch dt {
	case ir.Float64:
		return 1e-13
	case ir.Float32:
		return 1e-5
	case ir.Float16:
		return 1.0 / 1024
	case ir.BFloat16:
		return 1.0 / 128
	}
	return 0
}

var (
	floats  = []ir.DType{ir.Float32, ir.Float64, ir.Float16, ir.BFloat16}
	numbers = slices.Concat(floats, []ir.DType{ir.Int8, ir.Int16, ir.Int32, ir.Int64, ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64})
	every   = append(slices.Clone(numbers), ir.Bool)
)

// testDevices are the devices on which methods are compared with the oracle.
var testDevices = []string{"ref", "cpu:tier=0"}

func onDevices(t *testing.T, f func(t *testing.T, dev *millrace.Device)) {
	for _, spec := range testDevices {
		t.Run(spec, func(t *testing.T) { f(t, openSpec(t, spec)) })
	}
}

// trial is one call: the call, the wanted result, and the operands.
type trial struct {
	name     string
	operands []operandOf
	dt       ir.DType // of the result
	tol      float64
	call     func(x []*tensor) *tensor
	want     func(a []array) array
}

type operandOf struct {
	a  array
	dt ir.DType
}

// run runs a trial outside of scopes and checks that the method releases its temporaries: only
// operands and result are left. The plan that was made must be the one that runs.
func (c trial) run(t *testing.T, dev *millrace.Device) {
	t.Helper()
	var xs []*tensor
	var as []array
	var shapes []any
	for _, o := range c.operands {
		x := o.a.tensor(dev, o.dt)
		if err := x.Eval(); err != nil {
			t.Fatal(err)
		}
		xs, as, shapes = append(xs, x), append(as, o.a.rounded(o.dt)), append(shapes, o.dt, o.a.shape)
	}
	before := dev.Stats()
	r := c.call(xs)
	want := c.want(as)
	if err := matches(r, c.dt, want, c.tol); err != nil {
		t.Errorf("%s of %v: %v", c.name, shapes, err)
	}
	r.Release()
	if err := dev.Sync(context.Background()); err != nil {
		t.Errorf("%s of %v: %v", c.name, shapes, err)
	}
	if after := dev.Stats(); after.LiveBytes > before.LiveBytes || after.Runtime.AllocBytes > before.Runtime.AllocBytes {
		t.Errorf("%s of %v: %d live bytes and %d allocated ones are left, there were %d and %d", c.name, shapes,
			after.LiveBytes, after.Runtime.AllocBytes, before.LiveBytes, before.Runtime.AllocBytes)
	}
	if n := dev.Stats().Fallbacks - before.Fallbacks; n != 0 {
		t.Errorf("%s of %v: %d fallbacks", c.name, shapes, n)
	}
	for _, x := range xs {
		x.Release()
	}
}
