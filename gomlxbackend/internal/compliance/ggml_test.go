package compliance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/float16"
)

// ggmlFormats are the formats of blocks, with the places of their 16-bit scales.
var ggmlFormats = map[compute.GGMLQuantType][]int{
	compute.GGMLQ4_0: {0}, compute.GGMLQ8_0: {0}, compute.GGMLIQ4NL: {0}, compute.GGMLQ4_K: {0, 2}, compute.GGMLQ6_K: {208},
}

// blocksOf are rows of random blocks, with scales that are small numbers.
func blocksOf(r *rand.Rand, t compute.GGMLQuantType, rows, blocks int) arg {
	size := t.BytesPerBlock()
	list := make([]uint8, rows*blocks*size)
	for i := range list {
		list[i] = uint8(r.Uint32())
	}
	for b := 0; b < len(list); b += size {
		for _, at := range ggmlFormats[t] {
			bits := float16.FromFloat32(r.Float32()*0.02 - 0.01).Bits()
			list[b+at], list[b+at+1] = uint8(bits), uint8(bits>>8)
		}
	}
	return arg{list, []int{rows, blocks * size}}
}

// Lookups and dense layers of weights in blocks of bytes, in all formats that the Go backend
// has: a lookup gives its bits.
func TestBlocksAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	r := rand.New(rand.NewPCG(81, 82))
	for format := range ggmlFormats {
		q := &compute.Quantization{Scheme: compute.QuantGGML, GGMLType: format}
		for _, blocks := range []int{1, 3} {
			table := blocksOf(r, format, 7, blocks)
			for _, dims := range [][]int{{5, 1}, {2, 3, 1}, {1}} {
				n := dims[0]
				if len(dims) == 3 {
					n *= dims[1]
				}
				at := make([]int32, n)
				for i := range at {
					at[i] = r.Int32N(7)
				}
				t.Run(fmt.Sprint("Lookup/", format, blocks, dims), func(t *testing.T) {
					closeTo(t, b, ref, 0, []arg{table, {at, dims}}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
						return f.QuantizedEmbeddingLookup(in[0], in[1], q)
					})
				})
			}
			k := blocks * format.ValuesPerBlock()
			for name, x := range map[string]arg{
				"matrix": {uniform(r, dtypes.Float32, 4*k), []int{4, k}}, "batch": {uniform(r, dtypes.Float32, 6*k), []int{2, 3, k}}, "vector": {uniform(r, dtypes.Float32, k), []int{1, k}},
			} {
				t.Run(fmt.Sprint("Dense/", name, format, blocks), func(t *testing.T) {
					closeTo(t, b, ref, 2e-4, []arg{x, table, {uniform(r, dtypes.Float32, 7), []int{7}}}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
						return f.FusedQuantizedDense(in[0], in[1], in[2], q, compute.ActivationRelu)
					})
				})
			}
		}
	}
}

// A block by hand: 16 bytes of Q4_0 whose low halves are 0 to 15 and whose high ones 15 to 0,
// with a scale of 2, are -16, -14, ... and then 14, 12, ...
func TestBlockByHand(t *testing.T) {
	b := open(t, "millrace:cpu")
	bits := float16.FromFloat32(2).Bits()
	block := []uint8{uint8(bits), uint8(bits >> 8)}
	for i := range 16 {
		block = append(block, uint8(i|(15-i)<<4))
	}
	got, _, err := evaluate(b, []arg{{block, []int{1, 18}}, {[]int64{0}, []int{1, 1}}}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
		return f.QuantizedEmbeddingLookup(in[0], in[1], &compute.Quantization{Scheme: compute.QuantGGML, GGMLType: compute.GGMLQ4_0})
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range got.([]float32) {
		want := float32(2 * (i - 8))
		if i >= 16 {
			want = float32(2 * (15 - (i - 16) - 8))
		}
		if x != want {
			t.Errorf("%d is %v, want %v", i, x, want)
		}
	}
}

// What cannot be looked up is an error that names the op; what is not there says so.
func TestBadBlocks(t *testing.T) {
	b := open(t, "millrace:cpu")
	r := rand.New(rand.NewPCG(83, 84))
	table, at := blocksOf(r, compute.GGMLQ8_0, 3, 2), arg{[]int32{1}, []int{1, 1}}
	for _, c := range []struct {
		want string
		args []arg
		q    *compute.Quantization
	}{
		{"missing", []arg{table, at}, nil},
		{"scheme NF4", []arg{table, at}, &compute.Quantization{Scheme: compute.QuantNF4}},
		{"format Q5_K", []arg{table, at}, &compute.Quantization{Scheme: compute.QuantGGML, GGMLType: compute.GGMLQ5_K}},
		{"blocks of 210 bytes", []arg{table, at}, &compute.Quantization{Scheme: compute.QuantGGML, GGMLType: compute.GGMLQ6_K}},
		{"last axis of 1", []arg{table, {[]int32{1, 2}, []int{1, 2}}}, &compute.Quantization{Scheme: compute.QuantGGML, GGMLType: compute.GGMLQ8_0}},
		{"integers", []arg{table, {[]float32{1}, []int{1, 1}}}, &compute.Quantization{Scheme: compute.QuantGGML, GGMLType: compute.GGMLQ8_0}},
		{"uint8", []arg{{[]float32{1}, []int{1, 1}}, at}, &compute.Quantization{Scheme: compute.QuantGGML, GGMLType: compute.GGMLQ8_0}},
	} {
		_, _, err := evaluate(b, c.args, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			return f.QuantizedEmbeddingLookup(in[0], in[1], c.q)
		})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "QuantizedEmbeddingLookup") {
			t.Errorf("%v, want %q", err, c.want)
		}
		if strings.Contains(c.want, "format") != compute.IsNotImplemented(err) && !strings.Contains(c.want, "scheme") {
			t.Errorf("%v", err)
		}
	}
}
