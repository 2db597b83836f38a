package fusion

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// paths is a program of n random walks, each of so many normal steps, in a scope. Its results are
// sums over all walks: of the last place, of its square, of the sum of the exponentials, and of
// that sum's square.
func paths(steps, n int) string {
	var b strings.Builder
	id := 0
	line := func(op string, args ...any) int {
		fmt.Fprintf(&b, "%%%d = %s\n", id, fmt.Sprintf(op, args...))
		id++
		return id - 1
	}
	place, sum := line("full 0 : float32()"), line("full 0 : float32()")
	for i := range steps {
		z := line("normal %d : float32(%d)", i+1, n)
		place = line("add %%%d %%%d : float32(%d)", place, z, n)
		e := line("exp %%%d : float32(%d)", place, n)
		sum = line("add %%%d %%%d : float32(%d)", sum, e, n)
	}
	var out []int
	for _, v := range []int{place, sum} {
		q := line("square %%%d : float32(%d)", v, n)
		out = append(out, line("sum %%%d axes=0 : float32()", v), line("sum %%%d axes=0 : float32()", q))
	}
	b.WriteString("output")
	for _, o := range out {
		fmt.Fprintf(&b, " %%%d", o)
	}
	return b.String() + "\n"
}

// TestQuickPlanJoinsBeforeItWrites: if the results can be one kernel, the greedy plan computes
// costly values that several results depend on once, and does not write them.
func TestQuickPlanJoinsBeforeItWrites(t *testing.T) {
	for _, steps := range []int{2, 12} {
		seg := segmentOf(parseProgram(t, paths(steps, 1<<20)))
		for i := range seg.Tensors {
			if x := &seg.Tensors[i]; x.Life == segment.LifeVirtual {
				x.Life = segment.LifeDead
			}
		}
		p, computed, _ := explored(t, seg, Greedy)
		normals := 0
		for _, s := range p.Steps {
			for _, n := range s.Nodes {
				if seg.Nodes[n].Op == ir.Normal {
					normals++
				}
			}
		}
		if len(p.Steps) != 1 || normals != steps {
			t.Errorf("%d steps: %d kernels, %d computations, %d of them of normal numbers", steps, len(p.Steps), computed, normals)
		}
	}
}
