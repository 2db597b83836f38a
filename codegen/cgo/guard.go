package cgo

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Loads with a guard and loads through an index test every lane: if a guard is false, or an index
// out of range, the memory may not exist.

// viaLanes makes the operands of such loads staged: their positions are then computed lane by lane,
// whatever their strides.
func (p *printer) viaLanes() {
	for _, in := range p.k.Body {
		if in.Op != ir.LoadAt && (in.Op != ir.Load || in.Args[0] == ir.None) {
			continue
		}
		if i := uint32(in.Imm); p.v.Class[i] != codegen.Staged {
			p.v.Class = slices.Clone(p.v.Class)
			p.v.Class[i] = codegen.Staged
		}
	}
}

// laneArgs are the arguments of all such loads: memory, operand, the position of the first lane,
// the step to the next, and the number of valid lanes.
func (p *printer) laneArgs(i uint32, at string) string {
	return fmt.Sprintf("p%d, a, %d, q%d + %s * s%d, s%d, n - done - %s", i, i, i, at, i, i, at)
}

// guardedStep is a load whose guard is in vals.
func (p *printer) guardedStep(in ir.Instr, vals []operand, at string) operand {
	guard := p.vec.mask(vals[in.Args[0]], 4)
	x := p.help.guardedLoad(in.DT, p.laneArgs(uint32(in.Imm), at)+", "+guard)
	return operand{x, in.DT, 4}
}

// guardedLoad defines a load of the lanes whose guard is set; the others are 0. If no guard is set,
// nothing is loaded. Neighbouring elements are loaded as a vector, with a masked load if the
// processor has one.
func (h *helpers) guardedLoad(dt ir.DType, args string) string {
	name := "guarded_load_" + moved(dt)
	whole := fmt.Sprintf("*(const m_%s *)(p + q)", short(dt))
	if _, ok := narrow(dt); ok {
		whole = h.widen(dt, "p + q")
	}
	any, absent := h.call("any", true, ir.Int32, "guard"), h.call("any", true, ir.Int32, "~guard")
	h.define(name, func() string {
		some := ""
		if _, small := narrow(dt); !small {
			some = fmt.Sprintf("\tif (s == 1 && a->ops[k].nstages == 0)\n\t\treturn %s;\n", h.loadSome(dt, "p + q", "guard & "+h.first("n")))
		}
		return fmt.Sprintf(`static __attribute__((noinline)) v_%[1]s %[2]s_lanes(const %[3]s *p, const mr_args *a, mr_i64 k, mr_i64 q, mr_i64 s, mr_i64 n, v_i32 guard)
{
	const mr_operand *o = a->ops + k;
	_Alignas(64) s_%[1]s t[%[4]d] = {0};
	for (mr_i64 l = 0; l < %[4]d && l < n; l++)
		if (guard[l])
			t[l] = p[o->nstages == 0 ? q + l * s : mr_staged(o, q + l * s)];
	return *(const m_%[1]s *)t;
}

static inline __attribute__((always_inline)) v_%[1]s %[2]s(const %[3]s *p, const mr_args *a, mr_i64 k, mr_i64 q, mr_i64 s, mr_i64 n, v_i32 guard)
{
	if (!%[6]s)
		return (v_%[1]s){0};
	if (!%[7]s && s == 1 && n >= %[4]d && a->ops[k].nstages == 0)
		return (v_%[1]s)%[5]s;
%[8]s	return %[2]s_lanes(p, a, k, q, s, n, guard);
}

`, short(held(dt)), name, ctypes[dt].elem, h.lanes, whole, any, absent, some)
	})
	return fromMemory(dt, name+"("+args+")")
}

// indexedStep is a load through an index, which is in vals, as is the guard if there is one.
func (p *printer) indexedStep(in ir.Instr, vals []operand, at string) operand {
	index, guard := vals[in.Args[0]], fmt.Sprintf("(v_i32){%s}", each(p.lanes, "-1"))
	if in.Args[1] != ir.None {
		guard = p.vec.mask(vals[in.Args[1]], 4)
	}
	x := p.help.indexedLoad(in.DT, index.dt, codegen.ModeOf(in),
		p.laneArgs(uint32(in.Imm), at)+", "+index.expr+", "+guard)
	return operand{x, in.DT, 4}
}

// outOfRange is the handling of an index i that is not below o->isize.
var outOfRange = [ir.NumIndexModes]string{
	ir.IndexError: "mr_note_fault(a, k, i);\n\t\t\tcontinue;",
	ir.IndexClamp: "i = i < 0 ? 0 : o->isize - 1;",
	ir.IndexDrop:  "continue;",
}

// indexedLoad defines a load in which each lane has an index. If all lanes of neighbouring elements
// have the same index, as when whole rows of a table are looked up, they are loaded as one vector.
// If all indices are in range, which is the usual case, no lane is tested separately.
func (h *helpers) indexedLoad(dt, index ir.DType, mode ir.IndexMode, args string) string {
	name := fmt.Sprintf("load_%v_%s_%s", mode, moved(dt), short(index))
	whole := fmt.Sprintf("*(const m_%s *)(p + q)", short(dt))
	if _, ok := narrow(dt); ok {
		whole = h.widen(dt, "p + q")
	}
	h.define(name, func() string {
		return fmt.Sprintf(`static v_%[1]s %[2]s(const %[3]s *p, const mr_args *a, mr_i64 k, mr_i64 q, mr_i64 s, mr_i64 n, v_%[5]s index, v_i32 guard)
{
	const mr_operand *o = a->ops + k;
	_Alignas(64) s_%[1]s t[%[4]d] = {0};
	const mr_i64 one = index[0];
	int inside = n >= %[4]d && o->nstages == 0, same = s == 1;
	for (int l = 0; l < %[4]d; l++) {
		inside &= (guard[l] != 0) & ((mr_u64)index[l] < (mr_u64)o->isize);
		same &= index[l] == one;
	}
	if (inside && same) {
		q += one * o->istride;
		return (v_%[1]s)%[7]s;
	}
	if (inside) {
		for (int l = 0; l < %[4]d; l++)
			t[l] = p[q + l * s + index[l] * o->istride];
		return *(const m_%[1]s *)t;
	}
	for (mr_i64 l = 0; l < %[4]d && l < n; l++) {
		mr_i64 i = index[l];
		if (!guard[l])
			continue;
		if ((mr_u64)i >= (mr_u64)o->isize) {
			%[6]s
		}
		t[l] = p[mr_staged(o, q + l * s) + i * o->istride];
	}
	return *(const m_%[1]s *)t;
}

`, short(held(dt)), name, ctypes[dt].elem, h.lanes, short(index), outOfRange[mode], whole)
	})
	return fromMemory(dt, name+"("+args+")")
}
