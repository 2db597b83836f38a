package plans

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
)

// Outdated says why no segment of this program is one that a remembered plan was
// made for, though its scope is right: an op of it is gone or means something
// else by now. "" where that is not so. Nothing asks for such a plan, so only
// whoever looks through a bundle or a cache meets it. form is what the plan's key
// has behind the scope, text the segment beside it.
func Outdated(form, text string) (why string) {
	if len(form) < EndBytes {
		return "its key is none of this version"
	}
	known, ok := queue.Meanings([]byte(form[EndBytes:]))
	if !ok {
		return "its key is none of this version"
	}
	prog, err := ir.ParseGraph(renumbered(text))
	if err != nil {
		return fmt.Sprintf("its segment is none of this version: %v", err)
	}
	types := prog.Types()
	for i := range prog.Nodes {
		n := &prog.Nodes[i]
		if !n.HasResult() {
			continue
		}
		var dts []ir.DType
		for _, a := range n.Args[:n.NArgs] {
			if a.Scalar {
				dts = append(dts, prog.Scalars[a.ID].DT)
			} else {
				dts = append(dts, types[a.ID].DT)
			}
		}
		if !slices.Contains(known, ir.Meaning(n.Op, n.DT, dts)) {
			return fmt.Sprintf("operation %v means something else in this version", n.Op)
		}
	}
	return ""
}
