package compliance

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

var packed = []dtypes.DType{dtypes.Int2, dtypes.Uint2, dtypes.Int4, dtypes.Uint4}

func everyByte() []uint8 {
	list := make([]uint8, 256)
	for i := range list {
		list[i] = uint8(i)
	}
	return list
}

// The values in every byte, as numbers of dtypes that the Go backend converts
// them to.
func TestPackedAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	for _, dt := range packed {
		for _, to := range []dtypes.DType{dtypes.Int8, dtypes.Uint8, dtypes.Int32, dtypes.Int64, dtypes.Float32, dtypes.Float64} {
			if to == dtypes.Int8 && dt.IsUnsigned() || to == dtypes.Uint8 && !dt.IsUnsigned() {
				continue
			}
			t.Run(fmt.Sprint(dt, "/", to), func(t *testing.T) {
				if !agree(t, b, ref, []arg{{everyByte(), []int{16, 16}}}, nil, func(f compute.Function, in []compute.Value) (compute.Value, error) {
					x, err := f.Bitcast(in[0], dt)
					if err != nil {
						return nil, err
					}
					return f.ConvertDType(x, to)
				}) {
					t.Error("the Go backend does not do it")
				}
			})
		}
	}
}

// Bits that are taken apart, moved and put together again.
func TestPackedBits(t *testing.T) {
	b := open(t, "millrace:cpu")
	for _, dt := range packed {
		for _, by := range []dtypes.DType{dtypes.Uint8, dtypes.Int16, dtypes.Uint32, dtypes.Float64, dtypes.Int2, dtypes.Uint4} {
			got, shape, err := evaluate(b, []arg{{everyByte(), []int{32, 8}}}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
				x := in[0]
				bits := 8
				as := func(dt dtypes.DType) {
					if dt.Bits() > bits {
						x = must(f.Reshape(x, 32*64/dt.Bits(), dt.Bits()/bits))
					}
					x, bits = must(f.Bitcast(x, dt)), dt.Bits()
				}
				for _, dt := range []dtypes.DType{dt, by, dt, dtypes.Uint8} {
					as(dt)
				}
				return f.Reshape(x, 256)
			})
			// NaN has other bits than it had, if it went through a float.
			if err != nil || by != dtypes.Float64 && !slices.Equal(got.([]uint8), everyByte()) {
				t.Errorf("%v by %v: %v of %s, %v", dt, by, got, shape, err)
			}
		}
		flipped, _, err := evaluate(b, []arg{{[]uint8{0x12, 0x34}, []int{2}}}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			x := must(f.Bitcast(in[0], dt))
			x = must(f.Transpose(must(f.Reverse(x, 1)), 1, 0))
			return f.Bitcast(must(f.Transpose(x, 1, 0)), dtypes.Uint8)
		})
		want := map[int][]uint8{4: {0x21, 0x43}, 2: {0x84, 0x1c}}[dt.Bits()]
		if err != nil || !slices.Equal(flipped.([]uint8), want) {
			t.Errorf("%v turned: %x, want %x (%v)", dt, flipped, want, err)
		}
	}
}

// Buffers are packed in Go's memory, also with a last byte that is not full.
func TestPackedBuffers(t *testing.T) {
	b := open(t, "millrace:cpu")
	for _, dt := range packed {
		s := shapes.Make(dt, 3)
		n := dt.SizeForDimensions(3)
		data := []uint8{0x9c, 0x07}[:n]
		buf := must(b.BufferFromFlatData(0, data, s))
		bd := b.Builder("packed")
		x := must(bd.Main().Parameter("x", s, nil))
		if err := bd.Main().Return(values{x}, nil); err != nil {
			t.Fatal(err)
		}
		out := must(must(bd.Compile()).Execute([]compute.Buffer{buf}, nil, 0))
		got := make([]uint8, n)
		if err := out[0].ToFlatData(got); err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(data)
		if want[n-1] &= 1<<(3*dt.Bits()%8) - 1; !slices.Equal(got, want) {
			t.Errorf("%v: %x, want %x", dt, got, want)
		}
		if _, err := b.BufferFromFlatData(0, make([]uint8, 3), s); err == nil {
			t.Errorf("%v: three bytes for three elements", dt)
		}
		if err := out[0].ToFlatData(make([]int8, n)); err == nil {
			t.Errorf("%v: read into int8", dt)
		}
	}
}

// They are not computed with.
func TestPackedArithmetic(t *testing.T) {
	b := open(t, "millrace:cpu")
	for _, dt := range packed {
		f := b.Builder("packed").Main()
		x := must(f.Parameter("x", shapes.Make(dt, 4), nil))
		_, sum := f.Add(x, x)
		_, count := f.Iota(shapes.Make(dt, 4), 0)
		_, _, bits := f.RNGBitGenerator(must(f.Parameter("s", compute.RNGStateShape, nil)), shapes.Make(dt, 4))
		_, all := f.ReduceSum(x)
		for _, err := range []error{sum, count, bits, all} {
			if !errors.Is(err, compute.ErrNotImplemented) {
				t.Errorf("%v: %v", dt, err)
			}
		}
	}
}
