package cpu

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// mode is the order in which a launch visits its dims.
type mode int

const (
	modeNone mode = iota // nothing is reduced
	modeRows             // kept dims, then reduced dims
	modeCols             // kept dims but the last, reduced dims, the last kept dim
	modeDot              // a contraction: see dotOrder
)

// rowOrder is how the rows of a launch are walked.
type rowOrder struct {
	mode    mode
	tile    int64 // rows worked on together
	threads int64 // worth having
	split   bool  // threads share rows, phase by phase, instead of taking whole ones
	either  bool  // rows might be columns, and columns rows
	swapped bool  // the last two dims have changed places: an elementwise launch
}

const (
	// minColumns is the size of the last kept dim from which rows are columns.
	minColumns = 16
	// tileBytes bounds what the points of a tile take, so that a phase finds in
	// the second-level cache what the one before left there.
	tileBytes = 512 << 10
	// laneBytes bounds the lanes of the sums of a tile of columns.
	laneBytes = 1 << 20
	// tilePoints is where a tile of rows is long enough for its phases to cost
	// more than starting them.
	tilePoints = 8192
	maxTile    = 4096
	// wholeColumns is how many columns are not divided among threads that find
	// enough other tiles: the stretches of memory of a part would be short.
	wholeColumns = 1024
)

// dim gives the dim of the launch that stands at place d of the domain.
func (r *ready) dim(d int) int {
	l := r.l
	switch {
	case r.swapped && d >= l.Rank-2:
		return 2*l.Rank - 3 - d
	case r.mode != modeCols || d < l.Kept-1:
		return d
	case d == l.Rank-1:
		return l.Kept - 1
	}
	return d + 1
}

// orderRows chooses how the rows are walked.
func (r *ready) orderRows() {
	r.mode, r.either = r.rowMode()
	r.orderMode()
}

// otherwise is the launch in the other order where either does and there is code for
// that: so that sizes on both sides of a bound do not need code each.
func (r *ready) otherwise() (o ready, ok bool) {
	if !r.either {
		return o, false
	}
	o = *r
	o.mode, o.sched, o.transposed = modeRows+modeCols-r.mode, r.p.sched, transposed{}
	o.orderMode()
	key := o.classKey()
	return o, o.use(o.sched.variantFor(&key))
}

func (r *ready) orderMode() {
	l, p := r.l, r.p
	reduced := r.total / r.outputs
	if r.total == 0 {
		r.tile, r.threads = min(r.outputs, maxTile), 1
		return
	}
	if p.sched.plan.sweeps > 1 && reduced*r.pointBytes(p.sched)*r.narrowest() > p.dev.leanBytes {
		r.sched = p.lean()
	}
	units := r.outputs
	if r.mode == modeCols {
		width := l.Dims[l.Kept-1]
		r.tile = r.columns(reduced)
		units = r.outputs / width * ((width + r.tile - 1) / r.tile)
	} else {
		r.tile = max(1, min(tilePoints/reduced, r.outputs/(4*r.threads), maxTile))
	}
	plan := r.sched.plan
	r.split = r.maySplit() && units < 4*r.threads
	if !r.split {
		r.orderTransposed()
		return
	}
	if r.mode == modeRows {
		r.tile = 1
	}
	if plan.pointTemps*r.total > r.threads*tileBytes {
		r.sched = p.lean() // temporaries are the whole launch's
	}
}

// maySplit reports that threads can share rows block by block.
func (r *ready) maySplit() bool {
	plan := r.sched.plan
	return len(r.p.kernel.Reduces) == 0 && r.threads > 1 && r.total/r.outputs > ir.FoldBlock && !plan.scans && !plan.sorts
}

// pointBytes is what a point of a tile takes that more than one phase touches.
func (r *ready) pointBytes(s *schedule) int64 {
	n := s.plan.pointTemps
	for i, o := range r.p.kernel.Operands {
		a := &r.l.Args[i]
		moves := false
		for d := r.l.Kept; d < r.l.Rank; d++ {
			moves = moves || a.Stride[d] != 0
		}
		if o.Kind == codegen.Input && moves {
			n += int64(o.DT.Size())
		}
	}
	return max(n, 1)
}

// narrowest is the number of rows in the smallest tile.
func (r *ready) narrowest() int64 {
	if r.mode == modeCols {
		return min(minColumns, r.l.Dims[r.l.Kept-1])
	}
	return 1
}

// columnBytes bounds what the points of a tile of columns take. Its stretches of
// memory are as long as it is wide, so it goes beyond the second-level cache as
// long as the threads' tiles take no more than a quarter of the last one.
func (r *ready) columnBytes() int64 {
	return min(4*tileBytes, max(tileBytes, lastCache()/(4*r.threads)))
}

// columns is the width of a tile of columns: what several phases touch must
// stay in cache, and lanes too; else the wider, the longer the stretches of
// memory that are read.
func (r *ready) columns(reduced int64) int64 {
	plan := r.sched.plan
	n := int64(maxTile)
	if plan.sweeps > 1 {
		n = min(n, r.columnBytes()/(reduced*r.pointBytes(r.sched)))
	}
	if plan.reduces > 0 {
		n = min(n, laneBytes/(8*int64(plan.reduces)*min(reduced, ir.FoldLanes)))
	}
	width := r.l.Dims[r.l.Kept-1]
	if share := r.outputs / (4 * r.threads); share < n { // something for every thread
		if r.outputs/width >= 2*r.threads { // which whole rows of columns are, too
			share = max(share, min(width, wholeColumns))
		}
		n = min(n, max(share, 8*minColumns))
	}
	n = max(n/minColumns*minColumns, minColumns)
	return min(n, width)
}

// rowMode chooses which dim is innermost: the last kept one where more operands are dense
// along it than along the last reduced one, or where that pays for short rows.
func (r *ready) rowMode() (m mode, either bool) {
	l := r.l
	if !r.mayBeCols() {
		return modeRows, false
	}
	votes := int64(0) // elements that would be neighbours, less those that would not
	for i, o := range r.p.kernel.Operands {
		a := &l.Args[i]
		if o.Kind != codegen.Index && !o.Row && len(a.Stages) == 0 {
			n := int64(o.DT.Size())
			for d := range l.Rank {
				if a.Stride[d] != 0 {
					n *= l.Dims[d]
				}
			}
			if a.Stride[l.Kept-1] == 1 {
				votes += n
			}
			if a.Stride[l.Rank-1] == 1 {
				votes -= n
			}
		}
	}
	if votes > 0 && l.Dims[l.Kept-1] >= minColumns {
		return modeCols, false
	}
	if cols, short := r.shortToFold(); !short || !cols {
		return modeRows, short
	}
	return modeCols, true
}

// shortToFold reports rows with fewer points than a fold has lanes. As columns, side by
// side, they fill them, though their points lie apart: it pays where there are twice as
// many as points in each, as what is left of a vector of them is done point by point.
// A scan has one lane.
func (r *ready) shortToFold() (cols, short bool) {
	n, width := r.total/r.outputs, r.l.Dims[r.l.Kept-1]
	if r.sched.plan.scans {
		return width >= max(n/4, minColumns), n < 4*ir.FoldLanes
	}
	return width >= max(2*n, minColumns), n < ir.FoldLanes
}

// oneShort reports a single row that is short, for which nobody waits for code while
// there is some for columns.
func (r *ready) oneShort() bool {
	return r.p.hasRows && r.dot == nil && r.outputs == 1 && r.total < ir.FoldLanes && r.sched.compiled()
}

// mayBeCols reports that rows can be columns.
func (r *ready) mayBeCols() bool {
	l := r.l
	if l.Kept == 0 || l.Kept == l.Rank || r.total == 0 || r.sched.plan.sorts || len(r.p.kernel.Reduces) > 0 {
		return false // totals take points in order
	}
	for i, o := range r.p.kernel.Operands {
		if o.Kind != codegen.Output {
			continue
		}
		// A tile of columns leaves the kept dims behind, and with them what
		// tells the points that store from those that do not.
		for d := range l.Kept {
			if l.Args[i].Stride[d] == 0 && l.Dims[d] > 1 {
				return false
			}
		}
	}
	return true
}
