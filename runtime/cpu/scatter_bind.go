package cpu

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// scatterParts describes a kernel with a scatter.
type scatterParts struct {
	in      ir.Instr
	from    int      // the operand that is scattered into
	to      int      // the output
	index   ir.DType // of the indices
	indices []int    // the operands that the indices are computed from
}

// scatterOf returns the parts of a kernel, nil if it has no scatter. The kernel is not lowered
// yet: lowering adds no operands to the computation of the indices.
func scatterOf(k *codegen.Kernel) *scatterParts {
	at := k.Scatter()
	if at == ir.None {
		return nil
	}
	in := k.Body[at]
	return &scatterParts{in: in, from: int(uint32(in.Imm)), to: k.Stores[0].Operand, index: k.Body[in.Args[0]].DT,
		indices: touched(codegen.Phases(k, codegen.PhaseOptions{}).Phases[0].Kernel, len(k.Operands))}
}

// row reports that the indices address rows of an operand.
func (p *scatterParts) row(operand int) bool {
	return p != nil && (operand == p.from || operand == p.to)
}

// rowReach returns the lowest and the highest element of such an operand; lo is above hi if there
// is none.
func rowReach(a *runtime.Access, kept []int64) (lo, hi int64) {
	if a.IndexSize == 0 {
		return 0, -1
	}
	if lo, hi = reach(a, kept); lo > hi {
		return lo, hi
	}
	if most := a.IndexStride * (a.IndexSize - 1); most < 0 {
		lo += most
	} else {
		hi += most
	}
	return lo, hi
}

// scatterOrder is how threads share a scatter: by rows, by columns of adjacent rows, and, if these
// are too few, by parts of the axis.
type scatterOrder struct {
	spread bool  // the indices differ along the columns
	copies bool  // the output is not the operand's memory
	parts  int64 // number of parts of the axis
}

const (
	// scatterChunk is the most columns that are processed together.
	scatterChunk = 2048
	// scatterColumns is the least number of points of a tile of columns for which placing it pays.
	scatterColumns = 256
	// scatterBytes is the least width of a thread's columns: whole cache lines, including the
	// adjacent line that the processor fetches with each.
	scatterBytes = 128
)

// orderScatter chooses how a scatter is walked.
func (r *ready) orderScatter() {
	l, p := r.l, r.p.scatter
	out := &l.Args[p.to]
	o := &scatterOrder{copies: l.Args[p.from].Buf != out.Buf, parts: 1}
	r.mode, r.tile, r.scatter = modeRows, 1, o
	units := r.outputs
	if last := l.Kept - 1; last >= 0 && out.Stride[last] == 1 && l.Dims[last] > 1 {
		width := l.Dims[last]
		tile := min(width, scatterChunk)
		if outer := r.outputs / width; outer < r.threads {
			least := int64(scatterBytes / r.p.kernel.Operands[p.to].DT.Size())
			share := (width/r.threads + least - 1) / least * least
			tile = min(tile, max(share, least))
		}
		if r.total/r.outputs*tile >= scatterColumns || width == r.outputs {
			r.mode, r.tile = modeCols, tile
			units = r.outputs / width * ((width + tile - 1) / tile)
			for _, i := range p.indices {
				o.spread = o.spread || l.Args[i].Stride[last] != 0
			}
		}
	}
	o.parts = scatterShares(units, r.threads, out.IndexSize)
}

// scatterShares returns the number of parts of an axis that gives threads as many shares as there
// are threads.
func scatterShares(units, threads, size int64) int64 {
	return max(1, min((threads+units-1)/units, size))
}
