package cpu

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// mode is the order in which a launch visits its dims.
type mode int

const (
	modeNone mode = iota // no dim is reduced
	modeRows             // kept dims, then reduced dims
	modeCols             // kept dims except the last, then reduced dims, then the last kept dim
	modeDot              // a contraction: see dotOrder
)

// rowOrder is how the rows of a launch are walked.
type rowOrder struct {
	mode    mode
	tile    int64 // number of rows processed together
	threads int64 // most threads that are worth using
	split   bool  // threads share rows, phase by phase, instead of taking whole rows
	either  bool  // both modeRows and modeCols are possible
	swapped bool  // the last two dims are swapped: an elementwise launch
}

const (
	// minColumns is the size of the last kept dim from which rows are walked as columns.
	minColumns = 16
	// tileBytes bounds the bytes of a tile's points, to keep the results of one phase in the
	// second-level cache for the next phase.
	tileBytes = 512 << 10
	// laneBytes bounds the lanes of the sums of a tile of columns.
	laneBytes = 1 << 20
	// tilePoints is the number of points from which the phases of a tile of rows take longer than
	// starting them.
	tilePoints = 8192
	maxTile    = 4096
	// wholeColumns is the number of columns up to which rows of columns are not divided among
	// threads if there are enough other tiles: the contiguous runs of memory in a part would be
	// short.
	wholeColumns = 1024
)

// dim returns the dim of the launch that is at place d of the domain.
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

// otherwise returns the launch in the other order, if both are possible and code for the other
// exists. Then sizes on both sides of a threshold do not need code each.
func (r *ready) otherwise() (o ready, ok bool) {
	if !r.either {
		return o, false
	}
	o = *r
	o.mode, o.sched, o.transposed = modeRows+modeCols-r.mode, r.p.sched, transposed{}
	o.orderMode()
	key := o.classKey()
	o.code = o.sched.variantFor(&key).code.Load()
	return o, o.code != nil
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
		r.sched = p.lean() // temporaries are shared by the whole launch
	}
}

// maySplit reports that threads can share rows block by block.
func (r *ready) maySplit() bool {
	plan := r.sched.plan
	return len(r.p.kernel.Reduces) == 0 && r.threads > 1 && r.total/r.outputs > ir.FoldBlock && !plan.scans && !plan.sorts
}

// pointBytes returns the bytes of a tile's point that more than one phase touches.
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

// narrowest returns the number of rows in the smallest tile.
func (r *ready) narrowest() int64 {
	if r.mode == modeCols {
		return min(minColumns, r.l.Dims[r.l.Kept-1])
	}
	return 1
}

// columnBytes bounds the bytes of the points of a tile of columns. The tile's width is the length
// of its contiguous runs of memory, so the bound exceeds the second-level cache as long as the
// threads' tiles take at most a quarter of the last-level cache.
func (r *ready) columnBytes() int64 {
	return min(4*tileBytes, max(tileBytes, lastCache()/(4*r.threads)))
}

// columns returns the width of a tile of columns. Data that several phases touch must stay in
// cache, and lanes too. Within that bound, wider tiles read longer contiguous runs of memory.
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
	if share := r.outputs / (4 * r.threads); share < n { // some work for every thread
		if r.outputs/width >= 2*r.threads { // whole rows of columns are enough work for every thread, too
			share = max(share, min(width, wholeColumns))
		}
		n = min(n, max(share, 8*minColumns))
	}
	n = max(n/minColumns*minColumns, minColumns)
	return min(n, width)
}

// rowMode chooses the innermost dim. It is the last kept dim if more operands are dense along it
// than along the last reduced dim, or if that pays for short rows.
func (r *ready) rowMode() (m mode, either bool) {
	l := r.l
	if !r.mayBeCols() {
		return modeRows, false
	}
	votes := int64(0) // elements that would be neighbours, minus those that would not
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

// shortToFold reports rows with fewer points than a fold has lanes. As columns side by side they
// fill the lanes, although their points are not adjacent. That pays if there are at least twice as
// many columns as points in each, because columns that fill no vector are processed one by one. A
// scan has one lane.
func (r *ready) shortToFold() (cols, short bool) {
	n, width := r.total/r.outputs, r.l.Dims[r.l.Kept-1]
	if r.sched.plan.scans {
		return width >= max(n/4, minColumns), n < 4*ir.FoldLanes
	}
	return width >= max(2*n, minColumns), n < ir.FoldLanes
}

// oneShort reports a single short row: its launch does not wait for a compile if code for other
// variants exists.
func (r *ready) oneShort() bool {
	return r.p.hasRows && r.dot == nil && r.outputs == 1 && r.total < ir.FoldLanes && r.sched.compiled()
}

// mayBeCols reports that rows can be walked as columns.
func (r *ready) mayBeCols() bool {
	l := r.l
	if l.Kept == 0 || l.Kept == l.Rank || r.total == 0 || r.sched.plan.sorts || len(r.p.kernel.Reduces) > 0 {
		return false // totals take points in order
	}
	for i, o := range r.p.kernel.Operands {
		if o.Kind != codegen.Output {
			continue
		}
		// A tile of columns has no outer kept dims, and so no guards for the dims along which an
		// output stands still.
		for d := range l.Kept {
			if l.Args[i].Stride[d] == 0 && l.Dims[d] > 1 {
				return false
			}
		}
	}
	return true
}
