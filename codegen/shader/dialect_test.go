package shader

import (
	"reflect"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/ir"
)

// other is a language unlike WGSL: declarations begin with types, vectors are compared by
// functions, and an if is an expression.
var other = &Dialect{
	Name: "other", Header: "#other\n", Subgroups: "#groups\n", Shuffles: "#shuffles\n", Clusters: "#clusters\n", Matrices: "#matrices $0 $1 $2 $3", Helpers: "#helpers\n",
	Types: map[string]string{
		"f32": "float", "i32": "int", "u32": "uint", "bool": "bool", "wide": "wide",
		"vec4f32": "float4", "vec4i32": "int4", "vec4u32": "uint4", "vec4bool": "bool4",
		"vec4f16": "half4", "vec4bf16": "brain4", "mata": "A", "matb": "B", "matc": "C",
		"u16": "ushort", "u8": "byte", "vec4u16": "ushort4", "vec4u8": "byte4",
	},
	Ops: map[string]string{
		"select": "($2 ? $1 : $0)", "select4": "mix($0, $1, $2)", "bits": "as_$0($1)",
		"lt": "$0 < $1", "lt4": "less($0, $1)", "and": "$0 && $1", "and4": "both($0, $1)", "gt4": "less($1, $0)", "not4": "not($0)",
	},
	Let: "const $1 $0 = $2;", Var: "$1 $0 = $2;", Declare: "$1 $0;", Array: "$1 $0[$2];",
	For: "for ($0 = $1; $2; $0 = $3) {", Func: "$2 $0($1) {", Proc: "void $0($1) {", Param: "$1 $0", Barrier: "barrier();",
	Invocations: "each($0) {", Groups: "groups($0) {",
	Read: "in $0 $2 $1[];", ReadWrite: "inout $0 $2 $1[];", Faults: "inout $0 uint $1[];", Words: "uniform $0 uint4 p[$1];",
	Private: "static $1 $0;", Shared: "shared $1 $0[$2];", Table: "const $1 $0[$2] = {$3};", Wide: "struct wide { $0 l, h; };",
}

func TestNotation(t *testing.T) {
	for _, c := range []struct {
		text      string
		one, four string
	}{
		{"x + 1u", "x + 1u", "x + 1u"},
		{"$F($0) + $vec4i32(2) * $f32($1)", "float(a) + int4(2) * float(b)", "float4(a) + int4(2) * float(b)"},
		{"$Z", "p[1].x", "p[1].x"},
		{"$lt($0, $1)", "a < b", "less(a, b)"},
		{"$select($0, $U(f(x, y)), $and(($lt(a, b)), c))", "((a < b) && c ? uint(f(x, y)) : a)", "mix(a, uint4(f(x, y)), both((less(a, b)), c))"},
		{"$bits($U, $bits($F, x) + y) >> $U(1u)", "as_uint(as_float(x) + y) >> uint(1u)", "as_uint4(as_float4(x) + y) >> uint4(1u)"},
		{"$gt(x, y)", "gt(x, y)", "less(y, x)"},
		{"$none(x)", "none(x)", "none(x)"},
		{"let x $U = $lt($0, y);", "const uint x = a < y;", "const uint4 x = less(a, y);"},
		{"var x $f32 = y;", "float x = y;", "float x = y;"},
		{"var x $B;", "bool x;", "bool4 x;"},
		{"array x $F 4;", "float x[4];", "float4 x[4];"},
		{"for i = f(a, b); i < $Z; i + 2u {", "for (i = f(a, b); i < p[1].x; i = i + 2u) {", "for (i = f(a, b); i < p[1].x; i = i + 2u) {"},
		{"func f(x $F, n $u32) $B {", "bool f(float x, uint n) {", "bool4 f(float4 x, uint n) {"},
		{"func f(x wide) {", "void f(wide x) {", "void f(wide x) {"},
		{"barrier;", "barrier();", "barrier();"},
		{"if (x < y) {", "if (x < y) {", "if (x < y) {"},
		{"x[i].y = letter;", "x[i].y = letter;", "x[i].y = letter;"},
	} {
		for i, want := range []string{c.one, c.four} {
			text := strings.NewReplacer("$0", "a", "$1", "b").Replace(c.text)
			if got := other.line(text, 1+3*i); got != want {
				t.Errorf("%q over %d lanes is %q, want %q", c.text, 1+3*i, got, want)
			}
			if got := other.fill(c.text, 1+3*i, "a", "b"); i == 0 && !strings.Contains(c.text, ";") && c.text[0] == '$' && got != want {
				t.Errorf("%q with operands is %q, want %q", c.text, got, want)
			}
		}
	}
	if got, want := other.block("\nif (x) {\n\tlet y $u32 = 1u;\n}\n", 4), "\nif (x) {\n\tconst uint y = 1u;\n}\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTexts checks that spelled texts contain nothing of the notation.
func TestTexts(t *testing.T) {
	seen := func(what, text string) {
		if strings.ContainsAny(text, "$") || strings.Contains(text, "let ") {
			t.Errorf("%s: %s", what, text)
		}
	}
	for _, lanes := range []int{1, 4} {
		for _, h := range helpers {
			seen(h.name, other.block(h.text, lanes))
		}
		for _, list := range spellings {
			for _, s := range list {
				seen(s.op.String(), other.fill(strings.ReplaceAll(s.text, "$T", "$F"), lanes, "a", "b", "c"))
			}
		}
	}
	for step := SortKeys; step <= SortPlace; step++ {
		text, _, err := SortShader{Step: step, DT: ir.Float32, Descending: true}.Print(other)
		if err != nil {
			t.Fatal(err)
		}
		seen("a sort", text)
		if !strings.HasPrefix(text, other.Header+other.Helpers) {
			t.Errorf("no header: %s", text)
		}
	}
	// No field of this dialect is empty.
	v := reflect.ValueOf(*other)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s is empty", v.Type().Field(i).Name)
		}
	}
}
