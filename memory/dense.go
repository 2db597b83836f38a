package memory

import (
	"errors"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/device"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Tensors that lie in memory in another order are made dense by the device that
// holds them: it walks strides with all its threads, and only what is asked for
// crosses over to the host.

// DenseCopy is a tensor that is in memory, dense in memory of its own, with one
// reader. collect is as for Alloc.
func (m *Pool) DenseCopy(t *segment.Tensor, st *Storage, collect bool) (*Block, error) {
	b, err := m.Alloc(m.Bytes(t.DT, t.Shape), collect)
	if err != nil {
		return nil, err
	}
	err = m.copyBox(b, t.DT, st, Box{t.Shape, st.Layout()})
	if err != nil && !device.Gone(err) {
		m.Counts.Fallbacks.Add(1)
		m.OnError(err)
		var data []byte
		if data, err = m.Fetch(t.DT, t.Shape, st); err == nil {
			err = m.Driver.Write(b.Buf, t.DT, 0, data)
		}
	}
	if err != nil {
		b.Release()
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
func (m *Pool) copyBox(to *Block, dt ir.DType, st *Storage, b Box) error {
	l, err := m.copying(to, dt, st, b)
	if err != nil {
		return err
	}
	l.Copies = true
	return m.Launch([]runtime.Launch{l}, nil, device.Submitter{})
}

// CopyLaunch is a launch that copies a tensor to the beginning of a block, densely.
func (m *Pool) CopyLaunch(to *Block, dt ir.DType, shape ir.Shape, st *Storage) (runtime.Launch, error) {
	return m.copying(to, dt, st, Box{shape, st.Layout()})
}

func (m *Pool) copying(to *Block, dt ir.DType, st *Storage, b Box) (runtime.Launch, error) {
	prog, _, err := m.Program(copyKernel(dt), 0)
	if err != nil {
		return runtime.Launch{}, err
	}
	rank := len(b.Shape)
	l := runtime.Launch{Prog: prog, Rank: rank, Kept: rank, Args: []runtime.Access{
		{Buf: st.Buf, Offset: b.View.Offset, Stages: b.View.Stages}, {Buf: to.Buf},
	}}
	from, dense := b.View.Stride, rowMajor(b.Shape)
	if from == nil {
		from = dense
	}
	for k, n := range b.Shape {
		l.Dims[k] = int64(n)
		l.Args[0].Stride[k], l.Args[1].Stride[k] = from[k], dense[k]
	}
	l.Collapse([]int{1})
	return l, nil
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
func (m *Pool) direct(view *fusion.View, dt ir.DType, shape ir.Shape) bool {
	lo, hi := extent(view, shape)
	return 16e-9*float64(shape.Elems())+1e-9*float64(hi-lo+1)*float64(dt.Size()) <= 3*m.Caps.LaunchCost
}

// densing reads one tensor that lies in another order than its elements'.
type densing struct {
	m      *Pool
	dt     ir.DType
	shape  ir.Shape
	st     *Storage
	room   *Block // of the device, for a piece; nil: pieces are taken apart on the host
	pieces int    // elements of a piece, at most
	host   []byte // where pieces are taken apart
}

// dense prepares the reading of a tensor that is in memory. It is nil where there is
// nothing to be done but to read from element off on.
func (m *Pool) dense(dt ir.DType, shape ir.Shape, st *Storage) (r *densing, off int64) {
	if st.View == nil || shape.Elems() == 0 {
		return nil, 0
	}
	if off, ok := inOrder(st.View, shape); ok {
		return nil, off
	}
	size := int64(m.Caps.ElemSize[dt])
	r = &densing{m: m, dt: dt, shape: shape, st: st, pieces: int(pieceBytes / size)}
	if m.direct(st.View, dt, shape) {
		return r, 0
	}
	for bytes := min(pieceBytes, m.Bytes(dt, shape)); ; bytes /= 2 {
		var err error
		if r.room, err = m.Alloc(bytes, false); err == nil {
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
	r.m.Counts.Fallbacks.Add(1)
	r.m.OnError(err)
}

func (r *densing) drop() {
	if r.room != nil {
		r.room.Release()
		r.room = nil
	}
}

// each gives use the pieces of the tensor, which lie one behind the other from element at on.
func (r *densing) each(use func(at int64, b Box) error) error {
	defer r.drop()
	return EachBox(r.shape, r.st.Layout(), r.pieces, use)
}

// read reads a piece.
func (r *densing) read(part []byte, b Box) error {
	if r.room != nil {
		err := r.m.copyBox(r.room, r.dt, r.st, b)
		if err == nil {
			return r.m.Driver.Read(part, r.dt, r.room.Buf, 0)
		}
		if device.Gone(err) {
			return err
		}
		r.unable(err)
	}
	return gather(r.m.Base, part, rowMajor(b.Shape), r.dt, r.st.Buf, b, &r.host)
}

// ReadDense reads a tensor that is in memory, dense and row-major as Go holds it.
func (m *Pool) ReadDense(dst []byte, dt ir.DType, shape ir.Shape, st *Storage) error {
	if len(dst) == 0 {
		return nil
	}
	r, off := m.dense(dt, shape, st)
	if r == nil {
		return m.Driver.Read(dst, dt, st.Buf, off)
	}
	size := int64(dt.Size())
	return r.each(func(at int64, b Box) error {
		return r.read(dst[at*size:][:int64(b.Shape.Elems())*size], b)
	})
}

// EachDense is readDense a part at a time: use is given them one behind the other, in
// memory that is used again.
func (m *Pool) EachDense(dt ir.DType, shape ir.Shape, st *Storage, use func(at int64, part []byte) error) error {
	n, size := int64(shape.Elems()), int64(dt.Size())
	chunk := make([]byte, min(n*size, pieceBytes))
	r, off := m.dense(dt, shape, st)
	if r != nil {
		return r.each(func(at int64, b Box) error {
			part := chunk[:int64(b.Shape.Elems())*size]
			if err := r.read(part, b); err != nil {
				return err
			}
			return use(at, part)
		})
	}
	for at := int64(0); at < n; {
		part := chunk[:min(int64(len(chunk)), (n-at)*size)]
		if err := m.Driver.Read(part, dt, st.Buf, off+at); err != nil {
			return err
		}
		if err := use(at, part); err != nil {
			return err
		}
		at += int64(len(part)) / size
	}
	return nil
}

// Fetch is readDense into new memory.
func (m *Pool) Fetch(dt ir.DType, shape ir.Shape, st *Storage) ([]byte, error) {
	data := make([]byte, shape.Elems()*dt.Size())
	return data, m.ReadDense(data, dt, shape, st)
}
