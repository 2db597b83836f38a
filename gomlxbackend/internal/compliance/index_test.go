package compliance

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// pointed is a random gather or scatter: an operand, which of its axes indices
// point into, and the windows.
type pointed struct {
	dt                 dtypes.DType
	dims, sizes, batch []int
	from, dropped      []int
	vector             int
}

func newPointed(r *rand.Rand) pointed {
	p := pointed{dt: all[1+r.IntN(len(all)-1)]}
	for i := range 1 + r.IntN(4) {
		d := 1 + r.IntN(5)
		size := d
		if r.IntN(2) == 0 {
			size = 1 + r.IntN(d)
		}
		p.dims, p.sizes = append(p.dims, d), append(p.sizes, size)
		if r.IntN(2) == 0 {
			p.from = append(p.from, i)
		}
		if size == 1 && r.IntN(2) == 0 {
			p.dropped = append(p.dropped, i)
		}
	}
	if len(p.from) == 0 {
		p.from = []int{r.IntN(len(p.dims))}
	}
	r.Shuffle(len(p.from), func(i, k int) { p.from[i], p.from[k] = p.from[k], p.from[i] })
	for range r.IntN(3) {
		p.batch = append(p.batch, 1+r.IntN(4))
	}
	p.vector = r.IntN(len(p.batch) + 1)
	return p
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// indices are starts in a range around what there is, or within it.
func (p pointed) indices(r *rand.Rand, beyond int, dt dtypes.DType) arg {
	dims := slices.Insert(slices.Clone(p.batch), p.vector, len(p.from))
	flat := dtypes.MakeAnySlice(dt, product(dims))
	inner := product(dims[p.vector+1:])
	for i := range reflect.ValueOf(flat).Len() {
		axis := p.from[i/inner%len(p.from)]
		x := r.IntN(p.dims[axis]-p.sizes[axis]+1+2*beyond) - beyond
		reflect.ValueOf(flat).Index(i).Set(reflect.ValueOf(x).Convert(dt.GoType()))
	}
	return arg{flat, dims}
}

func TestGatherAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	r := rand.New(rand.NewPCG(5, 6))
	compared := 0
	for range 150 {
		p := newPointed(r)
		windows := len(p.dims) - len(p.dropped)
		offsets := r.Perm(len(p.batch) + windows)[:windows]
		slices.Sort(offsets)
		x := arg{random(r, p.dt, product(p.dims)), p.dims}
		indices := p.indices(r, 3, []dtypes.DType{dtypes.Int8, dtypes.Int32, dtypes.Int64}[r.IntN(3)])
		t.Run(fmt.Sprintf("%+v", p), func(t *testing.T) {
			if agree(t, b, ref, []arg{x, indices}, nil, func(f compute.Function, in []compute.Value) (compute.Value, error) {
				return f.Gather(in[0], in[1], p.vector, offsets, p.dropped, p.from, p.sizes, false)
			}) {
				compared++
			}
		})
	}
	if compared < 100 {
		t.Errorf("compared %d", compared)
	}
}

// An index vector axis behind the last one stands for one of a single element.
func TestGatherImplicitVector(t *testing.T) {
	b := open(t, "millrace:cpu")
	x := arg{[]float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, []int{4, 3}}
	got, shape, err := evaluate(b, []arg{x, {[]uint8{3, 0, 200, 1}, []int{2, 2}}}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
		return f.Gather(in[0], in[1], 2, []int{2}, []int{0}, []int{0}, []int{1, 3}, false)
	})
	want := []float32{9, 10, 11, 0, 1, 2, 9, 10, 11, 3, 4, 5}
	if err != nil || !slices.Equal(got.([]float32), want) || !slices.Equal(shape.Dimensions, []int{2, 2, 3}) {
		t.Errorf("%v of %s, want %v (%v)", got, shape, want, err)
	}
}

// The Go backend puts windows that do not fill an axis into the wrong places, so
// that this is compared with the definition, one element after another. Some
// windows lie beyond the operand and are dropped whole.
func TestScatterByDefinition(t *testing.T) {
	b := open(t, "millrace:cpu")
	r := rand.New(rand.NewPCG(7, 8))
	combine := map[compute.OpType]func(x, y int32) int32{
		compute.OpTypeScatterSum: func(x, y int32) int32 { return x + y },
		compute.OpTypeScatterMax: func(x, y int32) int32 { return max(x, y) },
		compute.OpTypeScatterMin: func(x, y int32) int32 { return min(x, y) },
	}
	for i := range 200 {
		op := []compute.OpType{compute.OpTypeScatterSum, compute.OpTypeScatterMax, compute.OpTypeScatterMin}[i%3]
		p := newPointed(r)
		var windows []int // axes of the operand
		for k := range p.sizes {
			if !slices.Contains(p.dropped, k) {
				windows = append(windows, k)
			}
		}
		rank := len(p.batch) + len(windows)
		window := r.Perm(rank)[:len(windows)]
		slices.Sort(window)
		var dims []int
		for k, nb := 0, 0; k < rank; k++ {
			if w := slices.Index(window, k); w >= 0 {
				dims = append(dims, p.sizes[windows[w]])
			} else {
				dims, nb = append(dims, p.batch[nb]), nb+1
			}
		}
		x, u := arg{random(r, dtypes.Int32, product(p.dims)), p.dims}, arg{random(r, dtypes.Int32, product(dims)), dims}
		indices := p.indices(r, 1, dtypes.Int32)
		want := slices.Clone(x.flat.([]int32))
		for k, v := range u.flat.([]int32) {
			at := unravel(k, dims)
			var batch []int
			for axis, j := range at {
				if !slices.Contains(window, axis) {
					batch = append(batch, j)
				}
			}
			to := make([]int, len(p.dims))
			for w, axis := range windows {
				to[axis] = at[window[w]]
			}
			inside := true
			for c, axis := range p.from {
				start := int(indices.flat.([]int32)[ravel(slices.Insert(slices.Clone(batch), p.vector, c), indices.dims)])
				inside = inside && start >= 0 && start+p.sizes[axis] <= p.dims[axis]
				to[axis] += start
			}
			if inside {
				j := ravel(to, p.dims)
				want[j] = combine[op](want[j], v)
			}
		}
		got, _, err := evaluate(b, []arg{x, indices, u}, call(op, p.vector, window, append([]int{}, p.dropped...), p.from, false, false))
		if err != nil || !slices.Equal(got.([]int32), want) {
			t.Errorf("%s %+v, updates %v, windows %v: %v, want %v (%v)", op, p, dims, window, got, want, err)
		}
	}
}

func ravel(at, dims []int) int {
	n := 0
	for k, d := range dims {
		n = n*d + at[k]
	}
	return n
}

func unravel(i int, dims []int) []int {
	at := make([]int, len(dims))
	for k, d := range slices.Backward(dims) {
		at[k], i = i%d, i/d
	}
	return at
}

// Windows that do not lie within the operand are dropped whole.
func TestScatterDrops(t *testing.T) {
	b := open(t, "millrace:cpu")
	x := arg{make([]float32, 5), []int{5}}
	u := arg{[]float32{1, 1, 10, 10, 100, 100, 1000, 1000}, []int{4, 2}}
	got, _, err := evaluate(b, []arg{x, {[]int32{-1, 0, 3, 4}, []int{4, 1}}, u}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
		return f.ScatterSum(in[0], in[1], in[2], 1, []int{1}, nil, []int{0}, false, false)
	})
	if want := []float32{10, 10, 0, 100, 100}; err != nil || !slices.Equal(got.([]float32), want) {
		t.Errorf("%v, want %v (%v)", got, want, err)
	}
}

func TestDynamicSlices(t *testing.T) {
	b := open(t, "millrace:cpu")
	x := arg{[]int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, []int{3, 4}}
	for _, c := range []struct {
		row, column  int64
		want, update []int32
	}{
		{1, 2, []int32{6, 7, 10, 11}, []int32{0, 1, 2, 3, 4, 5, -1, -2, 8, 9, -3, -4}},
		{-5, 100, []int32{2, 3, 6, 7}, []int32{0, 1, -1, -2, 4, 5, -3, -4, 8, 9, 10, 11}},
		{1 << 40, -1 << 40, []int32{4, 5, 8, 9}, []int32{0, 1, 2, 3, -1, -2, 6, 7, -3, -4, 10, 11}},
	} {
		update := arg{[]int32{-1, -2, -3, -4}, []int{2, 2}}
		for _, args := range [][]arg{ // the starts apart, and as a vector
			{x, update, {[]int64{c.row}, nil}, {[]int64{c.column}, nil}},
			{x, update, {[]int64{c.row, c.column}, []int{2}}},
		} {
			got, _, err := evaluate(b, args, func(f compute.Function, in []compute.Value) (compute.Value, error) {
				return f.DynamicSlice(in[0], in[2:], []int{2, 2})
			})
			if err != nil || !slices.Equal(got.([]int32), c.want) {
				t.Errorf("from %d, %d: %v, want %v (%v)", c.row, c.column, got, c.want, err)
			}
			got, _, err = evaluate(b, args, func(f compute.Function, in []compute.Value) (compute.Value, error) {
				return f.DynamicUpdateSlice(in[0], in[1], in[2:])
			})
			if err != nil || !slices.Equal(got.([]int32), c.update) {
				t.Errorf("update at %d, %d: %v, want %v (%v)", c.row, c.column, got, c.update, err)
			}
		}
	}
}
