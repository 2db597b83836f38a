package plans

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

// Explain tells how the result of a relative id came to be. The timings are those of the
// sizes that the plan ran with last.
func (e *Known) Explain(id int32) string {
	var b strings.Builder
	fmt.Fprintf(&b, "segment, explored on these shapes (the tensor asked about is %%%d):\n", id)
	indent(&b, e.text)
	fmt.Fprintf(&b, "plan, %s: %d kernels, %d views, predicted to save %.3g ms over one kernel per op\n",
		e.grade(), len(e.Plan.Steps), len(e.Plan.Aliases), e.Plan.Score*1e3)
	indent(&b, e.planText())
	for _, r := range e.Plan.Refusals {
		fmt.Fprintf(&b, "not fused: kernels %d and %d: %s (would save %d bytes)\n", r.A, r.B, r.Reason, r.Bytes)
	}
	if geo := e.Memo.Last(); geo != nil {
		geo.Tuned.Load().Describe(&b)
	}
	src, ok := e.on.Driver.(sourcer)
	if !ok {
		return b.String()
	}
	for k, p := range e.Progs {
		for _, v := range src.Source(p) {
			fmt.Fprintf(&b, "kernel %d (%016x), %s, %s:\n", k, e.Plan.Steps[k].Kernel.Key(), v.Tier, v.Class)
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
