package rows

import (
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/fold"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
	"github.com/millrace-go/millrace/runtime/cpu/internal/threads"
)

// How rows are walked.
//
// A tile is some rows with all their points. Its phases run one after another on one thread.
// Values pass from phase to phase in temporaries, which are operands after the kernel's own, in
// that thread's memory. By rows, a tile is a range of the launch's domain, and its rows are
// strips of one column. By columns, it is a domain of its own: one strip with one column per
// row.

// Launch is a launch with rows, bound to memory.
type Launch struct {
	Plan       *Plan
	Folds      *fold.Table
	Operands   []codegen.Operand // the kernel's
	Args       operands.Args     // with the dims in the order of the walk
	Kept       int               // number of kept dims
	Outputs    int64             // number of points of the kept dims
	Points     int64             // number of points
	Cols       bool              // the last kept dim is walked innermost
	Tile       int64             // rows of a tile
	Threads    int64             // the most to use
	Split      bool              // threads share rows block by block, instead of taking whole tiles
	Transposed uint64            // operands whose tiles are transposed into the thread's memory, a bit for each
	Scratch    int64             // bytes of memory that an evaluation needs
	Look       int               // the phase that prefetches the next tile; below 0: none
	Ahead      []int64           // for Look: bytes of an operand's element; 0: not prefetched
	Even       []bool            // phases that compute the same value at all points of a tail; nil: none
	Tails      []int64           // for Even: the point of each row where its tail begins
	Recorder   operands.Recorder // nil: the work is not recorded
}

// Host is the driver.
type Host interface {
	operands.Host
	// Code returns the machine code of a phase, to compute the points of the thread's first
	// evaluator; nil if there is none.
	Code(thread, phase int) Code
}

// Job runs launches with rows, one at a time; its shares are tiles.
type Job struct {
	Launch
	host   Host
	pool   *threads.Pool
	failed atomic.Bool // memory was refused

	nops        int
	reduced     int64 // points of a row
	blocks      int64 // blocks of ir.FoldBlock points in a row
	width       int64 // by columns: size of the last kept dim
	across      int64 // by columns: tiles along the last kept dim
	columns     int64 // columns of the widest strip
	count       int64 // of tiles
	grain, part int64 // tiles, and points, that a thread gets at a time
	needs       sizes
	room        int64   // bytes of a thread's memory
	ahead       []int64 // bytes from a point of an operand to the same point of the next tile
	tiles       []tile  // of each thread

	split            splitJob
	shared, partials unsafe.Pointer // with Split: temporaries, and results of folds of blocks
	sums, edges      unsafe.Pointer // of totals
}

// Run runs the Launch, and drops it. It returns false if memory is refused.
func (x *Job) Run(host Host, pool *threads.Pool) bool {
	x.host, x.pool = host, pool
	x.failed.Store(false)
	if len(x.tiles) < int(x.Threads) {
		x.tiles = make([]tile, x.Threads)
	}
	x.nops, x.reduced = len(x.Operands), x.Points/x.Outputs
	x.blocks = (x.reduced + ir.FoldBlock - 1) / ir.FoldBlock
	x.width, x.columns, x.count = 1, 1, (x.Outputs+x.Tile-1)/x.Tile
	if x.Cols {
		x.width, x.columns = x.Args.Dims[x.Args.Rank-1], x.Tile
		x.across = (x.width + x.Tile - 1) / x.Tile
		x.count = x.Outputs / x.width * x.across
	}
	x.measure()
	x.ahead = x.ahead[:0]
	for _, size := range x.Ahead {
		x.ahead = append(x.ahead, size*x.Tile*x.reduced)
	}
	if x.Split || x.Plan.totals > 0 || x.Transposed != 0 {
		x.lose()
	}
	if x.Split {
		x.runSplit()
	} else {
		x.runTiles()
	}
	x.Launch, x.host, x.pool = Launch{}, nil, nil
	return !x.failed.Load()
}

// runTiles runs a launch whose threads take whole tiles.
func (x *Job) runTiles() {
	x.grain = x.count/(x.Threads*8) + 1
	x.part = x.grain * x.Tile * x.reduced
	if x.Plan.totals > 0 && !x.openTotals() {
		x.failed.Store(true)
		return
	}
	x.pool.Split(int(x.Threads), x.count, x.grain, x)
	if x.Plan.totals > 0 && !x.failed.Load() {
		x.closeTotals()
	}
}

// lose gives the recording up.
func (x *Job) lose() {
	if x.Recorder != nil {
		x.Recorder.Lose()
	}
}

// transposes reports that an operand's tiles are transposed.
func (x *Job) transposes(operand int) bool { return x.Transposed>>operand&1 != 0 }

// Share walks tiles [begin, end).
func (x *Job) Share(who int, begin, end int64) {
	t := x.makeTile(who)
	if t == nil {
		return
	}
	for u := begin; u < end; u++ {
		if u == begin || u%x.grain == 0 { // a single thread gets all shares in one call
			t.from = u / x.grain * x.part
			t.to = min(t.from+x.part, x.Points)
		}
		t.place(u)
		for i := range x.Plan.Phases {
			if x.Plan.Phases[i].Level == codegen.Row {
				t.rowPhase(i)
			} else {
				t.pointPhase(i, 0, x.blocks)
			}
		}
	}
	t.forget()
}
