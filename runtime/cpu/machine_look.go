package cpu

import (
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
)

// lookPoints are evaluated between two looks ahead: what is asked for at once must not
// keep the loads that are needed now waiting.
const lookPoints = 2048

// lookCode asks for memory; nil where there is no machine code.
var lookCode = sync.OnceValue(func() *machineCode {
	isa := machineISA()
	if isa == nil {
		return nil
	}
	return joinCode(native.CompileLook(isa))
})

// evaluate computes points [begin, end) of a phase of the tile. Memory would stand still
// while a phase computes on what the one before left in a cache: where it is worth it, what
// the next tile reads in place of the same points is asked for meanwhile.
func (t *rowTile) evaluate(i int, code evaluator, begin, end int64) {
	if i != t.x.look || !t.own {
		code.eval(&t.points, begin, end)
		return
	}
	var bufs [maxReduces]unsafe.Pointer
	all := t.points.bufs
	t.points.bufs = bufs[:len(all)]
	for p := begin; p < end; p += lookPoints {
		to := min(p+lookPoints, end)
		for k := range t.x.plan.rowOps[i] {
			bufs[k] = unsafe.Add(t.bufs[k], (p-begin)*t.x.f.dtype[t.x.plan.rowOps[i][k].dt].size)
		}
		t.lookAhead(p, to)
		code.eval(&t.points, p, to)
	}
	t.points.bufs = all
}

// lookAhead asks for what the next tile has in place of points [begin, end).
func (t *rowTile) lookAhead(begin, end int64) {
	x, c := t.x, lookCode()
	shift := t.n * x.reduced
	if c == nil || end+shift > x.r.total {
		return
	}
	var frame foldFrame
	for i := range x.r.l.Args {
		size := int64(x.ahead[i])
		if size == 0 {
			continue
		}
		o := &t.ops[i]
		from, to := (begin+shift+o.offset)*size, (end+shift+o.offset)*size
		frame.operand(0, unsafe.Add(o.base, from), 0, 0)
		frame[native.FramePoints/8] = uint64((to - from + native.Line - 1) / native.Line)
		machine.Call(c.entry, unsafe.Pointer(&frame), machine.KeepMXCSR)
	}
}

// findLook says during which phase, if any, and in which operands the next tile is asked for.
func (x *rowJob) findLook() {
	x.look = -1
	if x.r.code == nil || x.r.code.evaluators == nil {
		return
	}
	if x.look = x.r.lookPhase(); x.look < 0 {
		return
	}
	x.ahead = x.ahead[:0]
	for i := range x.r.l.Args {
		x.ahead = append(x.ahead, int8(x.r.ahead(i)))
	}
}
