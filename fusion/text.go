package fusion

import (
	"fmt"
	"strconv"
	"strings"
)

// String prints the plan, one step after another, in the form that ParsePlan reads:
//
//	step 0 domain t4 axes 1 nodes 0 1 scalars 2
//	  operand 0 t0
//	  operand 1 t4 path up:1
//	  inplace 1 0
//	  | in 0 : float32
//	  | ...
//	alias t5 of t0 path 3
//	chain 2 5
//	guard scalar 1 4
//	guard dim t0.1 t3.0
//	guard unit 4.1
//	size t9 most 2 t4 plus 5000
//	refuse 0 1 bytes 4096 "no broadcast or view relates their shapes"
//	score 1.5e-05
//
// A path is a list of hops. A node number crosses the node, and n/a crosses node n to its operand
// a. up:n and up:n/a cross it upwards. to:t broadcasts to the shape of a tensor. low:n/a.d, high:
// and between: are bounds of a node's operand along a dim. The lines of the kernel's own text begin
// with a bar.
func (p *Plan) String() string {
	var b strings.Builder
	for i := range p.Steps {
		p.Steps[i].write(&b, i)
	}
	for _, a := range p.Aliases {
		fmt.Fprintf(&b, "alias t%d of t%d%s\n", a.Tensor, a.Of, pathText(a.Path))
	}
	for _, c := range p.Chains {
		fmt.Fprintf(&b, "chain %d %d\n", c.From, c.To)
	}
	for _, g := range p.Guards {
		if g.Unit {
			fmt.Fprintf(&b, "guard unit %d.%d\n", g.A, g.ADim)
		} else if g.Scalar {
			fmt.Fprintf(&b, "guard scalar %d %d\n", g.A, g.B)
		} else {
			fmt.Fprintf(&b, "guard dim t%d.%d t%d.%d\n", g.A, g.ADim, g.B, g.BDim)
		}
	}
	for i := range p.Sizes {
		p.Sizes[i].text(&b)
	}
	for _, r := range p.Refusals {
		fmt.Fprintf(&b, "refuse %d %d bytes %d %q\n", r.A, r.B, r.Bytes, r.Reason)
	}
	if p.Score != 0 {
		fmt.Fprintf(&b, "score %s\n", strconv.FormatFloat(p.Score, 'g', 4, 64))
	}
	return b.String()
}

func (s *Step) write(b *strings.Builder, i int) {
	fmt.Fprintf(b, "step %d domain t%d", i, s.Domain)
	list(b, "axes", s.Axes)
	list(b, "nodes", s.Nodes)
	list(b, "scalars", s.Scalars)
	b.WriteByte('\n')
	for k, o := range s.Operands {
		fmt.Fprintf(b, "  operand %d t%d%s\n", k, o.Tensor, pathText(o.Path))
	}
	for _, ip := range s.InPlace {
		fmt.Fprintf(b, "  inplace %d %d\n", ip.Out, ip.In)
	}
	for line := range strings.Lines(s.Kernel.String()) {
		b.WriteString("  | " + line)
	}
}

// list prints a word and its numbers, or nothing if there are no numbers.
func list(b *strings.Builder, word string, ns []int) {
	if len(ns) == 0 {
		return
	}
	b.WriteString(" " + word)
	for _, n := range ns {
		fmt.Fprintf(b, " %d", n)
	}
}

var boundNames = [...]string{Low: "low", High: "high", Between: "between"}

func pathText(path []Hop) string {
	if len(path) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(" path")
	for _, h := range path {
		switch {
		case h.Node < 0:
			fmt.Fprintf(&b, " to:%d", h.Arg)
		case h.Up && h.Arg > 0:
			fmt.Fprintf(&b, " up:%d/%d", h.Node, h.Arg)
		case h.Up:
			fmt.Fprintf(&b, " up:%d", h.Node)
		case h.Bound != NoBound:
			fmt.Fprintf(&b, " %s:%d/%d.%d", boundNames[h.Bound], h.Node, h.Arg, h.Dim)
		case h.Arg > 0:
			fmt.Fprintf(&b, " %d/%d", h.Node, h.Arg)
		default:
			fmt.Fprintf(&b, " %d", h.Node)
		}
	}
	return b.String()
}
