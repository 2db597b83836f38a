package operands

import (
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
)

// Operands that are neither dense nor constant are gathered and scattered. A block is split into
// rows: points that differ in the last dim only. Along a row an operand's position advances by a
// fixed step, also through a stage of its view as long as no dim of the stage overflows. So all
// work is done in runs: a first position, a step, a length.

// Kind names the work of a Move.
type Kind uint8

const (
	Gather    Kind = iota // copies elements from an operand into a dense block
	Scatter               // copies elements from a dense block to an operand
	PosLo                 // writes the low halves of the operand's positions, 32 bits each
	PosHi                 // writes the high halves
	Positions             // writes positions in bytes, 64 bits each
)

type mover struct {
	o    *Operand
	buf  unsafe.Pointer
	how  Kind
	size int
}

// Line writes the halves of the positions first, first+1, and so on: those of an operand without
// gaps.
func Line(how Kind, first, n int64, buf unsafe.Pointer) {
	m := mover{buf: buf, how: how}
	m.run(first, 1, n, 0)
}

// Move handles n elements of an operand, the first at point at, and a dense block. size is that of
// an element.
func (a *Args) Move(how Kind, o *Operand, size int, at *[runtime.MaxRank]int64, n int64, buf unsafe.Pointer) {
	m := mover{o, buf, how, size}
	last := a.Rank - 1
	if last < 0 {
		m.staged(0, o.Offset, 0, n, 0)
		return
	}
	idx, row := *at, o.Offset
	for d := range last {
		row += at[d] * o.Stride[d]
	}
	outer, inner := o.Guard&^(1<<last), o.Guard>>last&1 != 0
	col, step := at[last], o.Stride[last]
	for to := int64(0); to < n; {
		length := min(a.Dims[last]-col, n-to)
		skip := false
		for d := range last {
			skip = skip || outer>>d&1 != 0 && idx[d] > 0
		}
		switch {
		case skip:
		case !inner:
			m.staged(0, row+col*step, step, length, to)
		case col == 0:
			m.staged(0, row, 0, 1, to)
		}
		to += length
		col = 0
		for d := last - 1; d >= 0; d-- {
			row += o.Stride[d]
			if idx[d]++; idx[d] < a.Dims[d] {
				break
			}
			row -= idx[d] * o.Stride[d]
			idx[d] = 0
		}
	}
}

// staged splits a run of n elements, from pos on with the given step, where a dim of a stage
// overflows.
func (m *mover) staged(stage int, pos, step, n, to int64) {
	if stage == len(m.o.Stages) {
		m.run(pos, step, n, to)
		return
	}
	s := &m.o.Stages[stage]
	dim, by := len(s.Dims)-1, step // the innermost dim that moves, and by how much
	for dim > 0 && by%s.Dims[dim] == 0 {
		by /= s.Dims[dim]
		dim--
	}
	for n > 0 {
		left, out, length, stride := pos, s.Offset, n, int64(0)
		for d := len(s.Dims) - 1; d >= 0; d-- {
			i := left
			if d > 0 {
				i, left = left%s.Dims[d], left/s.Dims[d]
			}
			out += i * s.Stride[d]
			if d != dim || by == 0 {
				continue
			}
			if by > 0 {
				length = (s.Dims[d]-1-i)/by + 1
			} else {
				length = i/-by + 1
			}
			stride = by * s.Stride[d]
		}
		length = min(length, n)
		if pos < 0 || length < 1 {
			length = 1 // outside of the stage, as behind a guard: positions there have no fixed step
		}
		m.staged(stage+1, out, stride, length, to)
		pos += length * step
		to += length
		n -= length
	}
}

func (m *mover) run(pos, step, n, to int64) {
	switch m.how {
	case Gather, Scatter:
		mem := unsafe.Add(m.o.Base, pos*int64(m.size))
		blk := unsafe.Add(m.buf, to*int64(m.size))
		switch m.size {
		case 1:
			moveRun[uint8](m.how, mem, blk, step, n)
		case 2:
			moveRun[uint16](m.how, mem, blk, step, n)
		case 4:
			moveRun[uint32](m.how, mem, blk, step, n)
		default:
			moveRun[uint64](m.how, mem, blk, step, n)
		}
	case Positions:
		for i, b := int64(0), unsafe.Slice((*int64)(m.buf), to+n)[to:]; i < n; i++ {
			b[i] = (pos + i*step) * int64(m.size)
		}
	default:
		shift := 0
		if m.how == PosHi {
			shift = 32
		}
		for i, b := int64(0), unsafe.Slice((*uint32)(m.buf), to+n)[to:]; i < n; i++ {
			b[i] = uint32(uint64(pos+i*step) >> shift)
		}
	}
}

func moveRun[T uint8 | uint16 | uint32 | uint64](how Kind, mem, blk unsafe.Pointer, step, n int64) {
	b := unsafe.Slice((*T)(blk), n)
	switch {
	case step == 1 && how == Gather:
		copy(b, unsafe.Slice((*T)(mem), n))
	case step == 1:
		copy(unsafe.Slice((*T)(mem), n), b)
	case how == Gather:
		for i := range b {
			b[i] = *(*T)(unsafe.Add(mem, int64(i)*step*int64(unsafe.Sizeof(b[0]))))
		}
	default:
		for i := range b {
			*(*T)(unsafe.Add(mem, int64(i)*step*int64(unsafe.Sizeof(b[0])))) = b[i]
		}
	}
}
