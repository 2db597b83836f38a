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
}

func (p *parser) line() error {
	head := p.next()
	var err error
	switch head {
	case "in":
		err = p.operand(Input)
	case "out":
		err = p.operand(Output)
	case "index":
		err = p.operand(Index)
	case "scalar":
		err = p.scalar()
	case "denormals":
		err = p.expect("flush")
		p.k.Denormals = ir.FlushDenormals
	case "store":
		var s Store
		s.Operand, s.Value, err = p.write()
		p.k.Stores = append(p.k.Stores, s)
	default:
		if strings.HasPrefix(head, "%") {
			err = p.instr(head)
			break
		}
		r := Reduce{}
		var ok bool
		if r.Op, ok = ir.ParseOp(head); !ok || !r.Op.Info().RowOp {
			return fmt.Errorf("%q starts no line", head)
		}
		r.Operand, r.Value, err = p.write()
		r.Descending = r.Op.Class() == ir.ClassSort && p.skip("descending")
		p.k.Reduces = append(p.k.Reduces, r)
	}
	if err == nil && len(p.words) > 0 {
		err = fmt.Errorf("unexpected %q", p.words[0])
	}
	return err
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

func (p *parser) expect(want string) error {
	if got := p.next(); got != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
}

// number takes a slot number, which must fit 16 bits.
func (p *parser) number() (int, error) {
	w := p.next()
	n, err := strconv.ParseUint(w, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", w)
	}
	return int(n), nil
}

func (p *parser) dtype() (ir.DType, error) {
	if err := p.expect(":"); err != nil {
		return ir.Invalid, err
	}
	w := p.next()
	d, ok := ir.ParseDType(w)
	if !ok {
		return ir.Invalid, fmt.Errorf("%q is no dtype", w)
	}
	return d, nil
}

func (p *parser) ref() (ir.Ref, error) {
	w := p.next()
	digits, ok := strings.CutPrefix(w, "%")
	n, err := strconv.ParseUint(digits, 10, 24)
	if !ok || err != nil {
		return ir.None, fmt.Errorf("%q is no value", w)
	}
	return ir.Ref(n), nil
}

func (p *parser) operand(kind OperandKind) error {
	n, err := p.number()
	if err != nil {
		return err
	}
	if n != len(p.k.Operands) {
		return fmt.Errorf("operand %d, want %d", n, len(p.k.Operands))
	}
	o := Operand{Kind: kind}
	if kind != Index {
		if o.DT, err = p.dtype(); err != nil {
			return err
		}
	}
	o.Row = p.skip("row")
	p.k.Operands = append(p.k.Operands, o)
	return nil
}

func (p *parser) scalar() error {
	n, err := p.number()
	if err != nil {
		return err
	}
	if n != len(p.k.Scalars) {
		return fmt.Errorf("scalar %d, want %d", n, len(p.k.Scalars))
	}
	d, err := p.dtype()
	p.k.Scalars = append(p.k.Scalars, d)
	return err
}

func (p *parser) write() (operand int, value ir.Ref, err error) {
	if operand, err = p.number(); err != nil {
		return 0, ir.None, err
	}
	value, err = p.ref()
	return operand, value, err
}

func (p *parser) instr(name string) error {
	if want := "%" + strconv.Itoa(len(p.k.Body)); name != want {
		return fmt.Errorf("value %s, want %s", name, want)
	}
	if err := p.expect("="); err != nil {
		return err
	}
	word := p.next()
	op, ok := ir.ParseOp(word)
	if !ok {
		return fmt.Errorf("%q is no op", word)
	}
	in := ir.Instr{Op: op, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}
	literal, err := p.immediate(&in)
	if err != nil {
		return err
	}
	for n := 0; len(p.words) > 0 && p.words[0] != ":"; n++ {
		if n == len(in.Args) {
			return fmt.Errorf("%s: more than %d operands", op, n)
		}
		if in.Args[n], err = p.ref(); err != nil {
			return err
		}
	}
	if in.DT, err = p.dtype(); err != nil {
		return err
	}
	if op == ir.Const {
		if in.Imm, err = ir.ParseBits(in.DT, literal); err != nil {
			return err
		}
	}
	p.k.Body = append(p.k.Body, in)
	return nil
}

// immediate reads the words between the op and its operands. The literal of a constant is returned,
// since it can be parsed only when its dtype is known.
func (p *parser) immediate(in *ir.Instr) (literal string, err error) {
	var ok bool
	switch in.Op {
	case ir.Const:
		return p.next(), nil
	case ir.Lookup:
		name := p.next()
		if in.Imm, ok = ir.TableByName(name); !ok {
			return "", fmt.Errorf("no table %q", name)
		}
	case ir.Rare:
		name := p.next()
		if in.Imm, ok = ir.SubByName(name); !ok {
			return "", fmt.Errorf("no sub-program %q", name)
		}
	case ir.Load, ir.IndexLo, ir.IndexHi, ir.Scalar, ir.Param:
		n, err := p.number()
		in.Imm = uint64(n)
		return "", err
	case ir.LoadAt, ir.Scatter:
		n, err := p.number()
		if err != nil {
			return "", err
		}
		word := p.next()
		mode, ok := parseMode(word)
		if !ok {
			return "", fmt.Errorf("%q is no index mode", word)
		}
		if in.Imm = LoadAtImm(n, mode); in.Op == ir.LoadAt {
			break
		}
		word = p.next()
		how, ok := parseCombine(word)
		if !ok {
			return "", fmt.Errorf("%q is no way to combine", word)
		}
		in.Imm = ScatterImm(n, mode, how)
	}
	if in.Op.Class() == ir.ClassSort && p.skip("descending") {
		in.Imm = 1
	}
	return "", nil
}
