package cgo

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// Loads and stores of some lanes of a vector, if the other lanes may have no memory: with a guard,
// or in the rest of a row. The bodies are listed by an element's bytes and the number of lanes; p
// is memory, g the guard, $v the vector's type.
var loadSomeBuiltins = map[lanesOf]builtin{
	{4, 4}: {"__AVX__", `typedef float w __attribute__((vector_size(16)));
	typedef int i __attribute__((vector_size(16)));
	return ($v)__builtin_ia32_maskloadps((const w *)p, (i)g);`},
	{4, 8}: {"__AVX__", `typedef float w __attribute__((vector_size(32)));
	typedef int i __attribute__((vector_size(32)));
	return ($v)__builtin_ia32_maskloadps256((const w *)p, (i)g);`},
	{8, 4}: {"__AVX__", `typedef double w __attribute__((vector_size(32)));
	typedef long long i __attribute__((vector_size(32)));
	return ($v)__builtin_ia32_maskloadpd256((const w *)p, (i)__builtin_convertvector(g, v_i64));`},
	{4, 16}: {"__AVX512F__", `typedef float w __attribute__((vector_size(64)));
	typedef int i __attribute__((vector_size(64)));
	return ($v)__builtin_ia32_loadups512_mask((const float *)p, (w){0}, __builtin_ia32_ptestmd512((i)g, (i)g, -1));`},
	{8, 8}: {"__AVX512VL__", `typedef double w __attribute__((vector_size(64)));
	typedef int i __attribute__((vector_size(32)));
	return ($v)__builtin_ia32_loadupd512_mask((const double *)p, (w){0}, __builtin_ia32_ptestmd256((i)g, (i)g, -1));`},
}

var storeSomeBuiltins = map[lanesOf]builtin{
	{4, 4}: {"__AVX__", `typedef float w __attribute__((vector_size(16)));
	typedef int i __attribute__((vector_size(16)));
	__builtin_ia32_maskstoreps((w *)p, (i)g, (w)x);`},
	{4, 8}: {"__AVX__", `typedef float w __attribute__((vector_size(32)));
	typedef int i __attribute__((vector_size(32)));
	__builtin_ia32_maskstoreps256((w *)p, (i)g, (w)x);`},
	{8, 4}: {"__AVX__", `typedef double w __attribute__((vector_size(32)));
	typedef long long i __attribute__((vector_size(32)));
	__builtin_ia32_maskstorepd256((w *)p, (i)__builtin_convertvector(g, v_i64), (w)x);`},
	{4, 16}: {"__AVX512F__", `typedef float w __attribute__((vector_size(64)));
	typedef int i __attribute__((vector_size(64)));
	__builtin_ia32_storeups512_mask((float *)p, (w)x, __builtin_ia32_ptestmd512((i)g, (i)g, -1));`},
	{8, 8}: {"__AVX512VL__", `typedef double w __attribute__((vector_size(64)));
	typedef int i __attribute__((vector_size(32)));
	__builtin_ia32_storeupd512_mask((double *)p, (w)x, __builtin_ia32_ptestmd256((i)g, (i)g, -1));`},
}

// first is a guard of the first n lanes, or of all if n is more.
func (h *helpers) first(n string) string {
	h.define("first", func() string {
		return fmt.Sprintf("%sv_i32 first(mr_i64 n)\n{\n\treturn (v_i32){%s} < %s;\n}\n\n", inline,
			each(h.lanes, "$"), h.call("splat", true, ir.Int32, fmt.Sprintf("(mr_i32)(n < %[1]d ? n : %[1]d)", h.lanes)))
	})
	return "first(" + n + ")"
}

// loadSome reads the lanes whose guard is set from consecutive elements; the others are 0. Elements
// must be as large as values.
func (h *helpers) loadSome(dt ir.DType, p, guard string) string {
	t := ctypes[dt]
	name := "load_some_" + t.short
	h.define(name, func() string {
		native, ok := loadSomeBuiltins[lanesOf{t.size, h.lanes}]
		native.body = strings.ReplaceAll(native.body, "$v", "v_"+t.short)
		return fmt.Sprintf("%sv_%s %s(const %s *p, v_i32 g)\n{\n", inline, t.short, name, t.elem) +
			guarded(native, ok, fmt.Sprintf("_Alignas(64) s_%[1]s t[%[2]d] = {0};\n\tfor (int l = 0; l < %[2]d; l++)\n\t\tif (g[l])\n\t\t\tt[l] = p[l];\n\treturn *(const m_%[1]s *)t;",
				t.short, h.lanes)) + "}\n\n"
	})
	return name + "(" + p + ", " + guard + ")"
}

// storeSome writes the lanes of x whose guard is set.
func (h *helpers) storeSome(dt ir.DType, p, x, guard string) string {
	t := ctypes[dt]
	name := "store_some_" + t.short
	h.define(name, func() string {
		native, ok := storeSomeBuiltins[lanesOf{t.size, h.lanes}]
		return fmt.Sprintf("%svoid %s(%s *p, v_%s x, v_i32 g)\n{\n", inline, name, t.elem, t.short) +
			guarded(native, ok, fmt.Sprintf("for (int l = 0; l < %d; l++)\n\t\tif (g[l])\n\t\t\tp[l] = x[l];", h.lanes)) + "}\n\n"
	})
	return name + "(" + p + ", " + x + ", " + guard + ")"
}
