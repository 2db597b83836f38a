package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
)

// skinnyTile is a tile of few rows: y is read where it lies, as many steps of k at once
// as leave the chains of all columns in cache, or transposed on the way to the chains, or
// taken through a buffer in pieces of a panel.
func (j *dotJob) skinnyTile(own unsafe.Pointer, batch, i, rows, at, cols int64, out unsafe.Pointer, ld int64) {
	t := skinny{dotJob: j, own: own, batch: batch, at: at, out: out, ld: ld}
	for b := range j.blocks {
		t.p, t.k, t.first = b*contractK, j.depth(b), 0
		if b == 0 {
			t.first = native.TileFirst
		}
		j.loadX(own, batch, i, rows, t.p, t.k, own)
		for t.row = 0; t.row < rows; t.row += j.mr {
			height, from := min(j.mr, rows-t.row), int64(0)
			switch {
			case j.y.stride == 1:
				from = cols / j.nr * j.nr
				t.inPlace(height, from)
			case j.y.kstride == 1 && rows <= alongRows && j.f.AlongRows() > 0 && t.k >= int64(j.f.AlongStep):
				from = cols
				t.along(height, cols)
			}
			for s := from; s < cols; s += j.nr {
				t.piece(height, s, min(j.nr, cols-s), 0)
			}
		}
	}
}

// skinny is a block of k of such a tile, from a row on.
type skinny struct {
	*dotJob
	own, out  unsafe.Pointer
	batch, at int64
	ld        int64 // of out, in bytes
	p, k, row int64
	first     int64 // native.TileFirst in the first block
}

// place lets a frame begin with column s and step q of kq.
func (t *skinny) place(f *native.TileFrame, s, q, kq int64) {
	f.LdX, f.LdC, f.LdAcc = contractK*t.size, t.ld, t.dotPlan.ld*t.size
	f.X, f.K = unsafe.Add(t.own, (t.row*contractK+q)*t.size), kq
	f.C, f.Acc = unsafe.Add(t.out, t.row*t.ld+s*t.size), unsafe.Add(t.own, t.atAcc+(t.row*t.dotPlan.ld+s)*t.size)
	f.Flags = t.first
	if q == 0 {
		f.Flags |= native.TileOpen
	}
	if q+kq == t.k {
		f.Flags |= native.TileClose
	}
}

// inPlace reads whole panels of columns that are neighbours.
func (t *skinny) inPlace(rows, cols int64) {
	wide := int64(t.f.Wide(int(rows))) * t.lanes // columns of a tile
	step := t.k
	if cols > wide {
		step = skinnyStep
	}
	whole := cols / wide * wide
	for q := int64(0); q < t.k; q += step {
		kq := min(step, t.k-q)
		t.columns(rows, 0, whole, wide, q, kq)
		t.columns(rows, whole, cols, t.nr, q, kq)
	}
}

// columns [s, end) in tiles of some width, steps [q, q+k).
func (t *skinny) columns(rows, s, end, width, q, k int64) {
	if s == end {
		return
	}
	f := native.TileFrame{LdY: t.y.kstride * t.size, StepY: width * t.size, StepC: width * t.size}
	t.place(&f, s, q, k)
	f.Y = t.element(&t.y, t.batch, t.at+s, t.p+q)
	t.tiles(rows, width/t.lanes, &f, end-s)
}

// along reads columns that lie along k. What is less than a step is packed.
func (t *skinny) along(rows, cols int64) {
	whole := t.k &^ (int64(t.f.AlongStep) - 1)
	most := int64(t.f.AlongRows())
	var f native.AlongFrame
	from := t.row
	for s := int64(0); s < cols; s += t.lanes {
		f.Tail = min(t.lanes, cols-s)
		first := t.element(&t.y, t.batch, t.at+s, t.p)
		for c := range t.lanes {
			f.Columns[c] = unsafe.Add(first, min(c, f.Tail-1)*t.y.stride*t.size)
		}
		for r := int64(0); r < rows; r += most {
			t.row = from + r
			t.place(&f.TileFrame, s, 0, whole)
			t.f.call(t.f.Along(int(min(most, rows-r))), unsafe.Pointer(&f), t.mxcsr)
		}
		if t.row = from; whole < t.k {
			t.piece(rows, s, f.Tail, whole)
		}
	}
}

// piece packs some columns, from step q on.
func (t *skinny) piece(rows, s, cols, q int64) {
	var f native.TileFrame
	piece := unsafe.Add(t.own, t.atStrip)
	for ; q < t.k; q += skinnyPiece {
		kq := min(skinnyPiece, t.k-q)
		t.loadPiece(t.own, t.batch, t.at+s, cols, t.p+q, kq, piece)
		t.place(&f, s, q, kq)
		f.Y, f.LdY = piece, t.nr*t.size
		t.strip(rows, &f, cols)
	}
}
