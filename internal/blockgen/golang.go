package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// goPrinter prints block functions in Go: straight-line code for one element, inside a loop over
// arrays of a group's length, which needs no bounds checks. In the texts a dtype is a token until
// goShape makes it a Go type or a type parameter.
type goPrinter struct {
	shared strings.Builder // tables and sub-programs
	subs   map[uint64]bool
	tabs   map[uint64]bool
}

// goTypes are the Go types of values and of elements: a storage float has its bits.
var goTypes = func() (types [ir.NumDTypes]string) {
	for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
		bits := dt
		if dt.IsFloat() && dt.Storage() {
			bits = dt.Unsigned()
		}
		types[dt] = bits.String()
	}
	return types
}()

// goType is the type of a value: a token, except for bool.
func goType(dt ir.DType) string {
	if dt == ir.Bool {
		return "bool"
	}
	return "<" + goTypes[dt] + ">"
}

// goMem is the type of an element in memory.
func goMem(dt ir.DType) string {
	if dt == ir.Bool {
		return "uint8"
	}
	return goType(dt)
}

// block returns a block function's text from its parameters on.
func (p *goPrinter) block(f fn) (string, error) {
	body := goBody{printer: p}
	for i, dt := range f.params {
		x := fmt.Sprintf("p%d[i]", i)
		if dt == ir.Bool {
			x += " != 0"
		}
		body.params = append(body.params, x)
	}
	r, err := body.code(f.prog)
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.name, err)
	}
	if f.result == ir.Bool {
		r = "b2u(" + r + ")"
	}
	values, from := []string{"d"}, []string{"v[in.dst]"}
	groups, at := []string{"out"}, []string{fmt.Sprintf("group[%s](d, g)", goMem(f.result))}
	for i, dt := range f.params {
		if p := fmt.Sprintf("p%d", i); strings.Contains(body.text.String()+r, p+"[i]") {
			values, from = append(values, fmt.Sprintf("s%d", i)), append(from, fmt.Sprintf("v[in.src[%d]]", i))
			groups, at = append(groups, p), append(at, fmt.Sprintf("group[%s](s%d, g)", goMem(dt), i))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "(in *instr, v []value, groups int) {\n\t%s := %s\n", strings.Join(values, ", "), strings.Join(from, ", "))
	fmt.Fprintf(&b, "\tfor g := range groups {\n\t\t%s := %s\n", strings.Join(groups, ", "), strings.Join(at, ", "))
	fmt.Fprintf(&b, "\t\tfor i := range out {\n%s\t\t\tout[i] = %s\n\t\t}\n\t}\n}\n\n", body.text.String(), r)
	return b.String(), nil
}

// sub prints a sub-program as a function, once.
func (p *goPrinter) sub(id uint64) (string, error) {
	s := ir.SubByID(id)
	name := "sub_" + strings.Map(identRune, s.Name)
	if p.subs[id] {
		return name, nil
	}
	p.subs[id] = true
	body := goBody{printer: p}
	var params []string
	for i, dt := range s.Params {
		params = append(params, fmt.Sprintf("p%d %s", i, goType(dt)))
		body.params = append(body.params, fmt.Sprintf("p%d", i))
	}
	r, err := body.code(s)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.Name, err)
	}
	result := s.Code[s.Results[0]].DT
	fmt.Fprintf(&p.shared, "//go:noinline\nfunc %s(%s) %s {\n%s\treturn %s\n}\n\n", name, strings.Join(params, ", "), goType(result), body.text.String(), r)
	return name, nil
}

// table declares a look-up table, once.
func (p *goPrinter) table(id uint64) string {
	t := ir.TableByID(id)
	name := "table_" + strings.Map(identRune, t.Name)
	if !p.tabs[id] {
		p.tabs[id] = true
		loader := goTypes[t.DT] + "Table"
		if t.DT.IsInt() {
			loader = "intTable[" + goTypes[t.DT] + "]"
		}
		fmt.Fprintf(&p.shared, "var %s = %s(%q)\n\n", name, loader, t.Name)
	}
	return name
}

func group(x string) string {
	if strings.Contains(x, " ") {
		return "(" + x + ")"
	}
	return x
}

// goLiteral spells a constant with its type.
func goLiteral(dt ir.DType, bits uint64) string {
	switch dt {
	case ir.Bool:
		return strconv.FormatBool(bits != 0)
	case ir.Float32, ir.Float64:
		v := math.Float64frombits(bits)
		if dt == ir.Float32 {
			v = float64(math.Float32frombits(uint32(bits)))
		}
		if math.IsInf(v, 0) || math.IsNaN(v) || v == 0 && math.Signbit(v) {
			return fmt.Sprintf("math.Float%dfrombits(%#x)", dt.Bits(), bits)
		}
		return fmt.Sprintf("%s(%s)", goType(dt), strconv.FormatFloat(v, 'x', -1, dt.Bits()))
	}
	if dt.IsInt() {
		return fmt.Sprintf("%s(%s)", goType(dt), ir.FormatBits(dt, bits))
	}
	return fmt.Sprintf("%s(%d)", goType(dt), bits)
}
