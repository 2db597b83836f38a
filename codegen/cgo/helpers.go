package cgo

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// helpers collects the functions and tables that a text uses, in an order in which each definition
// follows those that it needs.
type helpers struct {
	lanes int // of vectors; 0 in scalar texts
	text  strings.Builder
	have  map[string]bool
	err   error
}

func newHelpers(lanes int) *helpers {
	return &helpers{lanes: lanes, have: map[string]bool{}}
}

const inline = "static inline __attribute__((always_inline)) "

// define adds a definition once. It makes the text before it adds it, so definitions that the text
// needs come first.
func (h *helpers) define(name string, text func() string) {
	if h.have[name] {
		return
	}
	h.have[name] = true
	t := text()
	h.text.WriteString(t)
}

// call writes a call of a helper by its name in the tables, for one dtype.
func (h *helpers) call(name string, vec bool, dt ir.DType, args ...string) string {
	mode := "s"
	if vec {
		mode = "v"
	}
	if name == "bits" || name == "tobits" {
		mode = "s"
	}
	full := fmt.Sprintf("%s_%s_%s", name, mode, short(dt))
	h.define(full, func() string {
		var body string
		if mode == "v" {
			body = h.vector(name, full, dt)
		} else {
			body = scalarHelper(name, full, dt)
		}
		if body == "" && h.err == nil {
			h.err = fmt.Errorf("codegen/cgo: no %s of %v", name, dt)
		}
		return body
	})
	return full + "(" + strings.Join(args, ", ") + ")"
}

// vector is the definition of a vector helper. If the table has a builtin of the ISA, the
// definition uses it under the macro that says the compiler has it. Otherwise the helper works lane
// by lane.
func (h *helpers) vector(name, full string, dt ir.DType) string {
	form, ok := vectorForms[name]
	if !ok {
		return ""
	}
	t := ctypes[dt]
	f := form(dt, h.lanes)
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s %s(%s)\n{\n", inline, f.result(t.short), full, f.params)
	native, have := builtins[builtinKey{name, class(dt), t.size * h.lanes}]
	if have {
		fmt.Fprintf(&b, "#if defined %s && !defined __clang__\n", native.macro)
		fmt.Fprintf(&b, "\t%s\n#else\n", strings.ReplaceAll(native.body, "T", "v_"+t.short))
	}
	fmt.Fprintf(&b, "\t%s\n", f.body)
	if have {
		b.WriteString("#endif\n")
	}
	b.WriteString("}\n\n")
	return b.String()
}

// form is a vector helper that works lane by lane.
type form struct {
	params string
	ret    string // the result's type if it differs from the operands'
	body   string
}

func (f form) result(short string) string {
	if f.ret != "" {
		return f.ret
	}
	return "v_" + short
}

// list is a vector written as the list of its lanes.
func list(dt ir.DType, n int, lane string) string {
	return fmt.Sprintf("return (v_%s){%s};", short(dt), each(n, lane))
}

// lanewise is a helper of one to three operands that calls a scalar function.
func lanewise(operands int, lane string) func(ir.DType, int) form {
	return func(dt ir.DType, n int) form {
		var params []string
		for i := range operands {
			params = append(params, fmt.Sprintf("v_%s %c", short(dt), 'a'+i))
		}
		suffix := ""
		if dt == ir.Float32 {
			suffix = "f"
		}
		return form{params: strings.Join(params, ", "), body: list(dt, n, strings.ReplaceAll(lane, "#", suffix))}
	}
}

var vectorForms = map[string]func(dt ir.DType, n int) form{
	"sqrt":  lanewise(1, "__builtin_sqrt#(a[$])"),
	"floor": lanewise(1, "__builtin_floor#(a[$])"),
	"ceil":  lanewise(1, "__builtin_ceil#(a[$])"),
	"round": lanewise(1, "__builtin_rint#(a[$])"), // to nearest even: the FP environment is set around every run
	"trunc": lanewise(1, "__builtin_trunc#(a[$])"),
	"fma":   lanewise(3, "__builtin_fma#(a[$], b[$], c[$])"),
	"quo":   lanewise(2, "a[$] / b[$]"),
	"mod":   lanewise(2, "a[$] % b[$]"),
	"mulhi": lanewise(2, "(mr_u32)((mr_u64)a[$] * b[$] >> 32)"),
	"splat": func(dt ir.DType, n int) form {
		return form{params: "s_" + short(dt) + " a", body: list(dt, n, "a")}
	},
	"sel": func(dt ir.DType, n int) form {
		m := short(signedOf(dt))
		return form{
			params: fmt.Sprintf("v_%s m, v_%s a, v_%s b", m, short(dt), short(dt)),
			body:   fmt.Sprintf("return (v_%s)((m & (v_%s)a) | (~m & (v_%s)b));", short(dt), m, m),
		}
	},
	// min is a < b ? a : b, max is a > b ? a : b.
	"min": extreme("<"),
	"max": extreme(">"),
	// any is true if a lane of a mask is set.
	"any": func(dt ir.DType, n int) form {
		return form{ret: "int", params: "v_" + short(dt) + " a", body: "return (" + strings.ReplaceAll(each(n, "a[$]"), ",", " |") + ") != 0;"}
	},
	"abs": func(dt ir.DType, n int) form {
		s, u := short(dt), short(unsignedOf(dt))
		if dt.IsFloat() {
			return form{params: "v_" + s + " a", body: fmt.Sprintf("return (v_%s)((v_%s)a << 1 >> 1);", s, u)}
		}
		return form{params: "v_" + s + " a", body: fmt.Sprintf("v_%s m = a < 0;\n\treturn (v_%s)(((v_%s)a ^ (v_%s)m) - (v_%s)m);", s, s, u, u, u)}
	},
}

func extreme(op string) func(ir.DType, int) form {
	return func(dt ir.DType, n int) form {
		s, m := short(dt), short(signedOf(dt))
		return form{
			params: "v_" + s + " a, v_" + s + " b",
			body: fmt.Sprintf("const v_%s m = (v_%s)(a %s b);\n\treturn (v_%s)((m & (v_%s)a) | (~m & (v_%s)b));",
				m, m, op, s, m, m),
		}
	}
}

// scalarForms are bodies over a, b, c; # is the suffix of the math functions.
var scalarForms = map[string]struct {
	operands int
	body     string
}{
	"sqrt":  {1, "__builtin_sqrt#(a)"},
	"floor": {1, "__builtin_floor#(a)"},
	"ceil":  {1, "__builtin_ceil#(a)"},
	"round": {1, "__builtin_rint#(a)"},
	"trunc": {1, "__builtin_trunc#(a)"},
	"fma":   {3, "__builtin_fma#(a, b, c)"},
	"quo":   {2, "a / b"},
	"mod":   {2, "a % b"},
	"mulhi": {2, "(mr_u32)((mr_u64)a * b >> 32)"},
}

func scalarHelper(name, full string, dt ir.DType) string {
	s, u := short(dt), short(unsignedOf(dt))
	head := func(ret, params string) string { return fmt.Sprintf("%ss_%s %s(%s)\n{\n\t", inline, ret, full, params) }
	switch name {
	case "bits":
		return head(s, "s_"+u+" a") + fmt.Sprintf("union { s_%s u; s_%s f; } x = { a };\n\treturn x.f;\n}\n\n", u, s)
	case "tobits":
		return head(u, "s_"+s+" a") + fmt.Sprintf("union { s_%s f; s_%s u; } x = { a };\n\treturn x.u;\n}\n\n", s, u)
	case "abs":
		if dt.IsFloat() {
			return head(s, "s_"+s+" a") + fmt.Sprintf("return __builtin_fabs%s(a);\n}\n\n", floatSuffix(dt))
		}
		return head(s, "s_"+s+" a") + fmt.Sprintf("return a < 0 ? (s_%s)-(s_%s)a : a;\n}\n\n", s, u)
	}
	f, ok := scalarForms[name]
	if !ok {
		return ""
	}
	var params []string
	for i := range f.operands {
		params = append(params, fmt.Sprintf("s_%s %c", s, 'a'+i))
	}
	return head(s, strings.Join(params, ", ")) + "return " + strings.ReplaceAll(f.body, "#", floatSuffix(dt)) + ";\n}\n\n"
}

func floatSuffix(dt ir.DType) string {
	if dt == ir.Float32 {
		return "f"
	}
	return ""
}
