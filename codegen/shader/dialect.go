package shader

import (
	"strconv"
	"strings"
)

// Dialect describes how a shading language differs from the notation that this package writes. The
// notation contains what such languages have in common: names, typed literals, operators of
// numbers, calls, "if (x) {" and assignments. For the rest it has words of its own.
//
// In expressions they begin with $:
//
//	$u32 $vec4u32      types (f32, i32, u32, bool), which also convert: $f32(x)
//	$F $U $I $B        those types over the lanes at hand
//	$0 $1 $2           operands, where there are any
//	$Z                 a run-time word that is zero
//	$name(x, y)        operations of [Dialect.Ops]; what is not in there is a
//	                   function of that name
//
// Statements begin with a word, which is a field of Dialect:
//
//	let NAME TYPE = VALUE;
//	var NAME TYPE = VALUE;
//	var NAME TYPE;
//	array NAME TYPE LENGTH;
//	for NAME = FIRST; CONDITION; NEXT {
//	func NAME(NAME TYPE, NAME TYPE) RESULT {
//	barrier;
//
// Everything is defined before it is used. Over several lanes, comparisons of numbers and logic of
// bools are operations; for one lane they may be operators.
type Dialect struct {
	Name string // with which errors begin
	// Header begins each shader, followed by Subgroups, in shaders that use them, and Helpers.
	// Subgroups is empty if the language has none. Functions on subgroups have the names that all
	// languages use: subgroupAdd, subgroupElect. Shuffles and Clusters follow Subgroups in shaders
	// that shuffle, or that use clustered operations.
	Header, Subgroups, Shuffles, Clusters, Helpers string

	// Matrices declares cooperative matrices of $0 by $2 and $2 by $1 elements of type $3; it is empty
	// if the language has none. Shaders with them have vec4f16 or vec4bf16 in workgroup memory,
	// made by halves(low, high) of two words or halves(floats) of a vec4f32; types mata, matb and
	// matc, which a subgroup holds together; matload, matloadt, matadd and matstore; and sums of matc.
	Matrices string

	// Types spells f32, i32, u32, bool and wide, and the first four also as vec4f32 and so on. A
	// language may have u16, u8, vec4u16 and vec4u8, as elements of bindings only: a load is a u32
	// with zeros in front, and a store keeps the low bits of one.
	Types map[string]string

	// Ops spells operations of $0, $1 and $2: select(no, yes, condition), bits(type, x), lt, le,
	// gt, ge, eq and ne, and, or, xor and not of bools, round to even, and rsqrt. On words of
	// memory there are load(word), store(word, x) and most(word, x), which are atomic. subgroups()
	// is the number of subgroups of a workgroup, subgroup() the number of an invocation's subgroup,
	// member() its number in there, members() the most invocations of one.
	// Operands of logic are names, calls or in brackets, those of comparisons may be sums. Over
	// four lanes an operation may have another spelling, under its name and 4.
	Ops map[string]string

	Let, Var, Declare string // $0 name, $1 type, $2 value
	Array             string // $0 name, $1 type, $2 length
	For               string // $0 name, $1 first value, $2 condition, $3 next value
	Func, Proc        string // $0 name, $1 parameters, $2 result; Proc has none
	Param             string // $0 name, $1 type
	Barrier           string // of a workgroup and its memory

	// Entry points of $0 invocations per workgroup. Invocations has id.x and id.y, the invocation's
	// place in the grid. Groups has the workgroup's place, and lane, the invocation's number in it.
	Invocations, Groups string

	// Globals, each on lines of its own.
	Read, ReadWrite string // bindings: $0 number, $1 name, $2 type of elements
	Faults          string // the binding of atomic words: $0 number, $1 name
	Words           string // run-time words: $0 number, $1 their number divided by four; named p
	Private         string // of an invocation: $0 name, $1 type
	Shared          string // of a workgroup: $0 name, $1 type, $2 length
	Table           string // constants: $0 name, $1 type, $2 length, $3 values
	Wide            string // the type wide of two words $0, named l and h
}

// version changes whenever printed text may change.
const version = 13

// head begins every shader.
func (d *Dialect) head(v *Variant) string {
	text := d.Header
	if v.Subgroups || v.Cluster > 1 || v.Tile.Matrix.Lanes > 0 {
		text += d.Subgroups
	}
	if v.Cluster > 1 {
		text += d.Shuffles
	}
	if v.Clustered {
		text += d.Clusters
	}
	return text + d.Helpers
}

// Printer is part of cache keys.
func (d *Dialect) Printer() string { return d.Name + " " + strconv.Itoa(version) }

// vec spells a scalar type over lanes.
func (d *Dialect) vec(scalar string, lanes int) string {
	if lanes == 1 || scalar == "wide" {
		return d.Types[scalar]
	}
	return d.Types["vec4"+scalar]
}

// letters are the types over lanes.
var letters = map[byte]string{'F': "f32", 'U': "u32", 'I': "i32", 'B': "bool"}

// fill spells an expression of the notation. Text that is already spelled stays the same.
func (d *Dialect) fill(text string, lanes int, args ...string) string {
	before, rest, more := strings.Cut(text, "$")
	if !more {
		return text
	}
	var b strings.Builder
	for more {
		b.WriteString(before)
		n := 1
		switch c := rest[0]; {
		case '0' <= c && c <= '9':
			b.WriteString(args[c-'0'])
		case c == 'Z':
			b.WriteString(runWord(wordZero))
		case letters[c] != "":
			b.WriteString(d.vec(letters[c], lanes))
		default:
			for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] >= 'a' && rest[n] <= 'z') {
				n++
			}
			name := rest[:n]
			if t, ok := d.Types[name]; ok {
				b.WriteString(t)
				break
			}
			list, end := operands(rest[n:])
			for i := range list {
				list[i] = d.fill(list[i], lanes, args...)
			}
			b.WriteString(d.call(name, lanes, list...))
			n += end
		}
		before, rest, more = strings.Cut(rest[n:], "$")
	}
	b.WriteString(before)
	return b.String()
}

// call spells an operation over lanes.
func (d *Dialect) call(name string, lanes int, args ...string) string {
	text, ok := "", false
	if lanes > 1 {
		text, ok = d.Ops[name+"4"]
	}
	if !ok {
		text, ok = d.Ops[name]
	}
	if !ok {
		return name + "(" + strings.Join(args, ", ") + ")"
	}
	return d.fill(text, lanes, args...)
}

// operands splits "(a, b(c, d))…" into its operands; end is the offset behind them.
func operands(text string) (list []string, end int) {
	depth, from := 0, min(1, len(text))
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return append(list, text[from:i]), i + 1
			}
		case ',':
			if depth == 1 {
				list = append(list, text[from:i])
				from = i + 2 // a blank follows
			}
		}
	}
	return append(list, text[from:]), len(text)
}

// line spells a statement of the notation.
func (d *Dialect) line(text string, lanes int) string {
	keyword, rest, _ := strings.Cut(text, " ")
	switch keyword {
	case "let", "var", "array":
		name, rest, _ := strings.Cut(strings.TrimSuffix(rest, ";"), " ")
		typ, value, more := strings.Cut(rest, " = ")
		form := d.Declare
		switch {
		case keyword == "let":
			form = d.Let
		case keyword == "array":
			form = d.Array
			typ, value, _ = strings.Cut(rest, " ")
		case more:
			form = d.Var
		}
		return d.fill(form, lanes, name, d.fill(typ, lanes), d.fill(value, lanes))
	case "for":
		name, rest, _ := strings.Cut(strings.TrimSuffix(rest, " {"), " = ")
		parts := strings.SplitN(d.fill(rest, lanes), "; ", 3)
		return d.fill(d.For, lanes, name, parts[0], parts[1], parts[2])
	case "func":
		name, rest, _ := strings.Cut(rest, "(")
		params, result, _ := strings.Cut(rest, ")")
		list := strings.Split(params, ", ")
		for i, p := range list {
			name, typ, _ := strings.Cut(p, " ")
			list[i] = d.fill(d.Param, lanes, name, d.fill(typ, lanes))
		}
		form := d.Func
		if result = strings.Trim(result, " {"); result == "" {
			form = d.Proc
		}
		return d.fill(form, lanes, name, strings.Join(list, ", "), d.fill(result, lanes))
	case "barrier;":
		return d.Barrier
	}
	return d.fill(text, lanes)
}

// block spells lines of the notation.
func (d *Dialect) block(text string, lanes int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		code := strings.TrimLeft(line, "\t")
		b.WriteString(line[:len(line)-len(code)])
		b.WriteString(d.line(strings.TrimSuffix(code, "\n"), lanes))
		b.WriteByte('\n')
	}
	return b.String()
}
