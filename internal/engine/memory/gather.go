package memory

import (
	"slices"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// gather reads a box whose memory is not dense. It reads the range of the buffer that the box
// touches, and the host picks the elements. to holds the strides of the elements in dst, one for
// each dimension. A wide range is read in halves, which bounds the host memory for the bytes
// between the elements. room is the host memory of the previous call, for reuse.
func gather(d *device.Base, dst []byte, to []int64, dt ir.DType, buf runtime.Buffer, b Box, room *[]byte) error {
	size := int64(dt.Size())
	lo, hi := extent(&b.View, b.Shape)
	if (hi-lo+1)*size > rawChunk && len(b.View.Stages) == 0 && hi > lo {
		wide, reach := 0, int64(0) // the dimension whose ends are farthest apart
		for k, n := range b.Shape {
			if far := max(b.View.Stride[k], -b.View.Stride[k]) * int64(n-1); far > reach {
				wide, reach = k, far
			}
		}
		first, rest := Box{slices.Clone(b.Shape), b.View}, Box{slices.Clone(b.Shape), b.View}
		half := b.Shape[wide] / 2
		first.Shape[wide], rest.Shape[wide] = half, b.Shape[wide]-half
		rest.View.Offset += int64(half) * b.View.Stride[wide]
		if err := gather(d, dst, to, dt, buf, first, room); err != nil {
			return err
		}
		return gather(d, dst[int64(half)*to[wide]*size:], to, dt, buf, rest, room)
	}
	*room = slices.Grow((*room)[:0], int((hi-lo+1)*size))
	src := (*room)[:(hi-lo+1)*size]
	if err := d.Driver.Read(src, dt, buf, lo); err != nil {
		return err
	}
	var at [ir.MaxRank]int
	rank := len(b.Shape)
	for range b.Shape.Elems() {
		from, into := (Address(&b.View, at[:rank])-lo)*size, int64(0)
		for k, i := range at[:rank] {
			into += int64(i) * to[k]
		}
		copy(dst[into*size:][:size], src[from:])
		for k := rank - 1; k >= 0; k-- {
			if at[k]++; at[k] < b.Shape[k] {
				break
			}
			at[k] = 0
		}
	}
	return nil
}

// Address is the element of the buffer that a view maps an index to.
func Address(w *fusion.View, at []int) int64 {
	p := w.Offset
	for k, i := range at {
		p += int64(i) * w.Stride[k]
	}
	for _, stage := range w.Stages {
		q := stage.Offset
		for k := len(stage.Dims) - 1; k >= 0; k-- {
			q += p % stage.Dims[k] * stage.Stride[k]
			p /= stage.Dims[k]
		}
		p = q
	}
	return p
}

// extent is the range of elements that a view can touch.
func extent(w *fusion.View, shape ir.Shape) (lo, hi int64) {
	span := func(off int64, dims func(k int) int64, stride []int64) (lo, hi int64) {
		lo, hi = off, off
		for k, st := range stride {
			if d := (dims(k) - 1) * st; d < 0 {
				lo += d
			} else {
				hi += d
			}
		}
		return lo, hi
	}
	if n := len(w.Stages); n > 0 {
		last := w.Stages[n-1]
		return span(last.Offset, func(k int) int64 { return last.Dims[k] }, last.Stride)
	}
	return span(w.Offset, func(k int) int64 { return int64(shape[k]) }, w.Stride)
}
