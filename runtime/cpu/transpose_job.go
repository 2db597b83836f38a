package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/runtime/cpu/internal/interp"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// transposedJob runs an elementwise launch with transposed operands; its shares are tiles.
type transposedJob struct {
	e            *executor
	r            *ready
	args         args // of the launch
	code         evaluator
	down, across int64 // tiles along the two dims
	room         int64 // bytes of a tile's transposed operands
}

func (j *transposedJob) run(r *ready) {
	t := &r.transposed
	r.tape.lose()
	j.r, j.code = r, r.evaluator(0)
	r.writeArgs(&j.args)
	m, n := j.args.Dims[t.dim], j.args.Dims[j.args.Rank-1]
	j.down, j.across = (m+t.rows-1)/t.rows, (n+t.cols-1)/t.cols
	j.room = 0
	for i, o := range r.p.kernel.Operands {
		if t.has(i) {
			j.room += j.tileBytes(int64(o.DT.Size()))
		}
	}
	tiles := r.total / (m * n) * j.down * j.across
	threads := min(int(r.threads), j.e.threads)
	j.e.pool.Split(threads, tiles, tiles/int64(threads*8)+1, j)
	j.args.forget()
	j.r, j.code = nil, nil
}

// tileBytes returns the bytes of an operand in a tile.
func (j *transposedJob) tileBytes(size int64) int64 {
	return memory.Aligned(j.r.transposed.rows*j.r.transposed.cols*size + interp.Overrun)
}

func (j *transposedJob) Share(who int, begin, end int64) {
	m := &j.e.memory[who]
	scratch := j.code.scratch()
	s := m.Reserve(memory.Aligned(scratch) + j.room)
	if s == nil {
		j.e.failed.Store(true)
		return
	}
	a, ops := &m.args, append(m.ops[:0], j.args.Ops...)
	*a = j.args
	a.Ops, a.Scratch, a.room = ops, unsafe.Slice((*byte)(s), scratch), &m.room
	for u := begin; u < end; u++ {
		j.place(a, u, unsafe.Add(s, memory.Aligned(scratch)))
		n := a.Dims[0]
		if a.Rank > 1 {
			n *= a.Dims[1]
		}
		j.code.eval(a, 0, n)
	}
	clear(ops)
	*a, m.ops = args{}, ops[:0]
}

// place moves the operands and the domain to tile u. The domain has two dims, or one if all
// operands continue from row to row.
func (j *transposedJob) place(a *args, u int64, local unsafe.Pointer) {
	t, whole := &j.r.transposed, &j.args
	inner := whole.Rank - 1
	top, left, rest := u%j.down*t.rows, u/j.down%j.across*t.cols, u/j.down/j.across
	rows, cols := min(whole.Dims[t.dim]-top, t.rows), min(whole.Dims[inner]-left, t.cols)
	for i := range a.Ops {
		from, o := &whole.Ops[i], &a.Ops[i]
		o.Base, o.Offset = from.Base, from.Offset+top*from.Stride[t.dim]+left*from.Stride[inner]
		o.Stride[0], o.Stride[1] = from.Stride[t.dim], from.Stride[inner]
	}
	for d := inner - 1; d >= 0; d-- {
		if d == t.dim {
			continue
		}
		for i := range a.Ops {
			a.Ops[i].Offset += rest % whole.Dims[d] * whole.Ops[i].Stride[d]
		}
		rest /= whole.Dims[d]
	}
	goesOn := true
	for i := range a.Ops {
		o := &a.Ops[i]
		if t.has(i) {
			size := j.r.p.kernel.Operands[i].DT.Size()
			spreadTile(size, local, o, rows, cols)
			o.Base, o.Offset, o.Stride[0], o.Stride[1] = local, 0, cols, 1
			local = unsafe.Add(local, j.tileBytes(int64(size)))
		}
		goesOn = goesOn && o.Stride[0] == cols*o.Stride[1]
	}
	a.Rank, a.Dims[0], a.Dims[1] = 2, rows, cols
	if goesOn {
		a.Rank, a.Dims[0] = 1, rows*cols
		for i := range a.Ops {
			a.Ops[i].Stride[0] = a.Ops[i].Stride[1]
		}
	}
}

// spreadTile makes the rows of an operand adjacent. If all rows are equal it copies the first one.
func spreadTile(size int, to unsafe.Pointer, o *operand, rows, cols int64) {
	if o.Stride[0] != 0 {
		operands.CopyTile(size, to, cols, o.Base, o.Offset, o.Stride[0], o.Stride[1], rows, cols)
		return
	}
	operands.CopyTile(size, to, cols, o.Base, o.Offset, 0, o.Stride[1], 1, cols)
	all := unsafe.Slice((*byte)(to), rows*cols*int64(size))
	for done := int(cols) * size; done < len(all); {
		done += copy(all[done:], all[:done])
	}
}
