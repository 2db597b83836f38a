package cgo

import (
	"fmt"

	"github.com/millrace-go/millrace/ir"
)

// index defines the low or high halves of the positions q, q+1, …, or of q in every lane (step 1 or
// 0). If the low half of a lane wraps, the high half gets a carry.
func (h *helpers) index(shift int, q, step string) string {
	name := fmt.Sprintf("index%d_%s", shift, step)
	splat := func(x string) string { return h.call("splat", true, ir.Uint32, x) }
	h.define(name, func() string {
		lo := splat("(mr_u32)q") + " + " + step + " * (v_u32){" + each(h.lanes, "$") + "}"
		if shift == 0 {
			return fmt.Sprintf("%sv_u32 %s(mr_i64 q)\n{\n\treturn %s;\n}\n\n", inline, name, lo)
		}
		return fmt.Sprintf("%sv_u32 %s(mr_i64 q)\n{\n\tconst v_u32 lo = %s;\n\treturn %s - (v_u32)(lo < %s);\n}\n\n",
			inline, name, lo, splat("(mr_u32)((mr_u64)q >> 32)"), splat("(mr_u32)q"))
	})
	return name + "(" + q + ")"
}

// strideIndex defines the low or high halves of the positions q, q+s, …
func (h *helpers) strideIndex(shift int, args string) string {
	name := fmt.Sprintf("index%d", shift)
	h.define(name, func() string {
		body := list(ir.Uint32, h.lanes, fmt.Sprintf("(mr_u32)((mr_u64)(q + $ * s) >> %d)", shift))
		if shift == 0 { // its higher bits are not used
			splat := func(x string) string { return h.call("splat", true, ir.Uint32, x) }
			body = fmt.Sprintf("return %s + %s * (v_u32){%s};", splat("(mr_u32)q"), splat("(mr_u32)s"), each(h.lanes, "$"))
		}
		return fmt.Sprintf("%sv_u32 %s(mr_i64 q, mr_i64 s)\n{\n\t%s\n}\n\n", inline, name, body)
	})
	return name + "(" + args + ")"
}

// stagedIndex is strideIndex for positions that go through stages.
func (h *helpers) stagedIndex(shift int, args string) string {
	name := fmt.Sprintf("staged_index%d", shift)
	h.define(name, func() string {
		return fmt.Sprintf("%sv_u32 %s(const mr_operand *o, mr_i64 q, mr_i64 s)\n{\n\t%s\n}\n\n", inline, name,
			list(ir.Uint32, h.lanes, fmt.Sprintf("(mr_u32)((mr_u64)mr_staged(o, q + $ * s) >> %d)", shift)))
	})
	return name + "(" + args + ")"
}

// stagedLoad defines a load of n elements (a whole vector or the rest of a row), each found through
// the stages.
func (h *helpers) stagedLoad(dt ir.DType, args string) string {
	name := "staged_load_" + moved(dt)
	h.define(name, func() string {
		return fmt.Sprintf(`static v_%[1]s %[2]s(const %[3]s *p, const mr_operand *o, mr_i64 q, mr_i64 s, mr_i64 n)
{
	_Alignas(64) s_%[1]s t[%[4]d] = {0};
	for (mr_i64 l = 0; l < %[4]d && l < n; l++)
		t[l] = p[mr_staged(o, q + l * s)];
	return *(const m_%[1]s *)t;
}

`, short(held(dt)), name, ctypes[dt].elem, h.lanes)
	})
	return fromMemory(dt, name+"("+args+")")
}

// stagedStore is the store for stagedLoad. If z is set, the innermost dim is guarded and only the
// point at position 0 of it stores.
func (h *helpers) stagedStore(v operand, args string) string {
	name := "staged_store_" + moved(v.dt)
	h.define(name, func() string {
		return fmt.Sprintf(`static void %[2]s(v_%[1]s x, %[3]s *p, const mr_operand *o, mr_i64 q, mr_i64 s, mr_i64 n, int z, mr_i64 at)
{
	_Alignas(64) s_%[1]s t[%[4]d];
	*(m_%[1]s *)t = x;
	for (mr_i64 l = 0; l < %[4]d && l < n; l++)
		if (!z || at + l == 0)
			p[mr_staged(o, q + l * s)] = (%[3]s)t[l];
}

`, short(held(v.dt)), name, ctypes[v.dt].elem, h.lanes)
	})
	return name + "(" + h.stored(v) + ", " + args + ");"
}
