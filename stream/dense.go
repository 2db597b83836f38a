package stream

import (
	"errors"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Tensors that lie in memory in another order are made dense by the device that
// holds them: it walks strides with all its threads, and only what is asked for
// crosses over to the host.

// densify replaces an operand of the segment that is about to be bound by a
// dense copy. It is for the few plans that cannot read what lies as no strides
// describe, and counts as a fallback.
func (s *Stream) densify(seg *segment.Segment, id int) error {
	d, st, t := s.dev, s.work.mem[id], &seg.Tensors[id]
	st.written().wait()
	if e := st.fault.Load(); e != nil {
		return e
	}
	b, err := d.denseCopy(t, st, true)
	if err != nil {
		return err
	}
	d.stats.fallbacks.Add(1)
	s.work.mem[id] = &b.dense
	s.work.owned = append(s.work.owned, int32(id)) // released with the plan's own
	s.work.reads = append(s.work.reads, b)
	return nil
}

// denseCopy is a tensor that is in memory, dense in memory of its own, with one
// reader. collect is as for memory.alloc.
func (d *Device) denseCopy(t *segment.Tensor, st *storage, collect bool) (*block, error) {
	b, err := d.mem.alloc(d.bytes(t.DT, t.Shape), collect)
	if err != nil {
		return nil, err
	}
	err = d.copyBox(b, t.DT, st, box{t.Shape, st.layout()})
	if err != nil && !gone(err) {
		d.stats.fallbacks.Add(1)
		d.onError(err)
		var data []byte
		if data, err = d.fetch(t.DT, t.Shape, st); err == nil {
			err = d.drv.Write(b.buf, t.DT, 0, data)
		}
	}
	if err != nil {
		b.release()
		return nil, err
	}
	return b, nil
}

// copyKernel stores what it loads.
func copyKernel(dt ir.DType) *codegen.Kernel {
	return &codegen.Kernel{
		Operands: []codegen.Operand{{Kind: codegen.Input, DT: dt}, {Kind: codegen.Output, DT: dt}},
		Body:     []ir.Instr{{Op: ir.Load, DT: dt, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}},
		Stores:   []codegen.Store{{Operand: 1, Value: 0}},
	}
}

// copyBox has the device copy a box of st to the beginning of a block, densely.
// Nothing else may be about to write either.
func (d *Device) copyBox(to *block, dt ir.DType, st *storage, b box) error {
	prog, _, err := d.program(copyKernel(dt), 0)
	if err != nil {
		return err
	}
	rank := len(b.shape)
	// No compiler: there is nothing to compute, and the interpreter moves whole rows.
	l := runtime.Launch{Prog: prog, Rank: rank, Kept: rank, Provisional: true, Args: []runtime.Access{
		{Buf: st.buf, Offset: b.view.Offset, Stages: b.view.Stages}, {Buf: to.buf},
	}}
	from, dense := b.view.Stride, rowMajor(b.shape)
	if from == nil {
		from = dense
	}
	for k, n := range b.shape {
		l.Dims[k] = int64(n)
		l.Args[0].Stride[k], l.Args[1].Stride[k] = from[k], dense[k]
	}
	l.Collapse([]int{1})
	return d.drv.Run([]runtime.Launch{l})
}

const (
	// pieceBytes are made dense at a time: enough for several threads, and read while
	// they lie in a cache.
	pieceBytes int64 = 1 << 20
	// leastPiece is what is asked for where a device has no room for more.
	leastPiece int64 = 64 << 10
)

// direct reports a view that is taken apart on the host in less time than the device
// takes to begin: some 16 ns for an element, and 1 ns for a byte that its elements
// lie among, against a launch, memory for what it writes, and another read.
func (d *Device) direct(view *fusion.View, dt ir.DType, shape ir.Shape) bool {
	lo, hi := extent(view, shape)
	return 16e-9*float64(shape.Elems())+1e-9*float64(hi-lo+1)*float64(dt.Size()) <= 3*d.caps.LaunchCost
}

// densing reads one tensor that lies in another order than its elements'.
type densing struct {
	d      *Device
	dt     ir.DType
	shape  ir.Shape
	st     *storage
	room   *block // of the device, for a piece; nil: pieces are taken apart on the host
	pieces int    // elements of a piece, at most
	host   []byte // where pieces are taken apart
}

// dense prepares the reading of a tensor that is in memory. It is nil where there is
// nothing to be done but to read from element off on.
func (d *Device) dense(dt ir.DType, shape ir.Shape, st *storage) (r *densing, off int64) {
	if st.view == nil || shape.Elems() == 0 {
		return nil, 0
	}
	if off, ok := inOrder(st.view, shape); ok {
		return nil, off
	}
	size := int64(d.caps.ElemSize[dt])
	r = &densing{d: d, dt: dt, shape: shape, st: st, pieces: int(pieceBytes / size)}
	if d.direct(st.view, dt, shape) {
		return r, 0
	}
	for bytes := min(pieceBytes, d.bytes(dt, shape)); ; bytes /= 2 {
		var err error
		if r.room, err = d.mem.alloc(bytes, false); err == nil {
			r.pieces = int(bytes / size)
			return r, 0
		}
		if !errors.Is(err, runtime.ErrOutOfMemory) || bytes <= leastPiece {
			r.unable(err)
			return r, 0
		}
	}
}

// unable has the rest taken apart on the host.
func (r *densing) unable(err error) {
	r.drop()
	r.d.stats.fallbacks.Add(1)
	r.d.onError(err)
}

func (r *densing) drop() {
	if r.room != nil {
		r.room.release()
		r.room = nil
	}
}

// each gives use the pieces of the tensor, which lie one behind the other from element at on.
func (r *densing) each(use func(at int64, b box) error) error {
	defer r.drop()
	return eachBox(r.shape, r.st.layout(), r.pieces, use)
}

// read reads a piece.
func (r *densing) read(part []byte, b box) error {
	if r.room != nil {
		err := r.d.copyBox(r.room, r.dt, r.st, b)
		if err == nil {
			return r.d.drv.Read(part, r.dt, r.room.buf, 0)
		}
		if gone(err) {
			return err
		}
		r.unable(err)
	}
	return gather(r.d, part, rowMajor(b.shape), r.dt, r.st.buf, b, &r.host)
}

// readDense reads a tensor that is in memory, dense and row-major as Go holds it.
func (d *Device) readDense(dst []byte, dt ir.DType, shape ir.Shape, st *storage) error {
	if len(dst) == 0 {
		return nil
	}
	r, off := d.dense(dt, shape, st)
	if r == nil {
		return d.drv.Read(dst, dt, st.buf, off)
	}
	size := int64(dt.Size())
	return r.each(func(at int64, b box) error {
		return r.read(dst[at*size:][:int64(b.shape.Elems())*size], b)
	})
}

// eachDense is readDense a part at a time: use is given them one behind the other, in
// memory that is used again.
func (d *Device) eachDense(dt ir.DType, shape ir.Shape, st *storage, use func(at int64, part []byte) error) error {
	n, size := int64(shape.Elems()), int64(dt.Size())
	chunk := make([]byte, min(n*size, pieceBytes))
	r, off := d.dense(dt, shape, st)
	if r != nil {
		return r.each(func(at int64, b box) error {
			part := chunk[:int64(b.shape.Elems())*size]
			if err := r.read(part, b); err != nil {
				return err
			}
			return use(at, part)
		})
	}
	for at := int64(0); at < n; {
		part := chunk[:min(int64(len(chunk)), (n-at)*size)]
		if err := d.drv.Read(part, dt, st.buf, off+at); err != nil {
			return err
		}
		if err := use(at, part); err != nil {
			return err
		}
		at += int64(len(part)) / size
	}
	return nil
}

// fetch is readDense into new memory.
func (d *Device) fetch(dt ir.DType, shape ir.Shape, st *storage) ([]byte, error) {
	data := make([]byte, shape.Elems()*dt.Size())
	return data, d.readDense(data, dt, shape, st)
}

// box is a part of a tensor, and where its elements are in memory.
type box struct {
	shape ir.Shape
	view  fusion.View
}

// eachBox cuts a tensor into boxes of at most so many elements that are neighbours in
// row-major order, and gives them in that order; at counts the elements before.
func eachBox(shape ir.Shape, view fusion.View, most int, use func(at int64, b box) error) error {
	cut, inner := len(shape), 1 // dims from cut on fit whole
	for cut > 0 && inner*shape[cut-1] <= most {
		cut--
		inner *= shape[cut]
	}
	if cut == 0 {
		return use(0, box{shape, view})
	}
	cut--
	fit := max(most/inner, 1)
	n := (shape[cut] + fit - 1) / fit // boxes along that dim, of about one size
	step := (shape[cut] + n - 1) / n
	b := box{append(ir.Shape{}, shape...), view}
	for k := range cut {
		b.shape[k] = 1
	}
	var start [ir.MaxRank]int
	for at, end := int64(0), int64(shape.Elems()); at < end; {
		b.shape[cut] = min(step, shape[cut]-start[cut])
		b.view.Offset = view.Offset
		for k, i := range start[:cut+1] {
			b.view.Offset += int64(i) * view.Stride[k]
		}
		if err := use(at, b); err != nil {
			return err
		}
		at += int64(b.shape[cut] * inner)
		start[cut] += b.shape[cut]
		for k := cut; k > 0 && start[k] == shape[k]; k-- {
			start[k] = 0
			start[k-1]++
		}
	}
	return nil
}
