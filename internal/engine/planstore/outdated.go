package planstore

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
)

// Outdated says why this version of the program cannot produce the segment of a remembered plan,
// although the plan's scope is right: an operation was removed or has another meaning now. It
// returns "" if the segment is still possible. Lookups never find an outdated plan; only code
// that lists a bundle or a cache meets one. form is the part of the plan's key after the scope,
// and text is the segment stored with it.
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
