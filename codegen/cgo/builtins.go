package cgo

import (
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// kind groups dtypes that share a builtin: by width, and floats apart from integers.
type kind string

func class(dt ir.DType) kind {
	switch {
	case dt == ir.Float32:
		return "f32"
	case dt == ir.Float64:
		return "f64"
	case ctypes[dt].size == 8:
		return "i64"
	}
	return "i32"
}

// builtinKey names a helper for vectors of so many bytes.
type builtinKey struct {
	name  string
	kind  kind
	bytes int
}

// builtin is a body that GCC accepts if it defines macro. T stands for the helper's vector type.
type builtin struct{ macro, body string }

// builtins are operations that GCC does not vectorise itself. C has no vector form of them, and
// even loops over them do not become vectors without -fno-math-errno and -fno-trapping-math, which
// cgo refuses.
var builtins = x86()

// x86 fills the table for SSE4.1, AVX and AVX-512, whose builtins differ in the ending of their
// names.
func x86() map[builtinKey]builtin {
	m := map[builtinKey]builtin{}
	modes := map[string]string{"floor": "9", "ceil": "10", "trunc": "11", "round": "8"}
	for k, p := range map[kind]string{"f32": "ps", "f64": "pd"} {
		m[builtinKey{"sqrt", k, 16}] = builtin{"__SSE2__", "return __builtin_ia32_sqrt" + p + "(a);"}
		m[builtinKey{"sqrt", k, 32}] = builtin{"__AVX__", "return __builtin_ia32_sqrt" + p + "256(a);"}
		m[builtinKey{"sqrt", k, 64}] = builtin{"__AVX512F__", "return __builtin_ia32_sqrt" + p + "512_mask(a, a, -1, 4);"}
		m[builtinKey{"fma", k, 16}] = builtin{"__FMA__", "return __builtin_ia32_vfmadd" + p + "(a, b, c);"}
		m[builtinKey{"fma", k, 32}] = builtin{"__FMA__", "return __builtin_ia32_vfmadd" + p + "256(a, b, c);"}
		m[builtinKey{"fma", k, 64}] = builtin{"__AVX512F__", "return __builtin_ia32_vfmadd" + p + "512_mask(a, b, c, -1, 4);"}
		for name, mode := range modes {
			m[builtinKey{name, k, 16}] = builtin{"__SSE4_1__", "return __builtin_ia32_round" + p + "(a, " + mode + ");"}
			m[builtinKey{name, k, 32}] = builtin{"__AVX__", "return __builtin_ia32_round" + p + "256(a, " + mode + ");"}
			m[builtinKey{name, k, 64}] = builtin{"__AVX512F__", "return __builtin_ia32_rndscale" + p + "_mask(a, " + mode + ", a, -1, 4);"}
		}
	}
	for k, p := range map[kind]string{"f32": "ps", "f64": "pd"} {
		for _, name := range []string{"min", "max"} {
			m[builtinKey{name, k, 16}] = builtin{"__SSE2__", "return __builtin_ia32_" + name + p + "(a, b);"}
			m[builtinKey{name, k, 32}] = builtin{"__AVX__", "return __builtin_ia32_" + name + p + "256(a, b);"}
			m[builtinKey{name, k, 64}] = builtin{"__AVX512F__", "return __builtin_ia32_" + name + p + "512_mask(a, b, a, -1, 4);"}
		}
	}
	// Blends exist for floats; on AVX-512 GCC makes one of the logical form.
	for k, f := range map[kind][2]string{"f32": {"float", "ps"}, "i32": {"float", "ps"}, "f64": {"double", "pd"}, "i64": {"double", "pd"}} {
		for _, w := range []struct {
			bytes       int
			macro, tail string
		}{{16, "__SSE4_1__", ""}, {32, "__AVX__", "256"}} {
			size := map[int]string{16: "16", 32: "32"}[w.bytes]
			m[builtinKey{"sel", k, w.bytes}] = builtin{w.macro, "typedef " + f[0] + " w __attribute__((vector_size(" + size + ")));\n" +
				"\treturn (T)__builtin_ia32_blendv" + f[1] + w.tail + "((w)b, (w)a, (w)m);"}
		}
	}
	for k, p := range map[kind][2]string{"i32": {"float", "ps"}, "i64": {"double", "pd"}} {
		m[builtinKey{"any", k, 16}] = builtin{"__SSE2__", "typedef " + p[0] + " w __attribute__((vector_size(16)));\n\treturn __builtin_ia32_movmsk" + p[1] + "((w)a);"}
		m[builtinKey{"any", k, 32}] = builtin{"__AVX__", "typedef " + p[0] + " w __attribute__((vector_size(32)));\n\treturn __builtin_ia32_movmsk" + p[1] + "256((w)a);"}
	}
	m[builtinKey{"any", "i32", 64}] = builtin{"__AVX512F__", "typedef int w __attribute__((vector_size(64)));\n\treturn __builtin_ia32_ptestmd512((w)a, (w)a, -1) != 0;"}
	m[builtinKey{"any", "i64", 64}] = builtin{"__AVX512F__", "typedef long long w __attribute__((vector_size(64)));\n\treturn __builtin_ia32_ptestmq512((w)a, (w)a, -1) != 0;"}
	// The high half: the products of even and of odd lanes, joined.
	for _, w := range []struct {
		bytes       string
		n           int
		macro, call string
	}{
		{"16", 16, "__SSE2__", "__builtin_ia32_pmuludq128(%a, %b)"},
		{"32", 32, "__AVX2__", "__builtin_ia32_pmuludq256(%a, %b)"},
		{"64", 64, "__AVX512F__", "__builtin_ia32_pmuludq512_mask(%a, %b, (q){0}, -1)"},
	} {
		m[builtinKey{"mulhi", "i32", w.n}] = builtin{w.macro, mulhiBody(w.bytes, w.call)}
	}
	return m
}

func mulhiBody(bytes, call string) string {
	product := func(a, b string) string {
		return strings.NewReplacer("%a", "(i)("+a+")", "%b", "(i)("+b+")").Replace(call)
	}
	q := ""
	if strings.Contains(call, "(q)") {
		q = "\ttypedef long long q __attribute__((vector_size(" + bytes + ")));\n"
	}
	return "typedef int i __attribute__((vector_size(" + bytes + ")));\n" + q +
		"\ttypedef unsigned long long u __attribute__((vector_size(" + bytes + ")));\n" +
		"\tconst u even = (u)" + product("a", "b") + ", odd = (u)" + product("(u)a >> 32", "(u)b >> 32") + ";\n" +
		"\treturn (T)(even >> 32 | odd >> 32 << 32);"
}
