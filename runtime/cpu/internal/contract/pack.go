package contract

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
	"github.com/millrace-go/millrace/runtime/cpu/internal/replay"
)

// element returns the address of element (i, p) of a side in memory.
func (j *job) element(s *Side, batch, i, p int64) unsafe.Pointer {
	return unsafe.Add(s.Base, (j.c.offset(s.Batch, batch)+i*s.Stride+p*s.KStride)*j.size)
}

// loadX writes rows [i, i+rows) of x, k steps [p, p+k), to dst, whose rows are blockK elements
// apart.
func (j *job) loadX(own unsafe.Pointer, batch, i, rows, p, k int64, dst unsafe.Pointer) {
	s := &j.x
	switch s.Kind {
	case Memory:
		src := j.element(s, batch, i, p)
		if s.KStride == 1 {
			if j.c.Tape != nil {
				j.recordRows(operands.Own(dst), blockK*j.size, operands.Pointer{P: src, Operand: s.Operand}, s.Stride*j.size, rows, k*j.size)
			}
			for r := range rows {
				copy(unsafe.Slice((*byte)(unsafe.Add(dst, r*blockK*j.size)), k*j.size), unsafe.Slice((*byte)(unsafe.Add(src, r*s.Stride*j.size)), k*j.size))
			}
			return
		}
		j.turn(dst, blockK, 1, src, s.Operand, s.KStride, s.Stride, k, rows)
	case AlongK:
		const step = maxFill / blockK
		for r := int64(0); r < rows; r += step {
			j.c.fill(s, batch, i+r, i+min(r+step, rows), p, p+k, unsafe.Add(dst, r*blockK*j.size), blockK)
		}
	default:
		const wide = maxFill / fillStep
		stage := unsafe.Add(own, j.atStage)
		for r := int64(0); r < rows; r += wide {
			w := min(wide, rows-r)
			step := maxFill / w &^ (fillStep - 1)
			for q := int64(0); q < k; q += step {
				kq := min(step, k-q)
				j.c.fill(s, batch, i+r, i+r+w, p+q, p+q+kq, stage, w)
				j.turn(unsafe.Add(dst, (r*blockK+q)*j.size), blockK, 1, stage, operands.NoOperand, w, 1, kq, w)
			}
		}
	}
}

// loadY writes columns [i, i+cols) of y, k steps [p, p+k), to dst as panels: kc rows of nr columns
// each. The last panel is filled up with zeros.
func (j *job) loadY(own unsafe.Pointer, batch, i, cols, p, k int64, dst unsafe.Pointer) {
	j.panelsInto(own, batch, i, cols, p, k, dst, j.kc*j.nr*j.size)
}

// loadPiece is loadY of one panel that may have fewer rows.
func (j *job) loadPiece(own unsafe.Pointer, batch, i, cols, p, k int64, dst unsafe.Pointer) {
	j.panelsInto(own, batch, i, cols, p, k, dst, 0)
}

func (j *job) panelsInto(own unsafe.Pointer, batch, i, cols, p, k int64, dst unsafe.Pointer, panel int64) {
	s := &j.y
	stage := unsafe.Add(own, j.atStage)
	switch {
	case s.Kind == Memory && s.Stride == 1:
		j.toPanels(dst, panel, k, cols, j.element(s, batch, i, p), s.Operand, s.KStride)
	case s.Kind == AlongI && s.Walk != nil:
		s.Walk.panels(j.c, &walkOver{batch, p, p + k, i, i + cols, dst, j.nr, j.nr, panel / j.size})
	case s.Kind == AlongI:
		wide := min(cols, maxFill/fillStep/j.nr*j.nr)
		step := maxFill / wide &^ (fillStep - 1)
		for f := int64(0); f < cols; f += wide {
			w := min(wide, cols-f)
			for q := int64(0); q < k; q += step {
				kq := min(step, k-q)
				j.c.fill(s, batch, i+f, i+f+w, p+q, p+q+kq, stage, w)
				j.toPanels(unsafe.Add(dst, f/j.nr*panel+q*j.nr*j.size), panel, kq, w, stage, operands.NoOperand, w)
			}
		}
	default:
		step := maxFill / j.nr &^ (fillStep - 1)
		for f := int64(0); f < cols; f += j.nr {
			w, to := min(j.nr, cols-f), unsafe.Add(dst, f/j.nr*panel)
			if s.Kind == Memory {
				j.toVectors(to, w, k, j.element(s, batch, i+f, p), s.Operand, s.Stride, s.KStride)
				continue
			}
			for q := int64(0); q < k; q += step {
				kq := min(step, k-q)
				j.c.fill(s, batch, i+f, i+f+w, p+q, p+q+kq, stage, kq)
				j.toVectors(unsafe.Add(to, q*j.nr*j.size), w, kq, stage, operands.NoOperand, kq, 1)
			}
		}
	}
}

// callBytes bounds the bytes that one call copies, and so its duration.
const callBytes = 1 << 18

// toPanels splits k rows of columns into panels; ld is in elements. The source may be memory of an
// operand.
func (j *job) toPanels(dst unsafe.Pointer, panel, k, cols int64, src unsafe.Pointer, operand int, ld int64) {
	f := native.PanelsFrame{LdSrc: ld * j.size, Panel: panel, Full: cols / j.nr, Rest: cols % j.nr}
	some := max(callBytes/(cols*j.size), 1)
	for q := int64(0); q < k; q += some {
		f.K = min(some, k-q)
		f.Src, f.Dst = unsafe.Add(src, q*f.LdSrc), unsafe.Add(dst, q*j.nr*j.size)
		if j.c.Tape != nil {
			j.recordCall(j.f.Panels, unsafe.Pointer(&f), panelsWords, replay.Address{At: int(unsafe.Offsetof(f.Src)), Operand: operand}, replay.Address{At: int(unsafe.Offsetof(f.Dst)), Operand: operands.NoOperand})
		}
		j.f.call(j.f.Panels, unsafe.Pointer(&f), j.mxcsr)
	}
}

// zeros takes the place of missing columns.
var zeros [blockK]uint64

// toVectors writes one panel of cols columns, which are stride apart and whose elements are
// kstride apart.
func (j *job) toVectors(dst unsafe.Pointer, cols, k int64, src unsafe.Pointer, operand int, stride, kstride int64) {
	piece := 16 / j.size
	if kstride != 1 || k < piece {
		if j.c.Tape != nil {
			j.c.recordZero(dst, 0, 1, k*j.nr*j.size)
		}
		zero(dst, 0, 1, k*j.nr*j.size)
		j.turnSlowly(dst, 1, j.nr, src, operand, stride, kstride, cols, k)
		return
	}
	f := native.TransposeFrame{LdDst: j.nr * j.size}
	for v := range 2 {
		for i := range j.lanes {
			f.Rows[i] = unsafe.Pointer(&zeros)
			if at := int64(v)*j.lanes + i; at < cols {
				f.Rows[i] = unsafe.Add(src, at*stride*j.size)
			}
		}
		j.transpose(&f, unsafe.Add(dst, int64(v)*j.lanes*j.size), operand, k)
	}
}

// transpose calls the machine code for k elements of the rows in a frame; k is at least one piece
// of 16 bytes. If whole pieces leave a remainder, the last piece of the rows is copied again from
// k-piece on.
func (j *job) transpose(f *native.TransposeFrame, dst unsafe.Pointer, operand int, k int64) {
	piece := 16 / j.size
	f.Dst, f.K = dst, k&^(piece-1)
	j.transposeRows(f, operand)
	if f.K == k {
		return
	}
	back := k - piece
	for i := range j.lanes {
		f.Rows[i] = unsafe.Add(f.Rows[i], back*j.size)
	}
	f.Dst, f.K = unsafe.Add(dst, back*f.LdDst), piece
	j.transposeRows(f, operand)
}

// turn writes dst[c*dc + r*dr] = src[r*sr + c*sc] for r below rows, c below cols. It uses vectors
// if rows of src are dense along columns and dst is dense along rows.
func (j *job) turn(dst unsafe.Pointer, dc, dr int64, src unsafe.Pointer, operand int, sr, sc, rows, cols int64) {
	piece := 16 / j.size
	if sc != 1 || dr != 1 || cols < piece || rows < j.lanes {
		j.turnSlowly(dst, dr, dc, src, operand, sr, sc, rows, cols)
		return
	}
	f := native.TransposeFrame{LdDst: dc * j.size}
	for r := int64(0); r < rows; r += j.lanes {
		r := min(r, rows-j.lanes) // the last vector overlaps the one before
		for i := range j.lanes {
			f.Rows[i] = unsafe.Add(src, (r+i)*sr*j.size)
		}
		j.transpose(&f, unsafe.Add(dst, r*j.size), operand, cols)
	}
}

// turnSlowly is turn for any layout, element by element.
func (j *job) turnSlowly(dst unsafe.Pointer, dr, dc int64, src unsafe.Pointer, operand int, sr, sc, rows, cols int64) {
	if j.c.Tape != nil {
		j.recordTurn(dst, dr, dc, operands.Pointer{P: src, Operand: operand}, sr, sc, rows, cols)
	}
	turnOf(j.size, dst, dr, dc, src, sr, sc, rows, cols)
}

// turnOf is turnSlowly for elements of size bytes, without a tape.
func turnOf(size int64, dst unsafe.Pointer, dr, dc int64, src unsafe.Pointer, sr, sc, rows, cols int64) {
	if size == 4 {
		turnElements[uint32](dst, dr, dc, src, sr, sc, rows, cols)
	} else {
		turnElements[uint64](dst, dr, dc, src, sr, sc, rows, cols)
	}
}

func turnElements[T uint32 | uint64](dst unsafe.Pointer, dr, dc int64, src unsafe.Pointer, sr, sc, rows, cols int64) {
	size := int64(unsafe.Sizeof(T(0)))
	for r := range rows {
		for c := range cols {
			*(*T)(unsafe.Add(dst, (r*dr+c*dc)*size)) = *(*T)(unsafe.Add(src, (r*sr+c*sc)*size))
		}
	}
}
