package stream

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// sourcer is a device that can show what it runs for a program: one text per
// variant made so far, with its tier.
type sourcer interface {
	Source(runtime.Program) []runtime.Variant
}

// Explain tells how v came to be: the segment that made it, the kernels of its
// plan with their tier and source, and for each pair of kernels that might
// have been one, why it is not. It runs what v needs first. The answer is the
// same whether the plan was found or made.
func Explain(v *Value) string {
	st, err := computed(v, nil, "explain")
	if err != nil {
		return err.Error() + "\n"
	}
	defer st.release()
	if st.entry == nil {
		return "not computed: copied from the host\n"
	}
	return st.entry.explain(st.dev, st.id)
}

func (e *entry) explain(d *Device, id int32) string {
	var b strings.Builder
	fmt.Fprintf(&b, "segment, explored on these shapes (the tensor asked about is %%%d):\n", id)
	indent(&b, e.text)
	fmt.Fprintf(&b, "plan, %s: %d kernels, %d views, predicted to save %.3g ms over one kernel per op\n",
		e.grade(), len(e.plan.Steps), len(e.plan.Aliases), e.plan.Score*1e3)
	indent(&b, e.planText())
	for _, r := range e.plan.Refusals {
		fmt.Fprintf(&b, "not fused: kernels %d and %d: %s (would save %d bytes)\n", r.A, r.B, r.Reason, r.Bytes)
	}
	e.explainTuning(&b)
	src, ok := d.drv.(sourcer)
	if !ok {
		return b.String()
	}
	for k, p := range e.progs {
		for _, v := range src.Source(p) {
			fmt.Fprintf(&b, "kernel %d (%016x), %s, %s:\n", k, e.plan.Steps[k].Kernel.Key(), v.Tier, v.Class)
			indent(&b, v.Source)
		}
	}
	return b.String()
}

func indent(b *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		b.WriteString("  ")
		b.WriteString(strings.TrimRight(line, "\n"))
		b.WriteByte('\n')
	}
}

// segmentText prints a segment in the text form of ir.
func segmentText(seg *segment.Segment) string {
	var b strings.Builder
	for id := range seg.Tensors {
		if t := &seg.Tensors[id]; t.Def < 0 {
			fmt.Fprintf(&b, "%%%d = input : %v\n", id, ir.TensorType{DT: t.DT, Shape: t.Shape})
		}
	}
	scalar := func(slot int) string {
		return ir.FormatBits(seg.Scalars[slot].DT, seg.Scalars[slot].Bits)
	}
	for n := range seg.Nodes {
		b.WriteString(ir.FormatNode(int(seg.Out[n]), &seg.Nodes[n], scalar))
		b.WriteByte('\n')
	}
	for id := range seg.Tensors {
		if seg.Tensors[id].Life == segment.LifeWrite {
			fmt.Fprintf(&b, "output %%%d\n", id)
		}
	}
	return b.String()
}
