package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// goBatchPoints is how many points are worked on together: rows of a batch go
// through the phases side by side, and every phase is shared out.
const goBatchPoints = 1 << 16

// rowWalk is a launch with rows on its way, in Go. Rows are in the order of
// modeRows: points are numbered through the whole launch.
type rowWalk struct {
	e            *goExecutor
	r            *ready
	plan         *phasePlan
	points, rows args // what phases of either level are evaluated with
	reduced      int64
	blocks       int64
	first, n     int64            // rows of the batch
	temps        [][]byte         // of the batch
	dense        [][]uint64       // operands that are transposed
	totals       map[int]*goTotal // by operand
}

func (e *goExecutor) rows(r *ready) {
	w := &rowWalk{e: e, r: r, plan: r.sched.plan, points: argsOf(r), reduced: r.total / r.outputs}
	w.blocks = (w.reduced + ir.FoldBlock - 1) / ir.FoldBlock
	batch := min(max(goBatchPoints/max(w.reduced, 1), 1), r.outputs)
	w.addTemps(batch)
	w.rows = w.points
	w.rows.rank = max(r.l.Kept, 1)
	if r.l.Kept == 0 {
		w.rows.dims[0] = 1
	}
	for ; w.first < r.outputs; w.first += batch {
		w.n = min(batch, r.outputs-w.first)
		for i, t := range w.plan.Temps {
			o := &w.points.ops[len(r.l.Args)+i]
			if o.offset = -w.first; !t.Row {
				o.offset *= w.reduced
			}
		}
		if r.transposed.ops != 0 {
			w.transpose()
		}
		for i := range w.plan.Phases {
			w.phase(i)
		}
	}
	for operand, t := range w.totals {
		o := &w.points.ops[operand]
		size := int32(w.r.p.kernel.Operands[operand].DT.Size())
		storeElement(unsafe.Add(o.base, totalAt(&w.r.l.Args[operand], w.r.l)*int64(size)), size, t.result())
	}
}

// addTemps makes operands of the temporaries, for batches of so many rows.
func (w *rowWalk) addTemps(rows int64) {
	for _, t := range w.plan.Temps {
		var o operand
		n, dense := rows, int64(1)
		if !t.Row {
			n *= w.reduced
		}
		for d := w.r.l.Rank - 1; d >= 0; d-- {
			if t.Row && d >= w.r.l.Kept {
				continue
			}
			o.stride[d] = dense
			dense *= w.r.l.Dims[d]
		}
		mem := make([]uint64, n*int64(t.DT.Size())/8+1)
		o.base = unsafe.Pointer(unsafe.SliceData(mem))
		w.temps = append(w.temps, unsafe.Slice((*byte)(o.base), len(mem)*8))
		w.points.ops = append(w.points.ops, o)
	}
}

// phase runs a phase for all rows of the batch.
func (w *rowWalk) phase(i int) {
	ph, t := &w.plan.Phases[i], w.r.sched.tier0[i]
	if ph.Level == codegen.Row {
		w.e.with(w.r, func(ws *workspace) { ws.eval(t, &w.rows, w.first, w.first+w.n) })
		return
	}
	// A unit is a run of short rows that fit a block, or one block.
	group := int64(1)
	if w.reduced > 0 && w.blocks == 1 {
		group = ir.FoldBlock / w.reduced
	}
	parts := make([][]folded, len(ph.Reduces))
	whole := make([][]byte, len(ph.Reduces)) // all values of scans and sorts
	for k, red := range ph.Reduces {
		if red.Op.Class() == ir.ClassReduce && red.Operand >= len(w.r.l.Args) {
			parts[k] = make([]folded, w.n*w.blocks)
		} else {
			whole[k] = make([]byte, w.n*w.reduced*int64(ph.Body[red.Value].DT.Size())+1)
		}
	}
	units := (w.n*w.blocks + group - 1) / group
	w.e.split(int(w.r.threads), units, max(units/(w.r.threads*4), 1), func(begin, end int64) {
		w.e.with(w.r, func(ws *workspace) {
			for u := begin; u < end; u++ {
				row, block, rows := u*group/max(w.blocks, 1), u%w.blocks, int64(1)
				if w.blocks == 1 {
					rows = min(group, w.n-row)
				}
				w.unit(ws, i, row, rows, block, parts, whole)
			}
		})
	})
	for k := range ph.Reduces {
		w.finish(i, k, parts[k], whole[k])
	}
}

// unit evaluates a block of a row, or whole rows of one block each.
func (w *rowWalk) unit(ws *workspace, i int, row, rows, block int64, parts [][]folded, whole [][]byte) {
	ph := &w.plan.Phases[i]
	at := row*w.reduced + block*ir.FoldBlock
	n := min(w.reduced-block*ir.FoldBlock, ir.FoldBlock)
	for k, mem := range whole {
		if mem != nil {
			size := int64(ph.Body[ph.Reduces[k].Value].DT.Size())
			ws.bufs[k] = unsafe.Pointer(&mem[at*size])
		}
	}
	begin := w.first*w.reduced + at
	ws.eval(w.r.sched.tier0[i], &w.points, begin, begin+rows*n)
	for k, red := range ph.Reduces {
		if parts[k] == nil {
			ws.bufs[k] = unsafe.Pointer(unsafe.SliceData(ws.values[k]))
			continue
		}
		dt := w.r.p.rowsOf(ph.Body[red.Value].DT)
		for j := range rows {
			parts[k][(row+j)*w.blocks+block] = dt.block(red.Op, ws.bufs[k], j*n, n, block*ir.FoldBlock)
		}
	}
}

// finish turns what a phase left of a row op into its temporary.
func (w *rowWalk) finish(i, k int, parts []folded, whole []byte) {
	ph := &w.plan.Phases[i]
	red := &ph.Reduces[k]
	value, out := ph.Body[red.Value].DT, ph.Operands[red.Operand].DT
	if red.Operand < len(w.r.l.Args) {
		w.total(red, value, w.plan.empty[i][k]).add(whole, w.n*w.reduced)
		return
	}
	dt, temp := w.r.p.rowsOf(value), w.temps[red.Operand-len(w.r.l.Args)]
	if parts == nil {
		w.e.split(int(w.r.threads), w.n, 1, func(begin, end int64) {
			for row := begin; row < end && w.reduced > 0; row++ {
				w.whole(red, value, out, temp[row*w.reduced*int64(out.Size()):], whole[row*w.reduced*int64(value.Size()):])
			}
		})
		return
	}
	for row := range w.n {
		bits := w.plan.empty[i][k]
		if w.blocks > 0 {
			total := parts[row*w.blocks]
			for _, part := range parts[row*w.blocks+1 : (row+1)*w.blocks] {
				total = dt.join(red.Op, total, part)
			}
			bits = dt.result(red.Op, total)
		}
		storeElement(unsafe.Pointer(&temp[row*int64(out.Size())]), int32(out.Size()), bits)
	}
}

// whole scans or sorts a row.
func (w *rowWalk) whole(red *codegen.Reduce, value, out ir.DType, to, from []byte) {
	dt := w.r.p.rowsOf(value)
	if red.Op.Class() == ir.ClassScan {
		dt.scan(red.Op, unsafe.Pointer(&to[0]), unsafe.Pointer(&from[0]), w.reduced)
		return
	}
	size := out.Size()
	for i, j := range dt.sort(unsafe.Pointer(&from[0]), w.reduced, red.Descending) {
		bits := uint64(j)
		if !red.Op.Info().Position {
			bits = element(unsafe.Pointer(&from[int(j)*size]), int32(size))
		}
		storeElement(unsafe.Pointer(&to[i*size]), int32(size), bits)
	}
}

// storeElement writes an element of so many bytes.
func storeElement(p unsafe.Pointer, size int32, bits uint64) {
	switch size {
	case 1:
		*(*uint8)(p) = uint8(bits)
	case 2:
		*(*uint16)(p) = uint16(bits)
	case 4:
		*(*uint32)(p) = uint32(bits)
	default:
		*(*uint64)(p) = bits
	}
}
