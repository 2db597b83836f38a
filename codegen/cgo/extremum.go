package cgo

import "github.com/millrace-go/millrace/ir"

// extremum recognises a Where that is one instruction of most ISAs. x86's min(a, b) equals a < b ?
// a : b in every bit: it gives b if either is NaN and if both are zeros. So only strict comparisons
// of exactly the two operands of the Where qualify. The clamps of kernels have this form.
//
// It returns the helper's name and its operands, or no name.
func (p *printer) extremum(in ir.Instr) (name string, a, b ir.Ref) {
	if in.Op != ir.Where || !in.DT.IsFloat() || p.uniform[in.Args[0]] {
		return "", 0, 0
	}
	c := p.k.Body[in.Args[0]]
	x, y := in.Args[1], in.Args[2]
	if c.Op != ir.Lt && c.Op != ir.Gt {
		return "", 0, 0
	}
	// less says that the Where chooses the smaller one of x and y.
	less := c.Op == ir.Lt
	switch {
	case c.Args[0] == x && c.Args[1] == y: // x < y ? x : y
	case c.Args[0] == y && c.Args[1] == x: // y < x ? x : y
		less = !less
	default:
		return "", 0, 0
	}
	if less {
		return "min", x, y
	}
	return "max", x, y
}

// needed reports the vector values that statements read after extrema have replaced comparisons and
// Wheres.
func (p *printer) needed() []bool {
	need := make([]bool, len(p.k.Body))
	for _, s := range p.k.Stores {
		need[s.Value] = true
	}
	for _, r := range p.k.Reduces {
		need[r.Value] = true
	}
	for i := len(p.k.Body) - 1; i >= 0; i-- {
		if !need[i] {
			continue
		}
		in := p.k.Body[i]
		if name, a, b := p.extremum(in); name != "" && !p.uniform[i] {
			need[a], need[b] = true, true
			continue
		}
		for _, r := range in.Args {
			if r != ir.None {
				need[r] = true
			}
		}
	}
	return need
}
