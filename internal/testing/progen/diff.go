package progen

import (
	"fmt"

	"github.com/millrace-go/millrace/ir"
)

// Diff reports the first element of a program's outputs with other bits than the oracle's; any NaN
// equals any NaN.
func Diff(p *ir.Graph, want, got [][]byte) error {
	types := p.Types()
	if len(got) != len(p.Outputs) {
		return fmt.Errorf("%d outputs, want %d", len(got), len(p.Outputs))
	}
	for i, id := range p.Outputs {
		t := types[id]
		if len(got[i]) != len(want[i]) {
			return fmt.Errorf("output %%%d: %d bytes, want %d of %v", id, len(got[i]), len(want[i]), t)
		}
		w, g := ir.Dense{TensorType: t, Data: want[i]}, ir.Dense{TensorType: t, Data: got[i]}
		for j := range t.Shape.Elems() {
			if a, b := w.At(j), g.At(j); !ir.SameValue(t.DT, a, b) {
				return fmt.Errorf("output %%%d : %v: element %d is %s, want %s (%#x, %#x)", id, t, j,
					ir.FormatBits(t.DT, b), ir.FormatBits(t.DT, a), b, a)
			}
		}
	}
	return nil
}
