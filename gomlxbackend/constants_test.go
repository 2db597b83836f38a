package gomlxbackend

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// Constants of integers are exact, those too that no float64 is: next to 2^53, and at both
// ends of each dtype.
func TestIntegerConstants(t *testing.T) {
	integerConstants[int64](t, dtypes.Int64, math.MinInt64, math.MinInt64+1, -1<<53-1, -1<<53, -1, 0, 1<<53, 1<<53+1, 1<<60+1, math.MaxInt64-1, math.MaxInt64)
	integerConstants[uint64](t, dtypes.Uint64, 0, 1<<53, 1<<53+1, 1<<60+1, 1<<63-1, 1<<63, 1<<63+1, math.MaxUint64-1, math.MaxUint64)
	integerConstants[int32](t, dtypes.Int32, math.MinInt32, -1<<24-1, 1<<24+1, math.MaxInt32)
	integerConstants[uint32](t, dtypes.Uint32, 1<<24+1, 1<<31, math.MaxUint32)
	integerConstants[int16](t, dtypes.Int16, math.MinInt16, math.MaxInt16)
	integerConstants[uint16](t, dtypes.Uint16, math.MaxUint16)
	integerConstants[int8](t, dtypes.Int8, math.MinInt8, math.MaxInt8)
	integerConstants[uint8](t, dtypes.Uint8, math.MaxUint8)
}

func integerConstants[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](t *testing.T, dt dtypes.DType, list ...T) {
	t.Helper()
	b := openBackend(t, "cpu,compile=off")
	for _, c := range list {
		values := []T{0, 1, 3, c - 2, c - 1, c, c + 1, c + 2}
		bd := b.Builder("constants")
		f := bd.Main()
		s := shapes.Make(dt, len(values))
		x := must(f.Parameter("x", s, nil))
		k := must(f.BroadcastInDim(must(f.Constant([]T{c})), s, nil))
		var out []compute.Value
		var want [][]T
		add := func(y compute.Value, of func(v T) T) {
			out = append(out, y)
			var list []T
			for _, v := range values {
				list = append(list, of(v))
			}
			want = append(want, list)
		}
		truth := func(y compute.Value, of func(v T) bool) {
			add(must(f.ConvertDType(y, dt)), func(v T) T {
				if of(v) {
					return 1
				}
				return 0
			})
		}
		add(must(f.Add(x, k)), func(v T) T { return v + c })
		add(must(f.Sub(k, x)), func(v T) T { return c - v })
		add(must(f.Mul(x, k)), func(v T) T { return v * c })
		add(must(f.Max(k, x)), func(v T) T { return max(v, c) })
		add(must(f.Min(x, k)), func(v T) T { return min(v, c) })
		add(must(f.Clamp(k, x, k)), func(T) T { return c })
		add(must(f.BitwiseXor(x, k)), func(v T) T { return v ^ c })
		add(must(f.Where(must(f.Equal(x, k)), k, x)), func(v T) T { return v })
		truth(must(f.Equal(x, k)), func(v T) bool { return v == c })
		truth(must(f.NotEqual(k, x)), func(v T) bool { return v != c })
		truth(must(f.LessThan(x, k)), func(v T) bool { return v < c })
		truth(must(f.GreaterOrEqual(k, x)), func(v T) bool { return c >= v })
		padded := must(f.Pad(x, must(f.Constant([]T{c})), compute.PadAxis{Start: 1}))
		add(must(f.Slice(padded, []int{0}, []int{len(values)}, nil)), shifted(values, c))
		if err := f.Return(out, nil); err != nil {
			t.Fatal(err)
		}
		results, err := must(bd.Compile()).Execute([]compute.Buffer{must(b.BufferFromFlatData(0, values, s))}, nil, 0)
		if err != nil {
			t.Fatalf("%v %d: %v", dt, c, err)
		}
		for i, r := range results {
			got := make([]T, len(values))
			if err := r.ToFlatData(got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want[i]) {
				t.Errorf("%v %d, result %d of %v: %v, want %v", dt, c, i, values, got, want[i])
			}
		}
	}
}

// shifted gives c, then the values but for the last: what a pad by one in front leaves.
func shifted[T comparable](values []T, c T) func(T) T {
	i := -1
	return func(T) T {
		if i++; i == 0 {
			return c
		}
		return values[i-1]
	}
}
