package fusion

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace/codegen"
)

// ParsePlan parses the text of a plan, as Plan.String prints it. It verifies the kernels. Whether
// the plan fits a segment is checked by [Plan.Verify]. An error names the line.
func ParsePlan(src string) (*Plan, error) {
	p := &planParser{plan: &Plan{}}
	n := 0
	for line := range strings.Lines(src) {
		n++
		if err := p.line(strings.TrimSpace(line)); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := p.endStep(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n, err)
	}
	p.plan.uses = newUses(p.plan)
	return p.plan, nil
}

type planParser struct {
	plan   *Plan
	kernel strings.Builder // text of the last step's kernel
	words  []string
	err    error // the first one of the line
}

func (p *planParser) line(line string) error {
	if line == "" {
		return nil
	}
	if code, ok := strings.CutPrefix(line, "|"); ok {
		p.kernel.WriteString(code + "\n")
		return nil
	}
	p.words = strings.Fields(line)
	head := p.next()
	for _, s := range planLines {
		if s.word != head {
			continue
		}
		if !s.inStep {
			if err := p.endStep(); err != nil {
				return err
			}
		}
		if s.inStep && len(p.plan.Steps) == 0 {
			return fmt.Errorf("%s outside a step", head)
		}
		if s.read(p, line); len(p.words) > 0 {
			p.fail("unexpected %q", p.words[0])
		}
		return p.err
	}
	return fmt.Errorf("unknown line %q", line)
}

var planLines = []struct {
	word   string
	inStep bool
	read   func(p *planParser, line string)
}{
	{"step", false, (*planParser).step},
	{"operand", true, (*planParser).operand},
	{"inplace", true, (*planParser).inPlace},
	{"alias", false, (*planParser).alias},
	{"chain", false, (*planParser).chain},
	{"guard", false, (*planParser).guard},
	{"size", false, (*planParser).size},
	{"refuse", false, (*planParser).refuse},
	{"score", false, (*planParser).score},
}

func (p *planParser) next() string {
	if len(p.words) == 0 {
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

// fail keeps the first error of a line. Later words of that line do not count.
func (p *planParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// number parses a word that is prefix followed by a number of 16 bits. Every segment's numbers fit
// in 16 bits; larger ones could make later code allocate much memory.
func (p *planParser) number(prefix string) int {
	w := p.next()
	s, ok := strings.CutPrefix(w, prefix)
	n, err := strconv.ParseUint(s, 10, 16)
	switch {
	case !ok:
		p.fail("got %q, want %s and a number", w, prefix)
	case err != nil:
		p.fail("got %q, want a number", w)
	}
	return int(n)
}

// counted parses the number of the next element of a list.
func (p *planParser) counted(what string, want int) {
	if n := p.number(""); n != want {
		p.fail("got %s %d, want %d", what, n, want)
	}
}

// expect skips one fixed word.
func (p *planParser) expect(word string) {
	if w := p.next(); w != word {
		p.fail("got %q, want %q", w, word)
	}
}

// list parses a word and the numbers after it, if the word is next.
func (p *planParser) list(word string) (ns []int) {
	if len(p.words) == 0 || p.words[0] != word {
		return nil
	}
	p.next()
	for len(p.words) > 0 && p.words[0][0] >= '0' && p.words[0][0] <= '9' {
		ns = append(ns, p.number(""))
	}
	return ns
}

// endStep parses the kernel that was collected for the last step.
func (p *planParser) endStep() error {
	if len(p.plan.Steps) == 0 || p.plan.Steps[len(p.plan.Steps)-1].Kernel != nil {
		return nil
	}
	k, err := codegen.Parse(p.kernel.String())
	if err != nil {
		return fmt.Errorf("kernel of step %d: %w", len(p.plan.Steps)-1, err)
	}
	s := p.last()
	if len(s.Operands) != len(k.Operands) {
		return fmt.Errorf("step %d has %d operands, its kernel %d", len(p.plan.Steps)-1, len(s.Operands), len(k.Operands))
	}
	s.Kernel = k
	p.kernel.Reset()
	return nil
}

// last is the step that was read last.
func (p *planParser) last() *Step { return &p.plan.Steps[len(p.plan.Steps)-1] }

func (p *planParser) step(string) {
	p.counted("step", len(p.plan.Steps))
	p.expect("domain")
	p.plan.Steps = append(p.plan.Steps, Step{Domain: p.number("t"), Axes: p.list("axes"), Nodes: p.list("nodes"), Scalars: p.list("scalars")})
}

func (p *planParser) operand(string) {
	s := p.last()
	p.counted("operand", len(s.Operands))
	s.Operands = append(s.Operands, Operand{Tensor: p.number("t"), Path: p.path()})
}

func (p *planParser) path() (path []Hop) {
	if len(p.words) == 0 {
		return nil
	}
	p.expect("path")
	for len(p.words) > 0 && p.err == nil {
		h := Hop{}
		switch w := p.words[0]; {
		case strings.HasPrefix(w, "to:"):
			h.Node, h.Arg = -1, p.number("to:")
		case strings.HasPrefix(w, "up:"):
			h.Up = true
			node, arg, ok := strings.Cut(w, "/")
			if p.words[0] = node; ok {
				p.words = slices.Insert(p.words, 1, arg)
			}
			if h.Node = p.number("up:"); ok {
				h.Arg = p.number("")
			}
		default:
			h = p.across()
		}
		path = append(path, h)
	}
	return path
}

// across parses a hop such as 3, 3/1 or low:3/1.2.
func (p *planParser) across() (h Hop) {
	w := p.next()
	word, rest, bound := strings.Cut(w, ":")
	if bound {
		for b := Low; b <= Between; b++ {
			if boundNames[b] == word {
				h.Bound = b
			}
		}
		if h.Bound == NoBound {
			p.fail("unknown hop %q", w)
			return h
		}
		var dim string
		rest, dim, _ = strings.Cut(rest, ".")
		w = rest
		p.words = append([]string{dim}, p.words...)
		h.Dim = p.number("")
	}
	node, arg, ok := strings.Cut(w, "/")
	if bound && !ok {
		p.fail("got %q, want a node and its operand", w)
	}
	p.words = append([]string{node}, p.words...)
	h.Node = p.number("")
	if ok {
		p.words = append([]string{arg}, p.words...)
		h.Arg = p.number("")
	}
	return h
}

func (p *planParser) inPlace(string) {
	p.last().InPlace = append(p.last().InPlace, InPlace{Out: p.number(""), In: p.number("")})
}

func (p *planParser) alias(string) {
	a := Alias{Tensor: p.number("t")}
	p.expect("of")
	a.Of, a.Path = p.number("t"), p.path()
	p.plan.Aliases = append(p.plan.Aliases, a)
}

func (p *planParser) chain(string) {
	p.plan.Chains = append(p.plan.Chains, Chain{From: p.number(""), To: p.number("")})
}

func (p *planParser) guard(string) {
	g := Guard{}
	switch w := p.next(); w {
	case "unit":
		g.Unit = true
		g.A, g.ADim = p.dim("")
	case "scalar":
		g.Scalar = true
		g.A, g.B = p.number(""), p.number("")
	case "dim":
		g.A, g.ADim = p.dim("t")
		g.B, g.BDim = p.dim("t")
	default:
		p.fail("unknown guard %q", w)
	}
	p.plan.Guards = append(p.plan.Guards, g)
}

// dim parses a dim of what prefix and a number name, such as t3.0.
func (p *planParser) dim(prefix string) (of, dim int) {
	of0, dim0, _ := strings.Cut(p.next(), ".")
	p.words = append([]string{of0, dim0}, p.words...)
	return p.number(prefix), p.number("")
}

func (p *planParser) refuse(line string) {
	r := Refusal{A: p.number(""), B: p.number("")}
	p.expect("bytes")
	var err error
	if r.Bytes, err = strconv.ParseInt(p.next(), 10, 64); err != nil {
		p.fail("%w", err)
	}
	p.words = nil
	parts := strings.SplitN(line, " ", 6) // the reason has blanks itself
	if r.Reason, err = strconv.Unquote(parts[len(parts)-1]); err != nil {
		p.fail("a reason must be quoted: %w", err)
	}
	p.plan.Refusals = append(p.plan.Refusals, r)
}

func (p *planParser) score(string) {
	var err error
	if p.plan.Score, err = strconv.ParseFloat(p.next(), 64); err != nil {
		p.fail("%w", err)
	}
}
