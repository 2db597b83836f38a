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
		if err := s.read(p, line); err != nil {
			return err
		}
		if len(p.words) > 0 {
			return fmt.Errorf("unexpected %q", p.words[0])
		}
		return nil
	}
	return fmt.Errorf("unknown line %q", line)
}

var planLines = []struct {
	word   string
	inStep bool
	read   func(p *planParser, line string) error
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

// number parses a word that is prefix followed by a number of 16 bits. Every segment's numbers fit
// in 16 bits; larger ones could make later code allocate much memory.
func (p *planParser) number(prefix string) (int, error) {
	w := p.next()
	s, ok := strings.CutPrefix(w, prefix)
	if !ok {
		return 0, fmt.Errorf("%q where %s and a number should be", w, prefix)
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q where a number should be", w)
	}
	return int(n), nil
}

// expect skips one fixed word.
func (p *planParser) expect(word string) error {
	if w := p.next(); w != word {
		return fmt.Errorf("%q where %q should be", w, word)
	}
	return nil
}

// list parses a word and the numbers after it, if the word is next.
func (p *planParser) list(word string) (ns []int, err error) {
	if len(p.words) == 0 || p.words[0] != word {
		return nil, nil
	}
	p.next()
	for len(p.words) > 0 && p.words[0][0] >= '0' && p.words[0][0] <= '9' {
		n, err := p.number("")
		if err != nil {
			return nil, err
		}
		ns = append(ns, n)
	}
	return ns, nil
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
	s := &p.plan.Steps[len(p.plan.Steps)-1]
	if len(s.Operands) != len(k.Operands) {
		return fmt.Errorf("step %d has %d operands, its kernel %d", len(p.plan.Steps)-1, len(s.Operands), len(k.Operands))
	}
	s.Kernel = k
	p.kernel.Reset()
	return nil
}

func (p *planParser) step(string) (err error) {
	n, err := p.number("")
	if err == nil && n != len(p.plan.Steps) {
		err = fmt.Errorf("step %d where %d should be", n, len(p.plan.Steps))
	}
	if err != nil {
		return err
	}
	s := Step{}
	if err := p.expect("domain"); err != nil {
		return err
	}
	if s.Domain, err = p.number("t"); err != nil {
		return err
	}
	for _, l := range []struct {
		word string
		to   *[]int
	}{{"axes", &s.Axes}, {"nodes", &s.Nodes}, {"scalars", &s.Scalars}} {
		if *l.to, err = p.list(l.word); err != nil {
			return err
		}
	}
	p.plan.Steps = append(p.plan.Steps, s)
	return nil
}

func (p *planParser) operand(string) (err error) {
	s := &p.plan.Steps[len(p.plan.Steps)-1]
	n, err := p.number("")
	if err == nil && n != len(s.Operands) {
		err = fmt.Errorf("operand %d where %d should be", n, len(s.Operands))
	}
	if err != nil {
		return err
	}
	o := Operand{}
	if o.Tensor, err = p.number("t"); err != nil {
		return err
	}
	if o.Path, err = p.path(); err != nil {
		return err
	}
	s.Operands = append(s.Operands, o)
	return nil
}

func (p *planParser) path() (path []Hop, err error) {
	if len(p.words) == 0 {
		return nil, nil
	}
	if err := p.expect("path"); err != nil {
		return nil, err
	}
	for len(p.words) > 0 {
		h := Hop{}
		switch w := p.words[0]; {
		case strings.HasPrefix(w, "to:"):
			h.Node = -1
			h.Arg, err = p.number("to:")
		case strings.HasPrefix(w, "up:"):
			h.Up = true
			node, arg, ok := strings.Cut(w, "/")
			if p.words[0] = node; ok {
				p.words = slices.Insert(p.words, 1, arg)
			}
			if h.Node, err = p.number("up:"); err == nil && ok {
				h.Arg, err = p.number("")
			}
		default:
			h, err = p.across()
		}
		if err != nil {
			return nil, err
		}
		path = append(path, h)
	}
	return path, nil
}

// across parses a hop such as 3, 3/1 or low:3/1.2.
func (p *planParser) across() (h Hop, err error) {
	w := p.next()
	word, rest, bound := strings.Cut(w, ":")
	if bound {
		for b := Low; b <= Between; b++ {
			if boundNames[b] == word {
				h.Bound = b
			}
		}
		if h.Bound == NoBound {
			return h, fmt.Errorf("unknown hop %q", w)
		}
		var dim string
		rest, dim, _ = strings.Cut(rest, ".")
		w = rest
		p.words = append([]string{dim}, p.words...)
		if h.Dim, err = p.number(""); err != nil {
			return h, err
		}
	}
	node, arg, ok := strings.Cut(w, "/")
	if bound != (bound && ok) {
		return h, fmt.Errorf("%q where a node and its operand should be", w)
	}
	p.words = append([]string{node, arg}, p.words...)
	if h.Node, err = p.number(""); err != nil {
		return h, err
	}
	if !ok {
		p.next()
		return h, nil
	}
	h.Arg, err = p.number("")
	return h, err
}

func (p *planParser) inPlace(string) error {
	s := &p.plan.Steps[len(p.plan.Steps)-1]
	out, err := p.number("")
	if err != nil {
		return err
	}
	in, err := p.number("")
	if err != nil {
		return err
	}
	s.InPlace = append(s.InPlace, InPlace{Out: out, In: in})
	return nil
}

func (p *planParser) alias(string) (err error) {
	a := Alias{}
	if a.Tensor, err = p.number("t"); err != nil {
		return err
	}
	if err := p.expect("of"); err != nil {
		return err
	}
	if a.Of, err = p.number("t"); err != nil {
		return err
	}
	if a.Path, err = p.path(); err != nil {
		return err
	}
	p.plan.Aliases = append(p.plan.Aliases, a)
	return nil
}

func (p *planParser) chain(string) (err error) {
	c := Chain{}
	if c.From, err = p.number(""); err == nil {
		c.To, err = p.number("")
	}
	p.plan.Chains = append(p.plan.Chains, c)
	return err
}

func (p *planParser) guard(string) (err error) {
	g := Guard{}
	switch w := p.next(); w {
	case "unit":
		g.Unit = true
		node, dim, _ := strings.Cut(p.next(), ".")
		p.words = append([]string{node, dim}, p.words...)
		if g.A, err = p.number(""); err == nil {
			g.ADim, err = p.number("")
		}
	case "scalar":
		g.Scalar = true
		if g.A, err = p.number(""); err == nil {
			g.B, err = p.number("")
		}
	case "dim":
		if g.A, g.ADim, err = p.dim(); err == nil {
			g.B, g.BDim, err = p.dim()
		}
	default:
		err = fmt.Errorf("unknown guard %q", w)
	}
	p.plan.Guards = append(p.plan.Guards, g)
	return err
}

// dim parses a tensor's dim, such as t3.0.
func (p *planParser) dim() (t, d int, err error) {
	w := p.next()
	ts, ds, _ := strings.Cut(w, ".")
	p.words = append([]string{ts, ds}, p.words...)
	if t, err = p.number("t"); err != nil {
		return 0, 0, err
	}
	d, err = p.number("")
	return t, d, err
}

func (p *planParser) refuse(line string) (err error) {
	r := Refusal{}
	if r.A, err = p.number(""); err != nil {
		return err
	}
	if r.B, err = p.number(""); err != nil {
		return err
	}
	if err := p.expect("bytes"); err != nil {
		return err
	}
	if r.Bytes, err = strconv.ParseInt(p.next(), 10, 64); err != nil {
		return err
	}
	p.words = nil
	parts := strings.SplitN(line, " ", 6) // the reason has blanks itself
	if r.Reason, err = strconv.Unquote(parts[len(parts)-1]); err != nil {
		return fmt.Errorf("a reason should be quoted: %w", err)
	}
	p.plan.Refusals = append(p.plan.Refusals, r)
	return nil
}

func (p *planParser) score(string) (err error) {
	p.plan.Score, err = strconv.ParseFloat(p.next(), 64)
	return err
}
