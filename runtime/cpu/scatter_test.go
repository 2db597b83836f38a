package cpu

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// scatterCase is a scatter of n updates into an axis of v elements, for each point of the kept
// dims.
type scatterCase struct {
	kept       []int64
	n, v       int64
	axis       int  // position of the axis among the kept dims
	same       bool // the indices do not change along the last kept dim
	apart      int  // 0: in place; 1: into other memory; 2: from a permuted operand
	made       bool // indices and updates are computed
	dt, index  ir.DType
	mode       ir.IndexMode
	how        ir.Combine
	turned     bool // the updates have the row innermost
	outOfRange int  // number of indices beyond either end
}

func (c *scatterCase) kernel() *codegen.Kernel {
	var b ir.Builder
	idx, u := b.Emit(ir.Load, c.index, 1), b.Emit(ir.Load, c.dt, 2)
	if c.made {
		one := b.Emit(ir.Const, c.index, 1)
		idx = b.Emit(ir.Sub, c.index, 0, b.Emit(ir.Add, c.index, 0, idx, one), one)
		u = b.Emit(ir.Where, c.dt, 0, b.Emit(ir.Eq, ir.Bool, 0, idx, idx), u, u)
	}
	s := b.Emit(ir.Scatter, c.dt, codegen.ScatterImm(0, c.mode, c.how), idx, u)
	return &codegen.Kernel{Body: b.Code, Stores: []codegen.Store{{Operand: 3, Value: s}}, Operands: []codegen.Operand{
		{Kind: codegen.Input, DT: c.dt, Row: true}, {Kind: codegen.Input, DT: c.index},
		{Kind: codegen.Input, DT: c.dt}, {Kind: codegen.Output, DT: c.dt, Row: true}}}
}

// dense returns the strides of dims in an order, the last one innermost.
func dense(dims []int64, order []int) (a runtime.Access, n int64) {
	n = 1
	for i := len(order) - 1; i >= 0; i-- {
		a.Stride[order[i]] = n
		n *= dims[order[i]]
	}
	return a, n
}

func (c *scatterCase) launch(rng *rand.Rand) *kernels.Launch {
	rank := len(c.kept) + 1
	h := &kernels.Launch{Dims: append(slices.Clone(c.kept), c.n), Kept: len(c.kept)}
	order := make([]int, 0, rank)
	for d := range c.kept {
		order = append(order, d)
	}
	order = slices.Insert(order, c.axis, rank-1)
	rows := append(slices.Clone(c.kept), c.v)
	row := func(order []int) (runtime.Access, int64) {
		a, n := dense(rows, order)
		a.IndexStride, a.IndexSize, a.Stride[rank-1] = a.Stride[rank-1], c.v, 0
		return a, n
	}
	filled := func(dt ir.DType, a runtime.Access, n int64, value func() uint64) codegen.HostArg {
		d := ir.NewDense(ir.TensorType{DT: dt, Shape: ir.Shape{int(n)}})
		for i := range int(n) {
			d.Set(i, value())
		}
		return codegen.HostArg{Data: d.Data, Access: a}
	}
	any := func() uint64 { return kernels.Value(rng, c.dt) }

	to, n := row(order)
	out := filled(c.dt, to, n, any)
	x := out
	switch c.apart {
	case 1:
		x = filled(c.dt, to, n, any)
	case 2:
		back := slices.Clone(order)
		slices.Reverse(back)
		from, n := row(back)
		x = filled(c.dt, from, n, any)
	}
	at := slices.Clone(order)
	if c.same {
		at = slices.DeleteFunc(at, func(d int) bool { return d == rank-2 })
	}
	ia, in := dense(h.Dims, at)
	idx := filled(c.index, ia, in, func() uint64 {
		return uint64(rng.Int64N(max(c.v, 1)+int64(2*c.outOfRange))-int64(c.outOfRange)) & (1<<c.index.Bits() - 1)
	})
	if c.turned {
		order = append(slices.DeleteFunc(slices.Clone(order), func(d int) bool { return d == rank-1 }), rank-1)
	}
	ua, un := dense(h.Dims, order)
	h.Args = []codegen.HostArg{x, idx, filled(c.dt, ua, un, any), out}
	return h
}

// TestScatter compares scatters with the oracle: rows, columns, parts of one axis, in place and
// not, in every way to run.
func TestScatter(t *testing.T) {
	ds := everyDevice(t)
	few := maps.Clone(ds)
	if ds["tier 1"].comp != nil { // a compiler runs for every kernel
		delete(few, "tier 1")
	}
	shapes := []scatterCase{
		{n: 1, v: 1}, {n: 5, v: 3}, {n: 5000, v: 7}, {n: 7, v: 5000}, {n: 30000, v: 900}, {n: 0, v: 9}, {n: 3, v: 0, mode: ir.IndexDrop},
		{kept: []int64{1}, n: 9, v: 4}, {kept: []int64{64}, n: 300, v: 50, same: true}, {kept: []int64{64}, n: 300, v: 50},
		{kept: []int64{3000}, n: 20, v: 5, same: true}, {kept: []int64{5}, n: 4000, v: 11, same: true}, {kept: []int64{130}, n: 1, v: 3},
		{kept: []int64{40}, n: 500, v: 60, axis: 1}, {kept: []int64{900}, n: 3, v: 8, axis: 1}, {kept: []int64{7}, n: 0, v: 5},
		{kept: []int64{3, 40}, n: 50, v: 20, axis: 1, same: true}, {kept: []int64{30, 40}, n: 3, v: 2, axis: 1}, {kept: []int64{2, 6, 70}, n: 40, v: 9, axis: 0, same: true},
		{kept: []int64{4, 5}, n: 6, v: 0, axis: 1, mode: ir.IndexDrop},
	}
	for i, c := range shapes {
		if testing.Short() && product(c.kept)*max(c.n, c.v) > 5000 {
			continue
		}
		for j := range 8 {
			c, rng := c, rand.New(rand.NewPCG(uint64(i), uint64(j)))
			c.dt = kernels.DTypes[(i+j)%len(kernels.DTypes)]
			c.index = []ir.DType{ir.Int32, ir.Int64}[rng.IntN(2)]
			c.apart, c.made, c.turned = j%3, j%4 == 1, j%5 == 2
			if c.v > 0 {
				c.mode, c.outOfRange = ir.IndexMode(j%int(ir.NumIndexModes)), 2
			}
			if c.mode == ir.IndexError {
				c.outOfRange = 0
			}
			if c.dt != ir.Bool {
				c.how = ir.Combine(rng.IntN(int(ir.NumCombines)))
			}
			devices := few
			if i%2 == 0 && j == i/2%8 {
				devices = ds
			}
			onEvery(t, devices, fmt.Sprintf("%+v", c), c.kernel(), c.launch(rng))
		}
	}
}

// TestScatterFault checks that an index out of range is found before anything is written, on every
// thread, and that the least one is reported.
func TestScatterFault(t *testing.T) {
	for name, d := range everyDevice(t) {
		for _, c := range []scatterCase{
			{n: 40000, v: 30000, dt: ir.Float32, index: ir.Int32, how: ir.CombineAdd},
			{kept: []int64{64}, n: 3000, v: 40, same: true, dt: ir.Int64, index: ir.Int64},
			{kept: []int64{500}, n: 30, v: 40, axis: 1, made: true, dt: ir.Uint8, index: ir.Int64, how: ir.CombineMax},
		} {
			k := c.kernel()
			h := c.launch(rand.New(rand.NewPCG(7, 7)))
			idx := ir.Dense{TensorType: ir.TensorType{DT: c.index, Shape: ir.Shape{len(h.Args[1].Data) / c.index.Size()}}, Data: h.Args[1].Data}
			idx.Set(idx.Shape.Elems()-1, uint64(c.v))
			idx.Set(idx.Shape.Elems()/2, uint64(c.v)+9)
			p, err := d.Build(k)
			if err != nil {
				t.Fatal(err)
			}
			l := runtime.Launch{Prog: p, Rank: len(h.Dims), Kept: h.Kept}
			copy(l.Dims[:], h.Dims)
			for i, a := range h.Args {
				if i == 3 {
					a.Access.Buf = l.Args[0].Buf
				} else if a.Access.Buf, err = d.Alloc(int64(len(a.Data))); err != nil {
					t.Fatal(err)
				} else if err := d.Write(a.Access.Buf, k.Operands[i].DT, 0, a.Data); err != nil {
					t.Fatal(err)
				}
				l.Args = append(l.Args, a.Access)
			}
			err = d.Run([]runtime.Launch{l})
			want := fmt.Sprintf("index %d, but the axis has %d elements", c.v, c.v)
			if at := (*runtime.LaunchError)(nil); !errors.As(err, &at) || !errors.Is(err, ir.ErrIndex) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
			got := make([]byte, len(h.Args[0].Data))
			if err := d.Read(got, c.dt, l.Args[0].Buf, 0); err != nil || !slices.Equal(got, h.Args[0].Data) {
				t.Errorf("%s, %+v: the operand was changed (%v)", name, c, err)
			}
			for _, a := range l.Args[:3] {
				d.Free(a.Buf)
			}
		}
	}
}

// TestScatterReach checks that a scatter beyond its memory is refused and writes nothing.
func TestScatterReach(t *testing.T) {
	d := openTest(t, runtime.Config{Tier: -1, Threads: 2})
	c := scatterCase{kept: []int64{4}, n: 3, v: 5, dt: ir.Float32, index: ir.Int32, apart: 1}
	k := c.kernel()
	p, err := d.Build(k)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []int{-1, 0, 3} {
		h := c.launch(rand.New(rand.NewPCG(1, 1)))
		l := runtime.Launch{Prog: p, Rank: 2, Kept: 1}
		copy(l.Dims[:], h.Dims)
		for i, a := range h.Args {
			b, err := d.Alloc(int64(len(a.Data)))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Free(b)
			if err := d.Write(b, k.Operands[i].DT, 0, a.Data); err != nil {
				t.Fatal(err)
			}
			a.Access.Buf = b
			if i == wrong {
				a.Access.IndexSize = 1 << 20
			}
			l.Args = append(l.Args, a.Access)
		}
		if err := d.Run([]runtime.Launch{l}); (err != nil) != (wrong >= 0) {
			t.Errorf("operand %d too long: %v", wrong, err)
		}
	}
}

// BenchmarkScatter times scatters of rows, of columns, and into parts of an axis, and a small one.
func BenchmarkScatter(b *testing.B) {
	d := openTest(b, runtime.Config{Tier: 1, Threads: benchThreads()})
	for name, c := range map[string]scatterCase{
		"axis":    {n: 200000, v: 5000},
		"rows":    {kept: []int64{200}, n: 1000, v: 100},
		"columns": {kept: []int64{256}, n: 4000, v: 500, same: true},
		"spread":  {kept: []int64{64}, n: 3000, v: 50},
		"small":   {kept: []int64{30}, n: 12, v: 9, same: true},
	} {
		c.dt, c.index, c.mode, c.how = ir.Float32, ir.Int32, ir.IndexError, ir.CombineAdd
		b.Run(name, func(b *testing.B) {
			k := c.kernel()
			bound(b, d, k, c.launch(rand.New(rand.NewPCG(1, 1))), func(l *runtime.Launch) {
				list := []runtime.Launch{*l}
				for b.Loop() {
					if err := d.Run(list); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
