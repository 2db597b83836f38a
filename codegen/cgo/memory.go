package cgo

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// Elements of one byte are widened when loaded and narrowed when stored. GCC
// takes such conversions apart lane by lane, hence the builtins.
var widenBuiltins = map[int]builtin{
	4: {"__SSE4_1__", `typedef char w __attribute__((vector_size(16)));
	typedef int i __attribute__((vector_size(16)));
	mr_u32 x;
	__builtin_memcpy(&x, p, 4);
	return (v_u32)__builtin_ia32_pmovzxbd128((w)(i){(int)x});`},
	8: {"__AVX2__", `typedef char w __attribute__((vector_size(16)));
	typedef long long i __attribute__((vector_size(16)));
	mr_u64 x;
	__builtin_memcpy(&x, p, 8);
	return (v_u32)__builtin_ia32_pmovzxbd256((w)(i){(long long)x});`},
	16: {"__AVX512F__", `typedef char w __attribute__((vector_size(16)));
	typedef char u __attribute__((vector_size(16), aligned(1), may_alias));
	typedef int i __attribute__((vector_size(64)));
	return (v_u32)__builtin_ia32_pmovzxbd512_mask((w)*(const u *)p, (i){0}, -1);`},
}

var narrowBuiltins = map[int]builtin{
	4: {"__SSSE3__", `typedef char w __attribute__((vector_size(16)));
	const w low = {0, 4, 8, 12};
	const v_u32 y = (v_u32)__builtin_ia32_pshufb128((w)x, low);
	const mr_u32 z = y[0];
	__builtin_memcpy(p, &z, 4);`},
	8: {"__AVX2__", `typedef char w __attribute__((vector_size(32)));
	const w low = {0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 8, 12};
	const v_u32 y = (v_u32)__builtin_ia32_pshufb256((w)x, low);
	const mr_u64 z = y[0] | (mr_u64)y[4] << 32;
	__builtin_memcpy(p, &z, 8);`},
	16: {"__AVX512F__", `typedef char w __attribute__((vector_size(16)));
	typedef char u __attribute__((vector_size(16), aligned(1), may_alias));
	typedef int i __attribute__((vector_size(64)));
	*(u *)p = __builtin_ia32_pmovdb512_mask((i)x, (w){0}, -1);`},
}

// guarded is a body with a builtin where the compiler has it.
func guarded(native builtin, ok bool, generic string) string {
	if !ok {
		return "\t" + generic + "\n"
	}
	return fmt.Sprintf("#if defined %s && !defined __clang__\n\t%s\n#else\n\t%s\n#endif\n", native.macro, native.body, generic)
}

// widen and narrow move a vector's worth of bytes.
func (h *helpers) widen(p string) string {
	h.define("widen", func() string {
		native, ok := widenBuiltins[h.lanes]
		return inline + "v_u32 widen(const mr_u8 *p)\n{\n" +
			guarded(native, ok, "return __builtin_convertvector(*(const m_u8 *)p, v_u32);") + "}\n\n"
	})
	return "widen(" + p + ")"
}

func (h *helpers) narrow(p, x string) string {
	h.define("narrow", func() string {
		native, ok := narrowBuiltins[h.lanes]
		return inline + "void narrow(mr_u8 *p, v_u32 x)\n{\n" +
			guarded(native, ok, "*(m_u8 *)p = __builtin_convertvector(x, v_u8);") + "}\n\n"
	})
	return "narrow(" + p + ", " + x + ")"
}

// fromMemory turns loaded numbers into values: bytes of a Bool into a mask.
func fromMemory(dt ir.DType, x string) string {
	if dt == ir.Bool {
		return "(v_i32)-" + x
	}
	return x
}

// load reads a vector of consecutive elements at p.
func (h *helpers) load(dt ir.DType, p string) string {
	if ctypes[dt].mem == 1 {
		return fromMemory(dt, h.widen(p))
	}
	return fmt.Sprintf("*(const m_%s *)(%s)", short(dt), p)
}

// gather reads a vector of elements s apart.
func (h *helpers) gather(dt ir.DType, p, s string) string {
	held, name := dt, "gather_"+short(dt)
	if ctypes[dt].mem == 1 {
		held, name = ir.Uint8, "gather_u8"
	}
	h.define(name, func() string {
		return fmt.Sprintf("%sv_%s %s(const %s *p, mr_i64 s)\n{\n\t%s\n}\n\n",
			inline, short(held), name, ctypes[dt].elem, list(held, h.lanes, "p[$ * s]"))
	})
	return fromMemory(dt, fmt.Sprintf("%s(%s, %s)", name, p, s))
}

// splatLoad reads one element into every lane.
func (h *helpers) splatLoad(dt ir.DType, p string) string {
	held := dt
	if ctypes[dt].mem == 1 {
		held = ir.Uint8
	}
	return fromMemory(dt, h.call("splat", true, held, "*"+p))
}

// stored is a value as its memory's number: Bool as 0 and 1, in 32 bits.
func (h *helpers) stored(v operand) string {
	if v.dt != ir.Bool {
		return v.expr
	}
	s := speller{vec: true, help: h}
	return fmt.Sprintf("((v_u32)%s & %s)", s.mask(v, 4), h.call("splat", true, ir.Uint32, "1u"))
}

// store writes a vector of consecutive elements.
func (h *helpers) store(v operand, p string) string {
	if ctypes[v.dt].mem == 1 {
		return h.narrow(p, h.stored(v)) + ";"
	}
	return fmt.Sprintf("*(m_%s *)(%s) = %s;", short(v.dt), p, v.expr)
}

// scatter writes a vector of elements s apart.
func (h *helpers) scatter(v operand, p, s string) string {
	held, name := v.dt, "scatter_"+short(v.dt)
	if ctypes[v.dt].mem == 1 {
		held, name = ir.Uint8, "scatter_u8"
	}
	h.define(name, func() string {
		var b strings.Builder
		fmt.Fprintf(&b, "%svoid %s(%s *p, mr_i64 s, v_%s x)\n{\n", inline, name, ctypes[v.dt].elem, short(held))
		for l := range h.lanes {
			fmt.Fprintf(&b, "\tp[%d * s] = (%s)x[%d];\n", l, ctypes[v.dt].elem, l)
		}
		b.WriteString("}\n\n")
		return b.String()
	})
	return fmt.Sprintf("%s(%s, %s, %s);", name, p, s, h.stored(v))
}
