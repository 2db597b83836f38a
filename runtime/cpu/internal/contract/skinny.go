package contract

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
)

// skinnyTile computes a tile of few rows. It reads y in place, with few enough k steps at once to
// keep the chains of all columns in cache; or it transposes y in registers; or it copies y to a
// buffer in pieces of a panel.
func (j *job) skinnyTile(own unsafe.Pointer, batch, i, rows, at, cols int64, out unsafe.Pointer, ld int64) {
	t := skinny{job: j, own: own, batch: batch, at: at, out: out, ld: ld, rows: rows, high: j.evenRows(rows)}
	from := int64(0)
	if j.single() {
		from = j.loneResult(batch, out)
	}
	for b := from; b < j.blocks; b++ {
		t.p, t.k, t.first = b*blockK, j.depth(b), 0
		if b == 0 {
			t.first = native.TileFirst
		}
		j.loadX(own, batch, i, rows, t.p, t.k, own)
		from := int64(0)
		switch {
		case j.y.Stride == 1:
			from = cols / j.nr * j.nr
			t.inPlace(from)
		case j.y.KStride == 1 && rows <= 2*int64(j.f.AlongRows()) && t.k >= int64(j.f.AlongStep):
			from = cols
			t.along(cols)
		}
		for s := from; s < cols; s += j.nr {
			t.piece(s, min(j.nr, cols-s), 0)
		}
	}
}

// skinny is a block of k of such a tile. Its rows are computed in groups, as many at a time as a
// function supports.
type skinny struct {
	*job
	own, out   unsafe.Pointer
	batch, at  int64
	ld         int64 // of out, in bytes
	rows, high int64 // rows of the tile, and rows computed at a time
	p, k       int64
	first      int64 // native.TileFirst in the first block, else 0
}

// place sets a frame up to begin at a row, column s and step q of kq steps.
func (t *skinny) place(f *native.TileFrame, row, s, q, kq int64) {
	f.LdX, f.LdC, f.LdAcc = blockK*t.size, t.ld, t.plan.ld*t.size
	f.X, f.K = unsafe.Add(t.own, (row*blockK+q)*t.size), kq
	f.C, f.Acc = unsafe.Add(t.out, row*t.ld+s*t.size), unsafe.Add(t.own, t.atAcc+(row*t.plan.ld+s)*t.size)
	f.Flags = t.first
	if q == 0 {
		f.Flags |= native.TileOpen
	}
	if q+kq == t.k {
		f.Flags |= native.TileClose
	}
}

// inPlace reads whole panels of neighbouring columns. All rows use some k steps of y before the
// next steps are read.
func (t *skinny) inPlace(cols int64) {
	step := t.k
	if cols > int64(t.f.Wide(int(t.high)))*t.lanes {
		step = skinnyStep
	}
	for q := int64(0); q < t.k; q += step {
		kq := min(step, t.k-q)
		for row := int64(0); row < t.rows; row += t.high {
			height := min(t.high, t.rows-row)
			wide := int64(t.f.Wide(int(height))) * t.lanes // columns of a tile
			whole := cols / wide * wide
			t.columns(row, height, 0, whole, wide, q, kq)
			t.columns(row, height, whole, cols, t.nr, q, kq)
		}
	}
}

// columns computes columns [s, end) in tiles of the given width, steps [q, q+k).
func (t *skinny) columns(row, rows, s, end, width, q, k int64) {
	if s == end {
		return
	}
	f := native.TileFrame{LdY: t.y.KStride * t.size, StepY: width * t.size, StepC: width * t.size}
	t.place(&f, row, s, q, k)
	f.Y = t.element(&t.y, t.batch, t.at+s, t.p+q)
	t.tiles(rows, width/t.lanes, &f, end-s)
}

// along reads columns that are dense along k and transposes them in registers. If there are more
// rows than one function computes, it does so again for the second half. k steps that fill no
// whole step are packed.
func (t *skinny) along(cols int64) {
	whole := t.k &^ (int64(t.f.AlongStep) - 1)
	high := ceilDiv(t.rows, ceilDiv(t.rows, int64(t.f.AlongRows())))
	var f native.AlongFrame
	for s := int64(0); s < cols; s += t.lanes {
		f.Tail = min(t.lanes, cols-s)
		first := t.element(&t.y, t.batch, t.at+s, t.p)
		for c := range t.lanes {
			f.Columns[c] = unsafe.Add(first, min(c, f.Tail-1)*t.y.Stride*t.size)
		}
		for row := int64(0); row < t.rows; row += high {
			t.place(&f.TileFrame, row, s, 0, whole)
			at := t.f.Along(int(min(high, t.rows-row)))
			if t.c.Tape != nil {
				t.recordTile(at, unsafe.Pointer(&f), alongWords)
			}
			t.f.call(at, unsafe.Pointer(&f), t.mxcsr)
		}
		if whole < t.k {
			t.piece(s, f.Tail, whole)
		}
	}
}

// piece packs some columns, from step q on, and computes them.
func (t *skinny) piece(s, cols, q int64) {
	var f native.TileFrame
	piece := unsafe.Add(t.own, t.atStrip)
	for ; q < t.k; q += skinnyPiece {
		kq := min(skinnyPiece, t.k-q)
		t.loadPiece(t.own, t.batch, t.at+s, cols, t.p+q, kq, piece)
		for row := int64(0); row < t.rows; row += t.high {
			t.place(&f, row, s, q, kq)
			f.Y, f.LdY = piece, t.nr*t.size
			t.strip(min(t.high, t.rows-row), &f, cols)
		}
	}
}
