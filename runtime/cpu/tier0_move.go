package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
)

// Operands that are neither dense nor constant are gathered and scattered. A block is split into
// rows: points that differ in the last dim only. Along a row an operand's position advances by a
// fixed step, also through a stage of its view as long as no dim of the stage overflows. So all
// work is done in runs: a first position, a step, a length.

// Kinds of moves.
const (
	gather  = iota // from an operand into a dense block
	scatter        // from a dense block to an operand
	posLo          // positions, low halves
	posHi
	positions // positions in bytes, 64 bits each
)

type mover struct {
	o         *operand
	buf       unsafe.Pointer
	how, size int
}

// move copies n elements, the first at point at, between an operand and a dense block.
func move(a *args, o *operand, how, size int, at *[runtime.MaxRank]int64, n int64, buf unsafe.Pointer) {
	m := mover{o, buf, how, size}
	last := a.rank - 1
	if last < 0 {
		m.staged(0, o.offset, 0, n, 0)
		return
	}
	idx, row := *at, o.offset
	for d := range last {
		row += at[d] * o.stride[d]
	}
	outer, inner := o.guard&^(1<<last), o.guard>>last&1 != 0
	col, step := at[last], o.stride[last]
	for to := int64(0); to < n; {
		length := min(a.dims[last]-col, n-to)
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
			row += o.stride[d]
			if idx[d]++; idx[d] < a.dims[d] {
				break
			}
			row -= idx[d] * o.stride[d]
			idx[d] = 0
		}
	}
}

// staged splits a run of n elements, from pos on with the given step, where a dim of a stage
// overflows.
func (m *mover) staged(stage int, pos, step, n, to int64) {
	if stage == len(m.o.stages) {
		m.run(pos, step, n, to)
		return
	}
	s := &m.o.stages[stage]
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
	case gather, scatter:
		mem := unsafe.Add(m.o.base, pos*int64(m.size))
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
	case positions:
		for i, b := int64(0), unsafe.Slice((*int64)(m.buf), to+n)[to:]; i < n; i++ {
			b[i] = (pos + i*step) * int64(m.size)
		}
	default:
		shift := 0
		if m.how == posHi {
			shift = 32
		}
		for i, b := int64(0), unsafe.Slice((*uint32)(m.buf), to+n)[to:]; i < n; i++ {
			b[i] = uint32(uint64(pos+i*step) >> shift)
		}
	}
}

func moveRun[T uint8 | uint16 | uint32 | uint64](how int, mem, blk unsafe.Pointer, step, n int64) {
	b := unsafe.Slice((*T)(blk), n)
	switch {
	case step == 1 && how == gather:
		copy(b, unsafe.Slice((*T)(mem), n))
	case step == 1:
		copy(unsafe.Slice((*T)(mem), n), b)
	case how == gather:
		for i := range b {
			b[i] = *(*T)(unsafe.Add(mem, int64(i)*step*int64(unsafe.Sizeof(b[0]))))
		}
	default:
		for i := range b {
			*(*T)(unsafe.Add(mem, int64(i)*step*int64(unsafe.Sizeof(b[0])))) = b[i]
		}
	}
}
