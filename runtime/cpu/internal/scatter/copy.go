package scatter

import (
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// rowCopy copies the operand to the output. The output is dense: sorted by stride, its dims are
// row-major.
type rowCopy struct {
	rank     int
	dims     [runtime.MaxRank + 1]int64
	from, to [runtime.MaxRank + 1]int64
	size     int64
	src, dst unsafe.Pointer
}

// plan finds the dims to copy, and returns the number of rows.
func (c *rowCopy) plan(s *Job) int64 {
	in, out := &s.Args.Ops[s.From], &s.Args.Ops[s.To]
	if out.IndexSize == 0 {
		return 0
	}
	*c = rowCopy{size: s.DType.Size}
	c.src, c.dst = unsafe.Add(in.Base, in.Offset*c.size), unsafe.Add(out.Base, out.Offset*c.size)
	add := func(n, from, to int64) {
		if n == 1 || to == 0 { // a reduced dim
			return
		}
		d := c.rank
		for c.rank++; d > 0 && c.to[d-1] < to; d-- {
			c.dims[d], c.to[d], c.from[d] = c.dims[d-1], c.to[d-1], c.from[d-1]
		}
		c.dims[d], c.to[d], c.from[d] = n, to, from
	}
	for d := range s.Args.Rank {
		add(s.Args.Dims[d], in.Stride[d], out.Stride[d])
	}
	add(out.IndexSize, in.IndexStride, out.IndexStride)
	if c.rank == 0 {
		c.rank, c.dims[0], c.from[0], c.to[0] = 1, 1, 1, 1
	}
	c.merge()
	n := int64(1)
	for _, d := range c.dims[:c.rank-1] {
		n *= d
	}
	return n
}

// merge merges dims in which both sides are dense.
func (c *rowCopy) merge() {
	for c.rank > 1 {
		a, b := c.rank-2, c.rank-1
		if c.to[a] != c.to[b]*c.dims[b] || c.from[a] != c.from[b]*c.dims[b] {
			return
		}
		c.dims[a] *= c.dims[b]
		c.to[a], c.from[a] = c.to[b], c.from[b]
		c.rank--
	}
}

// neighbours reports that a row is dense on both sides.
func (c *rowCopy) neighbours() bool { return c.from[c.rank-1] == 1 && c.to[c.rank-1] == 1 }

// rows copies rows [begin, end).
func (c *rowCopy) rows(begin, end int64) {
	last := c.rank - 1
	for row := begin; row < end; row++ {
		from, to, at := int64(0), int64(0), row
		for d := last - 1; d >= 0; d-- {
			from += at % c.dims[d] * c.from[d]
			to += at % c.dims[d] * c.to[d]
			at /= c.dims[d]
		}
		src, dst := unsafe.Add(c.src, from*c.size), unsafe.Add(c.dst, to*c.size)
		switch n := c.dims[last]; {
		case c.neighbours():
			memory.Copy(dst, src, n*c.size)
		case c.size == 1:
			copyApart[uint8](dst, src, n, c.to[last], c.from[last])
		case c.size == 2:
			copyApart[uint16](dst, src, n, c.to[last], c.from[last])
		case c.size == 4:
			copyApart[uint32](dst, src, n, c.to[last], c.from[last])
		default:
			copyApart[uint64](dst, src, n, c.to[last], c.from[last])
		}
	}
}

func copyApart[T any](to, from unsafe.Pointer, n, toStep, fromStep int64) {
	for i := range n {
		*memory.At[T](to, i*toStep) = *memory.At[T](from, i*fromStep)
	}
}
