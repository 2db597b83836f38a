package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// String prints the canonical text, which [ParseGraph] reads back:
//
//	%0 = input : float32(2,3)
//	%1 = mul %0 0.5 : float32(2,3)
//	%2 = sum %1 axes=1 keep : float32(2,1)
//	%3 = slice %1 start=1,0 step=-1,2 : float32(2,2)
//	release %0
//	output %2 %3
//
// Every tensor line ends with its type. Scalar operands are literals in the dtype that
// [ScalarDType] gives.
func (p *Graph) String() string {
	var b strings.Builder
	for i, t := range p.Inputs {
		fmt.Fprintf(&b, "%%%d = input : %v\n", i, t)
	}
	scalar := func(slot int) string {
		if slot < 0 || slot >= len(p.Scalars) {
			return "?"
		}
		return FormatBits(p.Scalars[slot].DT, p.Scalars[slot].Bits)
	}
	id := len(p.Inputs)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		b.WriteString(FormatNode(id, n, scalar))
		b.WriteByte('\n')
		if n.HasResult() {
			id++
		}
	}
	if len(p.Outputs) > 0 {
		b.WriteString("output")
		for _, id := range p.Outputs {
			fmt.Fprintf(&b, " %%%d", id)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// FormatNode prints one line of the text form, without its line feed. id is the result's; scalar
// prints a scalar slot.
func FormatNode(id int, n *Node, scalar func(slot int) string) string {
	b := make([]byte, 0, 64)
	if n.HasResult() {
		b = fmt.Appendf(b, "%%%d = ", id)
	}
	b = append(b, n.Op.String()...)
	for _, a := range n.Args[:n.NArgs] {
		if a.Scalar {
			b = fmt.Appendf(b, " %s", scalar(int(a.ID)))
		} else {
			b = fmt.Appendf(b, " %%%d", a.ID)
		}
	}
	b = appendAttr(b, n)
	if n.HasResult() {
		b = fmt.Appendf(b, " : %v", TensorType{n.DT, n.Shape})
	}
	return string(b)
}

func appendAttr(b []byte, n *Node) []byte {
	if n.Attr == nil {
		return b
	}
	use, a := n.Op.Info().Attrs, n.Attr
	if use.Has(AttrAxes) {
		b = appendInts(b, " axes=", a.Axes)
	}
	if use.Has(AttrKeep) && a.Keep {
		b = append(b, " keep"...)
	}
	if use.Has(AttrDescending) && a.Descending {
		b = append(b, " descending"...)
	}
	if use.Has(AttrStart) {
		b = appendInts(b, " start=", a.Start)
	}
	if use.Has(AttrStep) {
		b = appendInts(b, " step=", a.Step)
	}
	if use.Has(AttrMode) && a.Mode != IndexError {
		b = fmt.Appendf(b, " mode=%v", a.Mode)
	}
	if use.Has(AttrCombine) && a.Combine != CombineSet {
		b = fmt.Appendf(b, " combine=%v", a.Combine)
	}
	return b
}

func appendInts(b []byte, name string, v []int) []byte {
	b = append(b, name...)
	for i, n := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return b
}
