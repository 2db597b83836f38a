package codegen

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// Parse reads the text form of a kernel and verifies it. It skips blank lines and lines that start
// with #. An error names the line.
func Parse(src string) (*Kernel, error) {
	p := parser{k: &Kernel{}}
	line := 0
	for s := range strings.Lines(src) {
		line++
		p.words = strings.Fields(s)
		if len(p.words) == 0 || p.words[0][0] == '#' {
			continue
		}
		if err := p.line(); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
	if err := p.k.Verify(); err != nil {
		return nil, err
	}
	return p.k, nil
}

// parser reads one line at a time, word by word.
type parser struct {
	k     *Kernel
	words []string
	err   error // the first one of the line
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *parser) line() error {
	switch head := p.next(); head {
	case "in":
		p.operand(Input)
	case "out":
		p.operand(Output)
	case "index":
		p.operand(Index)
	case "scalar":
		p.counted("scalar", len(p.k.Scalars))
		p.k.Scalars = append(p.k.Scalars, p.dtype())
	case "denormals":
		p.expect("flush")
		p.k.Denormals = ir.FlushDenormals
	case "store":
		p.k.Stores = append(p.k.Stores, Store{Operand: p.number(), Value: p.ref()})
	default:
		if strings.HasPrefix(head, "%") {
			p.instr(head)
			break
		}
		r := Reduce{}
		var ok bool
		if r.Op, ok = ir.ParseOp(head); !ok || !r.Op.Info().RowOp {
			return fmt.Errorf("%q starts no line", head)
		}
		r.Operand, r.Value = p.number(), p.ref()
		r.Descending = r.Op.Class() == ir.ClassSort && p.skip("descending")
		p.k.Reduces = append(p.k.Reduces, r)
	}
	if len(p.words) > 0 {
		p.fail("unexpected %q", p.words[0])
	}
	return p.err
}

// next takes the next word, "" at the end of the line.
func (p *parser) next() string {
	if len(p.words) == 0 {
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

// skip takes the next word if it is w.
func (p *parser) skip(w string) bool {
	if len(p.words) == 0 || p.words[0] != w {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(want string) {
	if got := p.next(); got != want {
		p.fail("got %q, want %q", got, want)
	}
}

// number takes a slot number, which must fit 16 bits.
func (p *parser) number() int {
	w := p.next()
	n, err := strconv.ParseUint(w, 10, 16)
	if err != nil {
		p.fail("%q is not a number", w)
	}
	return int(n)
}

// counted takes the number of the next element of a list.
func (p *parser) counted(what string, want int) {
	if n := p.number(); n != want {
		p.fail("%s %d, want %d", what, n, want)
	}
}

func (p *parser) dtype() ir.DType {
	p.expect(":")
	return named(p, ir.ParseDType, "%q is not a dtype")
}

// named takes a name that parse knows.
func named[T any](p *parser, parse func(string) (T, bool), unknown string) T {
	w := p.next()
	v, ok := parse(w)
	if !ok {
		p.fail(unknown, w)
	}
	return v
}

func (p *parser) ref() ir.Ref {
	w := p.next()
	digits, ok := strings.CutPrefix(w, "%")
	n, err := strconv.ParseUint(digits, 10, 24)
	if !ok || err != nil {
		p.fail("%q is not a value", w)
	}
	return ir.Ref(n)
}

func (p *parser) operand(kind OperandKind) {
	p.counted("operand", len(p.k.Operands))
	o := Operand{Kind: kind}
	if kind != Index {
		o.DT = p.dtype()
	}
	o.Row = p.skip("row")
	p.k.Operands = append(p.k.Operands, o)
}

func (p *parser) instr(name string) {
	if want := "%" + strconv.Itoa(len(p.k.Body)); name != want {
		p.fail("value %s, want %s", name, want)
	}
	p.expect("=")
	op := named(p, ir.ParseOp, "%q is not an op")
	if p.err != nil { // the op decides what the other words are
		return
	}
	in := ir.Instr{Op: op, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}
	literal := p.immediate(&in)
	for n := 0; len(p.words) > 0 && p.words[0] != ":" && p.err == nil; n++ {
		if n == len(in.Args) {
			p.fail("%s: more than %d operands", op, n)
			return
		}
		in.Args[n] = p.ref()
	}
	if in.DT = p.dtype(); op == ir.Const && p.err == nil {
		in.Imm, p.err = ir.ParseBits(in.DT, literal)
	}
	p.k.Body = append(p.k.Body, in)
}

// immediate reads the words between the op and its operands. The literal of a constant is returned,
// since it can be parsed only when its dtype is known.
func (p *parser) immediate(in *ir.Instr) (literal string) {
	switch in.Op {
	case ir.Const:
		return p.next()
	case ir.Lookup:
		in.Imm = named(p, ir.TableByName, "no table %q")
	case ir.Rare:
		in.Imm = named(p, ir.SubByName, "no sub-program %q")
	case ir.Load, ir.IndexLo, ir.IndexHi, ir.Scalar, ir.Param:
		in.Imm = uint64(p.number())
		return ""
	case ir.LoadAt:
		in.Imm = LoadAtImm(p.number(), named(p, parseMode, "%q is not an index mode"))
	case ir.Scatter:
		in.Imm = ScatterImm(p.number(), named(p, parseMode, "%q is not an index mode"), named(p, parseCombine, "%q is not a way to combine"))
	}
	if in.Op.Class() == ir.ClassSort && p.skip("descending") {
		in.Imm = 1
	}
	return ""
}
