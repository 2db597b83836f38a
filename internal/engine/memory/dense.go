package memory

import (
	"errors"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// The device makes a tensor dense if its memory has another order: the device walks the strides
// with all its threads, and only the requested elements are copied to the host.

// DenseCopy copies a stored tensor to a new dense block with one reader. For collect see Alloc.
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

// copyKernel is a kernel that loads an element and stores it.
func copyKernel(dt ir.DType) *codegen.Kernel {
	return &codegen.Kernel{
		Operands: []codegen.Operand{{Kind: codegen.Input, DT: dt}, {Kind: codegen.Output, DT: dt}},
		Body:     []ir.Instr{{Op: ir.Load, DT: dt, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}},
		Stores:   []codegen.Store{{Operand: 1, Value: 0}},
	}
}

// copyBox copies a box of st densely to the start of a block, on the device. No other job may be
// about to write either of them.
func (m *Pool) copyBox(to *Block, dt ir.DType, st *Storage, b Box) error {
	l, err := m.copying(to, dt, st, b)
	if err != nil {
		return err
	}
	l.Copies = true
	return m.Launch([]runtime.Launch{l}, nil, device.Submitter{})
}

// CopyLaunch returns a launch that copies a tensor densely to the start of a block.
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
	// pieceBytes is the size of the pieces that are made dense one at a time: large enough for
	// several threads, small enough to stay in cache until the host reads it.
	pieceBytes int64 = 1 << 20
	// leastPiece is the size to try when the device has no room for more.
	leastPiece int64 = 64 << 10
)

// direct reports whether the host gathers the view's elements in less time than the device needs to
// begin. The host takes about 16 ns per element and 1 ns per byte of the range that the elements
// span. The device needs a launch, memory for the result and another read.
func (m *Pool) direct(view *fusion.View, dt ir.DType, shape ir.Shape) bool {
	lo, hi := extent(view, shape)
	return 16e-9*float64(shape.Elems())+1e-9*float64(hi-lo+1)*float64(dt.Size()) <= 3*m.Caps.LaunchCost
}

// densing reads one tensor whose memory is not in row-major order.
type densing struct {
	m      *Pool
	dt     ir.DType
	shape  ir.Shape
	st     *Storage
	room   *Block // device memory for one piece; nil: the host gathers the pieces
	pieces int    // most elements of a piece
	host   []byte // memory in which the host gathers pieces
}

// dense prepares the reading of a stored tensor. It returns nil if the elements are already in
// order; they then start at element off.
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

// unable frees the device memory, which makes the host gather the remaining pieces, and counts the
// fallback.
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

// each calls use for the pieces of the tensor in row-major order; at is the first element of the
// piece.
func (r *densing) each(use func(at int64, b Box) error) error {
	defer r.drop()
	return EachBox(r.shape, r.st.Layout(), r.pieces, use)
}

// read reads one piece into part.
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

// ReadDense reads a stored tensor into dst: dense, row-major and in the host's element format.
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

// InPlace returns the memory of a stored tensor if the host can use it as ReadDense would read it, and
// otherwise nil.
func (m *Pool) InPlace(dt ir.DType, shape ir.Shape, st *Storage) []byte {
	l, ok := m.Driver.(runtime.Lender)
	if !ok {
		return nil
	}
	off := int64(0)
	if st.View != nil {
		if off, ok = inOrder(st.View, shape); !ok {
			return nil
		}
	}
	mem, size := l.Lend(st.Buf), int64(dt.Size())
	if n := int64(shape.Elems()); off >= 0 && (off+n)*size <= int64(len(mem)) {
		return mem[off*size:][:n*size]
	}
	return nil
}

// Abandon says that something else may use the memory of buffers for ever.
func (m *Pool) Abandon(list ...runtime.Buffer) {
	if l, ok := m.Driver.(runtime.Lender); ok {
		for _, b := range list {
			l.Abandon(b)
		}
	}
}

// EachDense is ReadDense in parts. It passes the parts to use in row-major order, all in the same
// memory.
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

// Fetch is ReadDense into new memory.
func (m *Pool) Fetch(dt ir.DType, shape ir.Shape, st *Storage) ([]byte, error) {
	data := make([]byte, shape.Elems()*dt.Size())
	return data, m.ReadDense(data, dt, shape, st)
}
