package scatter

import "github.com/millrace-go/millrace/runtime"

// Order is how threads share a scatter: by rows, by columns of adjacent rows, and, if these are too
// few, by parts of the axis.
type Order struct {
	Cols    bool  // tiles of columns: the last kept dim is walked innermost; else whole rows
	Tile    int64 // columns of a tile; 1 for rows
	spread  bool  // the indices differ along the columns
	copies  bool  // the output is not the operand's memory
	parts   int64 // number of parts of the axis
	kept    int   // number of kept dims
	outputs int64 // number of points of the kept dims
	reduced int64 // points of a row
}

const (
	// chunk is the most columns that are processed together.
	chunk = 2048
	// leastPoints is the least number of points of a tile of columns for which placing it pays.
	leastPoints = 256
	// leastBytes is the least width of a thread's columns: whole cache lines, including the
	// adjacent line that the processor fetches with each.
	leastBytes = 128
)

// Order chooses how at most threads threads walk a launch of the kernel.
func (k *Kernel) Order(l *runtime.Launch, threads int64) *Order {
	out := &l.Args[k.To]
	o := &Order{Tile: 1, copies: l.Args[k.From].Buf != out.Buf, kept: l.Kept, outputs: 1, reduced: 1}
	for d, n := range l.Dims[:l.Rank] {
		if d < l.Kept {
			o.outputs *= n
		} else {
			o.reduced *= n
		}
	}
	units := o.outputs
	if last := l.Kept - 1; last >= 0 && out.Stride[last] == 1 && l.Dims[last] > 1 {
		width := l.Dims[last]
		tile := min(width, chunk)
		if outer := o.outputs / width; outer < threads {
			least := int64(leastBytes / k.DT.Size())
			share := (width/threads + least - 1) / least * least
			tile = min(tile, max(share, least))
		}
		if o.reduced*tile >= leastPoints || width == o.outputs {
			o.Cols, o.Tile = true, tile
			units = o.outputs / width * ((width + tile - 1) / tile)
			for _, i := range k.Indices {
				o.spread = o.spread || l.Args[i].Stride[last] != 0
			}
		}
	}
	o.parts = shares(units, threads, out.IndexSize)
	return o
}

// shares returns the number of parts of an axis that gives threads as many shares as there are
// threads.
func shares(units, threads, size int64) int64 {
	return max(1, min((threads+units-1)/units, size))
}
