package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// goPrinter prints block functions in Go: straight-line code for one element, inside a loop over
// arrays of a group's length, which needs no bounds checks.
type goPrinter struct {
	b    strings.Builder
	subs map[uint64]bool
	tabs map[uint64]bool
}

var goTypes = [ir.NumDTypes]string{
	ir.Bool: "bool", ir.Uint8: "uint8", ir.Int32: "int32", ir.Int64: "int64",
	ir.Uint32: "uint32", ir.Uint64: "uint64", ir.Float32: "float32", ir.Float64: "float64",
	ir.Int8: "int8", ir.Int16: "int16", ir.Uint16: "uint16", ir.Float16: "uint16", ir.BFloat16: "uint16",
}

// goMem is the type of an element in memory.
func goMem(dt ir.DType) string {
	if dt == ir.Bool {
		return "uint8"
	}
	return goTypes[dt]
}

func (p *goPrinter) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// block prints one block function.
func (p *goPrinter) block(f fn) error {
	var body goBody
	for i, dt := range f.params {
		x := fmt.Sprintf("p%d[i]", i)
		if dt == ir.Bool {
			x += " != 0"
		}
		body.params = append(body.params, x)
	}
	results, err := body.code(p, f.prog)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	r := results[0]
	if f.result == ir.Bool {
		r = "b2u(" + r + ")"
	}
	p.printf("func go_%s(in *t0Instr, v []t0Val, groups int) {\n", f.name)
	used := make([]bool, len(f.params))
	for i := range f.params {
		if used[i] = strings.Contains(body.text.String()+r, fmt.Sprintf("p%d[i]", i)); used[i] {
			p.printf("\ts%d := v[in.src[%d]]\n", i, i)
		}
	}
	p.printf("\td := v[in.dst]\n\tfor g := range groups {\n")
	for i, dt := range f.params {
		if used[i] {
			p.printf("\t\tp%d := (*[groupLen]%s)(unsafe.Add(s%d.p, g*s%d.step))\n", i, goMem(dt), i, i)
		}
	}
	p.printf("\t\tout := (*[groupLen]%s)(unsafe.Add(d.p, g*d.step))\n", goMem(f.result))
	p.printf("\t\tfor i := range out {\n%s\t\t\tout[i] = %s\n\t\t}\n\t}\n}\n\n", body.text.String(), r)
	return nil
}

// sub prints a sub-program as a function, once.
func (p *goPrinter) sub(id uint64) (string, error) {
	s := ir.SubByID(id)
	name := "goSub_" + strings.Map(identRune, s.Name)
	if p.subs[id] {
		return name, nil
	}
	p.subs[id] = true
	var body goBody
	var params []string
	for i, dt := range s.Params {
		params = append(params, fmt.Sprintf("p%d %s", i, goTypes[dt]))
		body.params = append(body.params, fmt.Sprintf("p%d", i))
	}
	results, err := body.code(p, s)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.Name, err)
	}
	result := s.Code[s.Results[0]].DT
	p.printf("//go:noinline\nfunc %s(%s) %s {\n%s\treturn %s\n}\n\n", name, strings.Join(params, ", "), goTypes[result], body.text.String(), results[0])
	return name, nil
}

// table declares a look-up table, once.
func (p *goPrinter) table(id uint64) string {
	t := ir.TableByID(id)
	name := "goTable_" + strings.Map(identRune, t.Name)
	if !p.tabs[id] {
		p.tabs[id] = true
		loader := goTypes[t.DT] + "Table"
		if t.DT.IsInt() {
			loader = "intTable[" + goTypes[t.DT] + "]"
		}
		p.printf("var %s = %s(%q)\n\n", name, loader, t.Name)
	}
	return name
}

// goBody is the code of one element.
type goBody struct {
	params []string
	text   strings.Builder
	names  []string
	dts    []ir.DType
}

func (b *goBody) code(p *goPrinter, prog *ir.Prog) ([]string, error) {
	b.names = make([]string, len(prog.Code))
	uses := make([]int, len(prog.Code))
	for _, in := range prog.Code {
		for _, a := range in.Args {
			if a != ir.None {
				uses[a]++
			}
		}
	}
	for i, in := range prog.Code {
		var args []string
		var dts []ir.DType
		for _, a := range in.Args {
			if a != ir.None {
				args = append(args, b.names[a])
				dts = append(dts, prog.Code[a].DT)
			}
		}
		name := fmt.Sprintf("t%d", i)
		var err error
		switch in.Op {
		case ir.Param:
			b.names[i] = b.params[in.Imm]
			if uses[i] < 2 {
				continue
			}
			fmt.Fprintf(&b.text, "\t\t\t%s := %s\n", name, b.params[in.Imm])
		case ir.Const:
			b.names[i] = goLiteral(in.DT, in.Imm)
			continue
		case ir.Where:
			b.choose(name, in.DT, args)
		case ir.FMA:
			b.fma(name, in.DT, args)
		case ir.Rare:
			var sub string
			if sub, err = p.sub(in.Imm); err == nil {
				fmt.Fprintf(&b.text, "\t\t\t%s := %s\n\t\t\tif %s {\n\t\t\t\t%s = %s(%s)\n\t\t\t}\n", name, args[1], args[0], name, sub, strings.Join(args[2:], ", "))
			}
		case ir.Lookup:
			fmt.Fprintf(&b.text, "\t\t\t%s := %s[%s]\n", name, p.table(in.Imm), args[0])
		default:
			var e string
			if e, err = goSpell(in, args, dts); err == nil {
				fmt.Fprintf(&b.text, "\t\t\t%s := %s\n", name, e)
			}
		}
		if err != nil {
			return nil, err
		}
		b.names[i] = name
	}
	var results []string
	for _, r := range prog.Results {
		results = append(results, b.names[r])
	}
	return results, nil
}

// choose prints a select. Integers become conditional moves; floats would become branches, so their
// bits are selected instead.
func (b *goBody) choose(name string, dt ir.DType, a []string) {
	switch {
	case dt == ir.Bool:
		fmt.Fprintf(&b.text, "\t\t\t%s := %s && %s || !%s && %s\n", name, group(a[0]), group(a[1]), group(a[0]), group(a[2]))
	case dt.IsFloat() && !dt.Storage():
		n := dt.Bits()
		fmt.Fprintf(&b.text, "\t\t\t%su := math.Float%dbits(%s)\n\t\t\tif %s {\n\t\t\t\t%su = math.Float%dbits(%s)\n\t\t\t}\n", name, n, a[2], a[0], name, n, a[1])
		fmt.Fprintf(&b.text, "\t\t\t%s := math.Float%dfrombits(%su)\n", name, n, name)
	default:
		fmt.Fprintf(&b.text, "\t\t\t%s := %s\n\t\t\tif %s {\n\t\t\t\t%s = %s\n\t\t\t}\n", name, a[2], a[0], name, a[1])
	}
}

// fma prints the common case inline: a call would cost more.
func (b *goBody) fma(name string, dt ir.DType, a []string) {
	if dt == ir.Float64 {
		fmt.Fprintf(&b.text, "\t\t\t%s := math.FMA(%s)\n", name, strings.Join(a, ", "))
		return
	}
	fmt.Fprintf(&b.text, "\t\t\t%ss := float64(float64(%s)*float64(%s)) + float64(%s)\n", name, a[0], a[1], a[2])
	fmt.Fprintf(&b.text, "\t\t\t%s := float32(%ss)\n\t\t\tif twice(%ss) {\n\t\t\t\t%s = ir.FMA32(%s)\n\t\t\t}\n", name, name, name, name, strings.Join(a, ", "))
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
	case ir.Int8:
		return fmt.Sprintf("int8(%d)", int8(bits))
	case ir.Int16:
		return fmt.Sprintf("int16(%d)", int16(bits))
	case ir.Int32:
		return fmt.Sprintf("int32(%d)", int32(uint32(bits)))
	case ir.Int64:
		return fmt.Sprintf("int64(%d)", int64(bits))
	case ir.Float32, ir.Float64:
		v := math.Float64frombits(bits)
		if dt == ir.Float32 {
			v = float64(math.Float32frombits(uint32(bits)))
		}
		if math.IsInf(v, 0) || math.IsNaN(v) || v == 0 && math.Signbit(v) {
			return fmt.Sprintf("math.Float%dfrombits(%#x)", dt.Bits(), bits)
		}
		return fmt.Sprintf("%s(%s)", goTypes[dt], strconv.FormatFloat(v, 'x', -1, dt.Bits()))
	}
	return fmt.Sprintf("%s(%d)", goTypes[dt], bits)
}
