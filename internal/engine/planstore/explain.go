package planstore

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// sourcer is a device that can show the code of a program: one text, with its tier, for each
// variant made so far.
type sourcer interface {
	Source(runtime.Program) []runtime.Variant
}

// Explain describes how the result with a relative id was computed. Its timings are those of the
// sizes that the plan ran with last.
func (e *Known) Explain(id int32) string {
	var b strings.Builder
	fmt.Fprintf(&b, "segment, explored on these shapes (the tensor asked about is %%%d):\n", id)
	indent(&b, e.text)
	fmt.Fprintf(&b, "plan, %s: %d kernels, %d views", e.grade(), len(e.Plan.Steps), len(e.Plan.Aliases))
	if e.Plan.Mode != fusion.Greedy {
		fmt.Fprintf(&b, ", predicted to save %.3g ms over one kernel per op", e.Plan.Score*1e3)
	}
	b.WriteByte('\n')
	indent(&b, e.planText())
	for _, r := range e.refused() {
		fmt.Fprintf(&b, "not fused: %s\n", r)
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

// refused lists the pairs of kernels that were not fused, and why.
func (e *Known) refused() []string {
	list := make([]string, len(e.Plan.Refusals))
	for i, r := range e.Plan.Refusals {
		list[i] = fmt.Sprintf("kernels %d and %d: %s (would save %d bytes)", r.A, r.B, r.Reason, r.Bytes)
	}
	return list
}

// View is a description of a plan.
type View struct {
	Segment, Text string // text forms
	Made          string
	Ops           int   // 0 if the plan did not run
	Runs          int64 // counted only if the device has a profile
	Steps         []runtime.Program
	Refused       []string // pairs of kernels that were not fused, and why
	Tuning        string   // what the tuner timed
	Lines         []string // source lines of the operations, where known
}

// View describes the plan. Its timings are those that Explain shows.
func (e *Known) View() View {
	v := View{Segment: e.text, Text: e.planText(), Made: e.grade(), Runs: e.List().Runs(),
		Steps: e.Progs, Refused: e.refused(), Lines: e.lines}
	if geo := e.Memo.Last(); geo != nil {
		v.Ops = len(geo.Seg.Nodes)
		var b strings.Builder
		geo.Tuned.Load().Describe(&b)
		v.Tuning = b.String()
	}
	return v
}

// Describe returns the operation of a relative id and its source line, where known.
func (e *Known) Describe(id int32) (what, line string) {
	prefix := fmt.Sprintf("%%%d = ", id)
	for text := range strings.Lines(e.text) {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			what = strings.TrimSpace(rest)
		}
	}
	if geo := e.Memo.Last(); geo != nil && int(id) < len(geo.Seg.Tensors) {
		if def := geo.Seg.Tensors[id].Def; def >= 0 {
			line = e.LineOf(nil, int32(def))
		}
	}
	if what == "" {
		what = "a result"
	}
	return what, line
}

// Sources returns the code that a device has made for a program so far.
func Sources(d runtime.Device, p runtime.Program) []runtime.Variant {
	if src, ok := d.(sourcer); ok {
		return src.Source(p)
	}
	return nil
}

func indent(b *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		b.WriteString("  ")
		b.WriteString(strings.TrimRight(line, "\n"))
		b.WriteByte('\n')
	}
}

// segmentText prints a segment in the text form of package ir.
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
