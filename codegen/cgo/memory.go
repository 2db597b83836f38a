package cgo

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// Elements smaller than their values are widened when loaded and narrowed when stored. GCC compiles
// such conversions lane by lane, so these builtins replace them, by an element's bytes and the
// number of lanes. $s is s or z, for signed or unsigned.
type lanesOf struct{ bytes, lanes int }

var widenBuiltins = map[lanesOf]builtin{
	{1, 4}: {"__SSE4_1__", `typedef char w __attribute__((vector_size(16)));
	typedef int i __attribute__((vector_size(16)));
	mr_u32 x;
	__builtin_memcpy(&x, p, 4);
	return ($v)__builtin_ia32_pmov$sxbd128((w)(i){(int)x});`},
	{1, 8}: {"__AVX2__", `typedef char w __attribute__((vector_size(16)));
	typedef long long i __attribute__((vector_size(16)));
	mr_u64 x;
	__builtin_memcpy(&x, p, 8);
	return ($v)__builtin_ia32_pmov$sxbd256((w)(i){(long long)x});`},
	{1, 16}: {"__AVX512F__", `typedef char w __attribute__((vector_size(16)));
	typedef char u __attribute__((vector_size(16), aligned(1), may_alias));
	typedef int i __attribute__((vector_size(64)));
	return ($v)__builtin_ia32_pmov$sxbd512_mask((w)*(const u *)p, (i){0}, -1);`},
	{2, 4}: {"__SSE4_1__", `typedef short w __attribute__((vector_size(16)));
	typedef long long i __attribute__((vector_size(16)));
	mr_u64 x;
	__builtin_memcpy(&x, p, 8);
	return ($v)__builtin_ia32_pmov$sxwd128((w)(i){(long long)x});`},
	{2, 8}: {"__AVX2__", `typedef short w __attribute__((vector_size(16)));
	typedef short u __attribute__((vector_size(16), aligned(2), may_alias));
	return ($v)__builtin_ia32_pmov$sxwd256((w)*(const u *)p);`},
	{2, 16}: {"__AVX512F__", `typedef short w __attribute__((vector_size(32)));
	typedef short u __attribute__((vector_size(32), aligned(2), may_alias));
	typedef int i __attribute__((vector_size(64)));
	return ($v)__builtin_ia32_pmov$sxwd512_mask((w)*(const u *)p, (i){0}, -1);`},
}

var narrowBuiltins = map[lanesOf]builtin{
	{2, 4}: {"__SSSE3__", `typedef char w __attribute__((vector_size(16)));
	typedef long long i __attribute__((vector_size(16)));
	const w low = {0, 1, 4, 5, 8, 9, 12, 13};
	const mr_u64 z = (mr_u64)((i)__builtin_ia32_pshufb128((w)x, low))[0];
	__builtin_memcpy(p, &z, 8);`},
	{2, 8}: {"__AVX2__", `typedef char w __attribute__((vector_size(32)));
	typedef long long i __attribute__((vector_size(32)));
	const w low = {0, 1, 4, 5, 8, 9, 12, 13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 5, 8, 9, 12, 13};
	const i y = (i)__builtin_ia32_pshufb256((w)x, low);
	const mr_u64 z[2] = {(mr_u64)y[0], (mr_u64)y[2]};
	__builtin_memcpy(p, z, 16);`},
	{2, 16}: {"__AVX512F__", `typedef short w __attribute__((vector_size(32)));
	typedef short u __attribute__((vector_size(32), aligned(2), may_alias));
	typedef int i __attribute__((vector_size(64)));
	*(u *)p = __builtin_ia32_pmovdw512_mask((i)x, (w){0}, -1);`},
	{1, 4}: {"__SSSE3__", `typedef char w __attribute__((vector_size(16)));
	const w low = {0, 4, 8, 12};
	const v_u32 y = (v_u32)__builtin_ia32_pshufb128((w)x, low);
	const mr_u32 z = y[0];
	__builtin_memcpy(p, &z, 4);`},
	{1, 8}: {"__AVX2__", `typedef char w __attribute__((vector_size(32)));
	const w low = {0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 8, 12};
	const v_u32 y = (v_u32)__builtin_ia32_pshufb256((w)x, low);
	const mr_u64 z = y[0] | (mr_u64)y[4] << 32;
	__builtin_memcpy(p, &z, 8);`},
	{1, 16}: {"__AVX512F__", `typedef char w __attribute__((vector_size(16)));
	typedef char u __attribute__((vector_size(16), aligned(1), may_alias));
	typedef int i __attribute__((vector_size(64)));
	*(u *)p = __builtin_ia32_pmovdb512_mask((i)x, (w){0}, -1);`},
}

// guarded is a body that uses a builtin if the compiler has it.
func guarded(native builtin, ok bool, generic string) string {
	if !ok {
		return "\t" + generic + "\n"
	}
	return fmt.Sprintf("#if defined %s && !defined __clang__\n\t%s\n#else\n\t%s\n#endif\n", native.macro, native.body, generic)
}

// widen loads a vector of small elements and widens them.
func (h *helpers) widen(dt ir.DType, p string) string {
	elem, _ := narrow(dt)
	v, extend := "v_u32", "z"
	if held(dt).IsSigned() && dt.IsInt() {
		v, extend = "v_i32", "s"
	}
	h.define("widen_"+elem, func() string {
		native, ok := widenBuiltins[lanesOf{ctypes[dt].mem, h.lanes}]
		native.body = strings.NewReplacer("$v", v, "$s", extend).Replace(native.body)
		return fmt.Sprintf("%s%s widen_%s(const mr_%s *p)\n{\n", inline, v, elem, elem) +
			guarded(native, ok, fmt.Sprintf("return __builtin_convertvector(*(const m_%s *)p, %s);", elem, v)) + "}\n\n"
	})
	return "widen_" + elem + "(" + p + ")"
}

// narrow stores the low bits of values, whatever their sign.
func (h *helpers) narrow(dt ir.DType, p, x string) string {
	elem := fmt.Sprintf("u%d", 8*ctypes[dt].mem)
	h.define("narrow_"+elem, func() string {
		native, ok := narrowBuiltins[lanesOf{ctypes[dt].mem, h.lanes}]
		return fmt.Sprintf("%svoid narrow_%s(mr_%s *p, v_u32 x)\n{\n", inline, elem, elem) +
			guarded(native, ok, fmt.Sprintf("*(m_%s *)p = __builtin_convertvector(x, v_%s);", elem, elem)) + "}\n\n"
	})
	if name, _ := narrow(dt); name != elem {
		p, x = "(mr_"+elem+" *)("+p+")", "(v_u32)"+x
	}
	return "narrow_" + elem + "(" + p + ", " + x + ")"
}

// fromMemory converts loaded numbers to values: the bytes of a Bool to a mask.
func fromMemory(dt ir.DType, x string) string {
	if dt == ir.Bool {
		return "(v_i32)-" + x
	}
	return x
}

// load reads a vector of consecutive elements at p.
func (h *helpers) load(dt ir.DType, p string) string {
	if _, ok := narrow(dt); ok {
		return fromMemory(dt, h.widen(dt, p))
	}
	return fmt.Sprintf("*(const m_%s *)(%s)", short(dt), p)
}

// gather reads a vector of elements s apart.
func (h *helpers) gather(dt ir.DType, p, s string) string {
	name := "gather_" + moved(dt)
	h.define(name, func() string {
		return fmt.Sprintf("%sv_%s %s(const %s *p, mr_i64 s)\n{\n\t%s\n}\n\n",
			inline, short(held(dt)), name, ctypes[dt].elem, list(held(dt), h.lanes, "p[$ * s]"))
	})
	return fromMemory(dt, fmt.Sprintf("%s(%s, %s)", name, p, s))
}

// splatLoad reads one element into every lane.
func (h *helpers) splatLoad(dt ir.DType, p string) string {
	return fromMemory(dt, h.call("splat", true, held(dt), "*"+p))
}

// stored is a value as the number that memory holds: a Bool as 0 or 1, in 32 bits.
func (h *helpers) stored(v operand) string {
	if v.dt != ir.Bool {
		return v.expr
	}
	s := speller{vec: true, help: h}
	return fmt.Sprintf("((v_u32)%s & %s)", s.mask(v, 4), h.call("splat", true, ir.Uint32, "1u"))
}

// store writes a vector of consecutive elements.
func (h *helpers) store(v operand, p string) string {
	if _, ok := narrow(v.dt); ok {
		return h.narrow(v.dt, p, h.stored(v)) + ";"
	}
	return fmt.Sprintf("*(m_%s *)(%s) = %s;", short(v.dt), p, v.expr)
}

// streamBuiltins store past the caches, by the bytes of a vector.
var streamBuiltins = map[int]builtin{
	16: {"__SSE__", "__builtin_ia32_movntps((float *)p, (w)x);"},
	32: {"__AVX__", "__builtin_ia32_movntps256((float *)p, (w)x);"},
	64: {"__AVX512F__", "__builtin_ia32_movntps512((float *)p, (w)x);"},
}

// stream writes a vector of consecutive elements, past the caches if the compiler can. p must be a
// multiple of the vector's size.
func (h *helpers) stream(v operand, p string) string {
	dt := short(v.dt)
	name := "stream_" + dt
	h.define(name, func() string {
		bytes := h.lanes * ctypes[v.dt].mem
		wide, past := "", "" // in the form that the builtin takes, if there is one
		if native, ok := streamBuiltins[bytes]; ok {
			wide = fmt.Sprintf("\ttypedef float w __attribute__((vector_size(%d)));\n", bytes)
			past = "#elif defined " + native.macro + "\n\t" + native.body + "\n"
		}
		return fmt.Sprintf(`%[1]svoid %[2]s(%[3]s *p, v_%[4]s x)
{
%[5]s#if defined __clang__
	__builtin_nontemporal_store(x, (v_%[4]s *)p);
%[6]s#else
	*(m_%[4]s *)p = x;
#endif
}

`, inline, name, ctypes[v.dt].elem, dt, wide, past)
	})
	return name + "(" + p + ", " + v.expr + ");"
}

// scatter writes a vector of elements s apart.
func (h *helpers) scatter(v operand, p, s string) string {
	name := "scatter_" + moved(v.dt)
	h.define(name, func() string {
		var b strings.Builder
		fmt.Fprintf(&b, "%svoid %s(%s *p, mr_i64 s, v_%s x)\n{\n", inline, name, ctypes[v.dt].elem, short(held(v.dt)))
		for l := range h.lanes {
			fmt.Fprintf(&b, "\tp[%d * s] = (%s)x[%d];\n", l, ctypes[v.dt].elem, l)
		}
		b.WriteString("}\n\n")
		return b.String()
	})
	return fmt.Sprintf("%s(%s, %s, %s);", name, p, s, h.stored(v))
}
