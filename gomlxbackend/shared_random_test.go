package gomlxbackend

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// TestSharedRandom runs random programs of host writes, Data, Execute, donation
// and Finalize, whose buffers are also kept as plain numbers. Programs write to
// every slice that is theirs as soon as they may.
func TestSharedRandom(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	for _, config := range []string{"cpu", "cpu,compile=off,threads=1", "cpu,check", "cpu,queue=1"} {
		b := openBackend(t, config)
		for _, dt := range []dtypes.DType{dtypes.Float32, dtypes.Int64, dtypes.Complex64, dtypes.Uint4, dtypes.Int2, dtypes.Bool, dtypes.BFloat16} {
			t.Run(fmt.Sprint(config, "/", dt), func(t *testing.T) {
				for seed := range rounds {
					p := newSharedProgram(t, b, dt, uint64(seed))
					for range 40 {
						p.step()
					}
					for len(p.vars) > 0 {
						p.check(0)
						p.vars = slices.Delete(p.vars, 0, 1)
					}
					if t.Failed() {
						t.Fatalf("seed %d: %s", seed, strings.Join(p.log, "; "))
					}
				}
			})
		}
	}
}

// sharedVar is a buffer, what it should hold and the slice that the program has
// of it.
type sharedVar struct {
	buf  compute.Buffer
	want []complex128
	flat any
}

type sharedProgram struct {
	t      *testing.T
	b      *Backend
	r      *rand.Rand
	shape  shapes.Shape
	graphs []sharedGraph
	vars   []*sharedVar
	log    []string
}

// sharedGraph is an executable and what it does to numbers.
type sharedGraph struct {
	e    compute.Executable
	name string
	want func(x, y []complex128) [][]complex128
}

const sharedSize = 12

func newSharedProgram(t *testing.T, b *Backend, dt dtypes.DType, seed uint64) *sharedProgram {
	p := &sharedProgram{t: t, b: b, r: rand.New(rand.NewPCG(seed, uint64(dt))), shape: shapes.Make(dt, 3, 4)}
	type value = compute.Value
	turned := func(x []complex128) []complex128 {
		out := make([]complex128, len(x))
		for i := range out {
			out[i] = x[len(x)-1-i]
		}
		return out
	}
	each := func(x []complex128, f func(i int) complex128) []complex128 {
		out := make([]complex128, len(x))
		for i := range out {
			out[i] = f(i)
		}
		return out
	}
	p.graph("as it is", func(f compute.Function, x, y value) []value { return []value{x, x, must(f.Identity(y))} },
		func(x, y []complex128) [][]complex128 { return [][]complex128{x, x, y} })
	p.graph("turned", func(f compute.Function, x, y value) []value {
		back := must(f.Reshape(must(f.Reshape(y, 12)), 3, 4))
		return []value{must(f.Reverse(x, 0, 1)), back, y}
	}, func(x, y []complex128) [][]complex128 { return [][]complex128{turned(x), y, y} })
	p.graph("constant", func(f compute.Function, x, y value) []value {
		c := must(f.ConvertDType(must(f.Constant(slices.Repeat([]float32{1}, sharedSize), 3, 4)), dt))
		if !dt.IsPacked() { // of which Constant takes none
			flat := dtypes.MakeAnySlice(dt, sharedSize)
			fromNumbers(flat, dt, slices.Repeat([]complex128{1}, sharedSize))
			c = must(f.Constant(flat, 3, 4))
		}
		return []value{c, x, c}
	}, func(x, y []complex128) [][]complex128 {
		ones := slices.Repeat([]complex128{1}, sharedSize)
		return [][]complex128{ones, x, ones}
	})
	p.graph("chosen", func(f compute.Function, x, y value) []value {
		mask := make([]bool, sharedSize)
		for i := range mask {
			mask[i] = i%3 == 0
		}
		return []value{must(f.Where(must(f.Constant(mask, 3, 4)), x, y)), y}
	}, func(x, y []complex128) [][]complex128 {
		return [][]complex128{each(x, func(i int) complex128 {
			if i%3 == 0 {
				return x[i]
			}
			return y[i]
		}), y}
	})
	if dt == dtypes.Bool || dt.IsPacked() {
		return p
	}
	p.graph("sums", func(f compute.Function, x, y value) []value {
		return []value{must(f.Neg(x)), must(f.Sub(x, y)), must(f.Neg(x)), y}
	}, func(x, y []complex128) [][]complex128 {
		neg := each(x, func(i int) complex128 { return 0 - x[i] })
		return [][]complex128{neg, each(x, func(i int) complex128 { return x[i] - y[i] }), neg, y}
	})
	p.graph("loop", func(f compute.Function, x, y value) []value {
		part := func(do func(c compute.Function, i, v value) []value) compute.Function {
			c := must(f.Closure())
			if err := c.Return(do(c, must(c.Parameter("i", shapes.Make(dtypes.Int32), nil)), must(c.Parameter("v", p.shape, nil))), nil); err != nil {
				panic(err)
			}
			return c
		}
		return append(must(f.While(
			part(func(c compute.Function, i, _ value) []value {
				return []value{must(c.LessThan(i, must(c.Constant([]int32{2}))))}
			}),
			part(func(c compute.Function, i, v value) []value {
				return []value{must(c.Add(i, must(c.Constant([]int32{1})))), must(c.Sub(v, y))}
			}),
			must(f.Constant([]int32{0})), x))[1:], y)
	}, func(x, y []complex128) [][]complex128 {
		return [][]complex128{each(x, func(i int) complex128 { return x[i] - y[i] - y[i] }), y}
	})
	return p
}

func (p *sharedProgram) graph(name string, build func(f compute.Function, x, y compute.Value) []compute.Value, want func(x, y []complex128) [][]complex128) {
	bd := p.b.Builder(name)
	f := bd.Main()
	x, y := must(f.Parameter("x", p.shape, nil)), must(f.Parameter("y", p.shape, nil))
	if err := f.Return(build(f, x, y), nil); err != nil {
		p.t.Fatal(err)
	}
	p.graphs = append(p.graphs, sharedGraph{must(bd.Compile()), name, want})
}

// fromNumbers and toNumbers write and read elements of any dtype.
func fromNumbers(flat any, dt dtypes.DType, list []complex128) {
	if dt.IsPacked() {
		packed, bits := flat.([]uint8), dt.Bits()
		clear(packed)
		for i, x := range list {
			packed[i*bits/8] |= uint8(int(real(x))&(1<<bits-1)) << (i * bits % 8)
		}
		return
	}
	v := reflect.ValueOf(flat)
	for i, x := range list {
		switch to := v.Index(i); {
		case dt == dtypes.Bool:
			to.SetBool(x != 0)
		case dt.IsComplex():
			to.SetComplex(x)
		case dt == dtypes.BFloat16:
			to.Set(reflect.ValueOf(shapes.CastAsDType(real(x), dt)))
		case dt.IsFloat():
			to.SetFloat(real(x))
		default:
			to.SetInt(int64(real(x)))
		}
	}
}

func toNumbers(flat any, dt dtypes.DType) []complex128 {
	list := make([]complex128, sharedSize)
	v := reflect.ValueOf(flat)
	for i := range list {
		if dt.IsPacked() {
			bits := dt.Bits()
			x := int(flat.([]uint8)[i*bits/8]>>(i*bits%8)) & (1<<bits - 1)
			if !dt.IsUnsigned() && x >= 1<<(bits-1) {
				x -= 1 << bits
			}
			list[i] = complex(float64(x), 0)
			continue
		}
		switch at := v.Index(i); {
		case dt == dtypes.Bool:
			if at.Bool() {
				list[i] = 1
			}
		case dt.IsComplex():
			list[i] = at.Complex()
		case dt == dtypes.BFloat16:
			list[i] = complex(float64(at.Interface().(interface{ Float32() float32 }).Float32()), 0)
		case dt.IsFloat():
			list[i] = complex(at.Float(), 0)
		default:
			list[i] = complex(float64(at.Int()), 0)
		}
	}
	return list
}

// numbers are small ones that the dtype has exactly.
func (p *sharedProgram) numbers() []complex128 {
	list := make([]complex128, sharedSize)
	for i := range list {
		switch dt := p.shape.DType; {
		case dt == dtypes.Bool:
			list[i] = complex(float64(p.r.IntN(2)), 0)
		case dt == dtypes.Int2:
			list[i] = complex(float64(p.r.IntN(4)-2), 0)
		case dt.IsPacked():
			list[i] = complex(float64(p.r.IntN(16)), 0)
		case dt.IsComplex():
			list[i] = complex(float64(p.r.IntN(9)-4), float64(p.r.IntN(9)-4))
		default:
			list[i] = complex(float64(p.r.IntN(9)-4), 0)
		}
	}
	return list
}

func (p *sharedProgram) flat() any { return dtypes.MakeAnySlice(p.shape.DType, sharedSize) }

func (p *sharedProgram) did(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

func (p *sharedProgram) step() {
	n := len(p.vars)
	what := p.r.IntN(12)
	if n < 2 {
		what = p.r.IntN(2)
	}
	switch what {
	case 0:
		v := &sharedVar{want: p.numbers()}
		flat := p.flat()
		fromNumbers(flat, p.shape.DType, v.want)
		v.buf = must(p.b.BufferFromFlatData(0, flat, p.shape))
		p.vars = append(p.vars, v)
		p.did("%d uploaded", n)
	case 1:
		buf, flat, err := p.b.NewSharedBuffer(0, p.shape)
		if err != nil {
			p.t.Fatal(err)
		}
		p.vars = append(p.vars, &sharedVar{buf, make([]complex128, sharedSize), flat})
		p.did("%d shared", n)
		p.write(n)
	case 2, 3:
		p.write(p.r.IntN(n))
	case 4:
		i := p.r.IntN(n)
		v := p.vars[i]
		flat, err := v.buf.Data()
		if err != nil {
			p.t.Fatal(err)
		}
		if v.flat != nil && reflect.ValueOf(flat).Pointer() != reflect.ValueOf(v.flat).Pointer() {
			p.t.Errorf("%d moved", i)
		}
		v.flat = flat
		p.did("Data of %d", i)
		p.check(i)
	case 5:
		p.check(p.r.IntN(n))
	case 6:
		i := p.r.IntN(n)
		if p.r.IntN(2) == 0 {
			if err := p.vars[i].buf.Finalize(); err != nil {
				p.t.Error(err)
			}
			p.did("Finalize of %d", i)
		} else {
			p.did("%d dropped", i)
		}
		p.vars = slices.Delete(p.vars, i, i+1)
	case 7:
		if p.r.IntN(8) == 0 {
			goruntime.GC()
			p.did("GC")
		}
	default:
		p.run()
	}
}

// write gives a variable that the program has a slice of other numbers.
func (p *sharedProgram) write(i int) {
	if v := p.vars[i]; v.flat != nil {
		v.want = p.numbers()
		fromNumbers(v.flat, p.shape.DType, v.want)
		p.did("%d written", i)
	}
}

func (p *sharedProgram) check(i int) {
	v := p.vars[i]
	flat := p.flat()
	if err := v.buf.ToFlatData(flat); err != nil {
		p.t.Errorf("%d: %v", i, err)
		return
	}
	if got := toNumbers(flat, p.shape.DType); !slices.Equal(got, v.want) {
		p.t.Errorf("%d is %v, want %v", i, got, v.want)
	}
	if v.flat != nil {
		if got := toNumbers(v.flat, p.shape.DType); !slices.Equal(got, v.want) {
			p.t.Errorf("the slice of %d is %v, want %v", i, got, v.want)
		}
	}
}

// run executes a graph, and writes to what it may at once.
func (p *sharedProgram) run() {
	g := p.graphs[p.r.IntN(len(p.graphs))]
	i, j := p.r.IntN(len(p.vars)), p.r.IntN(len(p.vars))
	x, y := p.vars[i], p.vars[j]
	donate := []bool{p.r.IntN(3) == 0, p.r.IntN(3) == 0}
	p.did("%s of %d, %d, donated %v", g.name, i, j, donate)
	want := g.want(x.want, y.want)
	out, err := g.e.Execute([]compute.Buffer{x.buf, y.buf}, donate, 0)
	if err != nil {
		p.t.Fatal(errors.Join(err, errors.New(strings.Join(p.log, "; "))))
	}
	var left []*sharedVar
	for _, v := range p.vars {
		if v == x && donate[0] || v == y && donate[1] {
			if _, err := v.buf.Data(); err == nil {
				p.t.Error("Data of a donated buffer")
			}
			continue
		}
		left = append(left, v)
	}
	p.vars = left
	for k := range p.vars {
		if p.r.IntN(2) == 0 {
			p.write(k)
		}
	}
	for k, buf := range out {
		v := &sharedVar{buf: buf, want: slices.Clone(want[k])}
		if p.limit(v.want) {
			continue
		}
		p.vars = append(p.vars, v)
		if p.r.IntN(3) == 0 {
			if v.flat, err = buf.Data(); err != nil {
				p.t.Fatal(err)
			}
			p.check(len(p.vars) - 1)
			p.write(len(p.vars) - 1)
		}
	}
}

// limit reports numbers that are no longer small enough to be exact.
func (p *sharedProgram) limit(list []complex128) bool {
	return slices.ContainsFunc(list, func(x complex128) bool { return real(x)*real(x)+imag(x)*imag(x) > 1<<14 })
}
