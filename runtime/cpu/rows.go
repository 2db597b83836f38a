package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// How rows are walked.
//
// A tile is some rows with all their points. Its phases run one after another on one thread.
// Values pass from phase to phase in temporaries, which are operands after the kernel's own, in
// that thread's memory. With modeRows a tile is a range of the launch's domain, and its rows are
// strips of one column. With modeCols it is a domain of its own: one strip with one column per
// row.

// rowJob runs a launch with rows; its shares are tiles.
type rowJob struct {
	e    *executor
	r    *ready
	plan *phasePlan
	f    *foldTable
	args args // of the launch

	cols                     bool
	nops, kept               int
	outputs, reduced, points int64
	tile                     int64 // rows of a tile
	blocks                   int64 // blocks of ir.FoldBlock points in a row
	width                    int64 // with cols: size of the last kept dim
	across                   int64 // with cols: tiles along the last kept dim
	columns                  int64 // columns of the widest strip
	tiles                    int64
	grain, part              int64 // tiles, and points, that a thread gets at a time
	needs                    rowNeeds
	room                     int64 // bytes of a thread's memory

	look  int     // the phase that prefetches the next tile, see lookPhase
	ahead []int64 // bytes from a point of an operand to the same point of the next tile; 0: not prefetched

	split            splitJob
	shared, partials unsafe.Pointer // with split: temporaries, and results of folds of blocks
	sums, edges      unsafe.Pointer // of totals
}

// run walks the rows of a launch.
func (x *rowJob) run(r *ready) {
	x.r, x.plan, x.f = r, r.plan(), r.p.folds()
	r.writeArgs(&x.args)
	x.cols, x.nops, x.kept = r.mode == modeCols, len(r.l.Args), r.l.Kept
	x.outputs, x.reduced, x.points, x.tile = r.outputs, r.total/r.outputs, r.total, r.tile
	x.blocks = (x.reduced + ir.FoldBlock - 1) / ir.FoldBlock
	x.width, x.columns, x.tiles = 1, 1, (x.outputs+x.tile-1)/x.tile
	if x.cols {
		x.width, x.columns = x.args.dims[x.args.rank-1], x.tile
		x.across = (x.width + x.tile - 1) / x.tile
		x.tiles = x.outputs / x.width * x.across
	}
	x.measure()
	x.findAhead()
	if r.split || x.plan.totals > 0 || r.transposed.ops != 0 {
		r.tape.lose()
	}
	switch {
	case r.split:
		x.runSplit()
	default:
		x.grain = x.tiles/(r.threads*8) + 1
		x.part = x.grain * x.tile * x.reduced
		if x.plan.totals > 0 && !x.openTotals() {
			x.e.failed.Store(true)
			break
		}
		x.e.pool.split(int(r.threads), x.tiles, x.grain, x)
		if x.plan.totals > 0 && !x.e.failed.Load() {
			x.closeTotals()
		}
	}
	x.args.forget()
	x.r, x.plan = nil, nil
}

// findAhead chooses the phase that prefetches the next tile, and the distances. A phase that
// computes on cached data leaves memory idle.
func (x *rowJob) findAhead() {
	x.look, x.ahead = -1, x.ahead[:0]
	if !x.r.split {
		x.look = x.r.lookPhase()
	}
	for i := 0; x.look >= 0 && i < x.nops; i++ {
		x.ahead = append(x.ahead, int64(x.r.ahead(i))*x.tile*x.reduced)
	}
}

// share walks tiles [begin, end).
func (x *rowJob) share(who int, begin, end int64) {
	t := x.makeTile(who)
	if t == nil {
		return
	}
	for u := begin; u < end; u++ {
		if u == begin || u%x.grain == 0 { // a single thread gets all shares in one call
			t.from = u / x.grain * x.part
			t.to = min(t.from+x.part, x.points)
		}
		t.place(u)
		for i := range x.plan.Phases {
			if x.plan.Phases[i].Level == codegen.Row {
				t.rowPhase(i)
			} else {
				t.pointPhase(i, 0, x.blocks)
			}
		}
	}
	t.forget()
}
