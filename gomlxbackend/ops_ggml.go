package gomlxbackend

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/pkg/errors"
)

// Weights in blocks of bytes, as llama.cpp's GGUF files have them: a row of a matrix is
// blocks one after another, each with the numbers of its scale in front or behind. They are
// taken apart where they are read.

// blockFormat takes blocks apart: bytes are uint8, [rows, blocks, bytes of a block], and the
// result is float32, [rows, blocks, values of a block].
type blockFormat func(e *expansion, bytes *Node) *Node

// blockFormats are the formats that there are.
var blockFormats = map[compute.GGMLQuantType]blockFormat{
	compute.GGMLQ8_0: func(e *expansion, b *Node) *Node {
		return e.mul(e.half(b, 0), e.float(e.get(e.f.Bitcast(e.bytes(b, 2, 34), dtypes.Int8))))
	},
	compute.GGMLQ4_0: func(e *expansion, b *Node) *Node {
		return e.mul(e.half(b, 0), e.shifted(e.nibbles(e.bytes(b, 2, 18)), 8))
	},
	compute.GGMLIQ4NL: func(e *expansion, b *Node) *Node {
		return e.mul(e.half(b, 0), e.lookUp(compute.IQ4NLLookupTable[:], e.nibbles(e.bytes(b, 2, 18))))
	},
	compute.GGMLQ4_K: (*expansion).q4k,
	compute.GGMLQ6_K: (*expansion).q6k,
}

// unblocked is a matrix [rows, bytes] as numbers, [rows, values].
func (e *expansion) unblocked(t compute.GGMLQuantType, bytes *Node) (*Node, error) {
	format, ok := blockFormats[t]
	if !ok {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "backend %q has no blocks of format %s", Name, t)
	}
	if bytes.shape.DType != dtypes.Uint8 || bytes.shape.Rank() != 2 || bytes.shape.Dimensions[1]%t.BytesPerBlock() != 0 {
		return nil, errors.Errorf("a %s does not consist of rows of blocks of %d bytes", bytes.shape, t.BytesPerBlock())
	}
	rows, blocks := bytes.shape.Dimensions[0], bytes.shape.Dimensions[1]/t.BytesPerBlock()
	cut := e.get(e.f.Reshape(bytes, rows, blocks, t.BytesPerBlock()))
	if e.err != nil {
		return nil, e.err
	}
	values := format(e, cut)
	return e.get(e.f.Reshape(values, rows, blocks*t.ValuesPerBlock())), e.err
}

// QuantizedEmbeddingLookup is rows of a matrix in blocks of bytes, by their indices, which have
// a last axis of 1, as float32. Only the rows that are looked up are taken apart. Indices out
// of range are those of the first or the last row, as Gather has it.
func (f *Function) QuantizedEmbeddingLookup(data, indices compute.Value, quantization *compute.Quantization) (compute.Value, error) {
	const op = compute.OpTypeQuantizedEmbeddingLookup
	if quantization == nil {
		return nil, errors.Errorf("%s: the quantization is missing", op)
	}
	q := *quantization
	if q.Scheme != compute.QuantGGML {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "%s: backend %q has no scheme %s", op, Name, q.Scheme)
	}
	return f.expand(op, 2, []compute.Value{data, indices}, func(e *expansion, in []*Node) (*Node, error) {
		table, at := in[0], in[1]
		last := at.shape.Rank() - 1
		switch {
		case table.shape.Rank() != 2 || table.shape.DType != dtypes.Uint8:
			return nil, errors.New("the data must be uint8 and have two axes")
		case !at.shape.DType.IsInt() || last < 0 || at.shape.Dimensions[last] != 1:
			return nil, errors.New("the indices must be integers with a last axis of 1")
		}
		lead := at.shape.Dimensions[:last]
		count := at.shape.Size()
		flat := e.get(f.Reshape(at, count, 1))
		rows := e.get(f.Gather(table, flat, 1, []int{1}, []int{0}, []int{0}, []int{1, table.shape.Dimensions[1]}, false))
		if e.err != nil {
			return nil, e.err
		}
		values, err := e.unblocked(q.GGMLType, rows)
		if err != nil {
			return nil, err
		}
		return e.get(f.Reshape(values, append(slices.Clone(lead), values.shape.Dimensions[1])...)), e.err
	})
}

// quantizedBlocks is FusedQuantizedDense of weights [outputs, bytes].
func (e *expansion) quantizedBlocks(q compute.Quantization, x, w, bias *Node, activation compute.ActivationType) (*Node, error) {
	if x.shape.DType != dtypes.Float32 || x.shape.Rank() < 1 {
		return nil, errors.New("x must be float32 and have at least one axis")
	}
	values, err := e.unblocked(q.GGMLType, w)
	if err != nil {
		return nil, err
	}
	if got, want := x.shape.Dimensions[x.shape.Rank()-1], values.shape.Dimensions[1]; got != want {
		return nil, errors.Errorf("x has %d features and the weights %d", got, want)
	}
	y := e.get(e.f.DotGeneral(e.matrix(x, false), []int{1}, nil, values, []int{1}, nil, compute.DotGeneralConfig{}))
	if dims := append(slices.Clone(x.shape.Dimensions[:x.shape.Rank()-1]), w.shape.Dimensions[0]); len(dims) != 2 {
		y = e.get(e.f.Reshape(y, dims...))
	}
	return e.biased(y, bias, activation)
}

// q4k is a block of 256: two scales of 16 bits, eight pairs of 6 bits in 12 bytes, a factor and
// an offset for 32 values each, and the values' 4 bits, of which a byte has one of each of
// two runs of 32.
func (e *expansion) q4k(b *Node) *Node {
	low, mid, high := e.bytes(b, 4, 8), e.bytes(b, 8, 12), e.bytes(b, 12, 16)
	factors := e.joined(2, e.bits(low, 0, 6), e.over(e.bits(high, 0, 4), e.bits(low, 6, 2), 4))
	offsets := e.joined(2, e.bits(mid, 0, 6), e.over(e.bits(high, 4, 4), e.bits(mid, 6, 2), 4))
	scale := e.mul(e.half(b, 0), e.float(factors))
	least := e.mul(e.half(b, 2), e.float(offsets))
	d := b.shape.Dimensions
	packed := e.get(e.f.Reshape(e.bytes(b, 16, 144), d[0], d[1], 4, 1, 32))
	runs := e.joined(3, e.bits(packed, 0, 4), e.bits(packed, 4, 4))
	values := e.float(e.get(e.f.Reshape(runs, d[0], d[1], 8, 32)))
	of := func(x *Node) *Node { return e.get(e.f.Reshape(x, d[0], d[1], 8, 1)) }
	return e.get(e.f.Sub(e.mul(of(scale), values), of(least)))
}

// q6k is a block of 256: the low 4 bits of its values, the high 2, sixteen factors of 8 bits,
// one for 16 values each, and a scale of 16 bits. It is two halves, each of four runs of 32.
func (e *expansion) q6k(b *Node) *Node {
	d := b.shape.Dimensions
	part := func(from, to int, dims ...int) *Node {
		return e.get(e.f.Reshape(e.bytes(b, from, to), append([]int{d[0], d[1]}, dims...)...))
	}
	low := part(0, 128, 2, 2, 32) // halves, which of two bytes, 32
	high := part(128, 192, 2, 1, 32)
	lows := e.joined(3, e.bits(low, 0, 4), e.bits(low, 4, 4)) // [.., 2, 4 runs, 32]
	highs := e.joined(3, e.bits(high, 0, 2), e.bits(high, 2, 2), e.bits(high, 4, 2), e.bits(high, 6, 2))
	values := e.shifted(e.over(lows, highs, 4), 32)
	factors := e.float(e.get(e.f.Bitcast(e.bytes(b, 192, 208), dtypes.Int8)))
	scale := e.get(e.f.Reshape(e.mul(e.half(b, 208), factors), d[0], d[1], 2, 4, 2, 1))
	return e.mul(scale, e.get(e.f.Reshape(values, d[0], d[1], 2, 4, 2, 16)))
}

// bytes from one to another of each block.
func (e *expansion) bytes(b *Node, from, to int) *Node {
	if e.err != nil {
		return broken
	}
	d := b.shape.Dimensions
	return e.get(e.f.Slice(b, []int{0, 0, from}, []int{d[0], d[1], to}, nil))
}

// half is the number of 16 bits that begins at a byte of each block, [rows, blocks, 1].
func (e *expansion) half(b *Node, at int) *Node {
	if e.err != nil {
		return broken
	}
	bits := e.get(e.f.Bitcast(e.bytes(b, at, at+2), dtypes.Float16))
	d := b.shape.Dimensions
	return e.get(e.f.Reshape(e.float(bits), d[0], d[1], 1))
}

// bits are n of each byte, from the bit first on.
func (e *expansion) bits(x *Node, first, n int) *Node {
	if first > 0 {
		x = e.get(e.f.ShiftRightLogical(x, e.number(dtypes.Uint8, float64(first))))
	}
	if first+n == 8 {
		return x
	}
	return e.get(e.f.BitwiseAnd(x, e.number(dtypes.Uint8, float64(int(1)<<n-1))))
}

// over puts bits of high over those of low, which has n.
func (e *expansion) over(low, high *Node, n int) *Node {
	return e.get(e.f.BitwiseOr(low, e.get(e.f.ShiftLeft(high, e.number(dtypes.Uint8, float64(n))))))
}

// nibbles are the low halves of the bytes and then the high ones.
func (e *expansion) nibbles(b *Node) *Node { return e.joined(2, e.bits(b, 0, 4), e.bits(b, 4, 4)) }

func (e *expansion) joined(axis int, parts ...*Node) *Node {
	list := make([]compute.Value, len(parts))
	for i, p := range parts {
		list[i] = p
	}
	return e.get(e.f.Concatenate(axis, list...))
}

func (e *expansion) float(x *Node) *Node { return e.get(e.f.ConvertDType(x, dtypes.Float32)) }

// shifted is bytes as numbers, less n.
func (e *expansion) shifted(x *Node, n float64) *Node {
	return e.get(e.f.Sub(e.float(x), e.number(dtypes.Float32, n)))
}
