package fusion

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace/segment"
)

// planned holds programs of any number of steps. In most of them a step reads the result of the
// step before at several places.
var planned = map[string]string{
	"slide": "%S = slice X start=1 step=1 : float32(199)\n%T = slice %1 start=0 step=1 : float32(1)\n" +
		"%U = concat %S %T axes=0 : float32(200)\n%V = add %U %1 : float32(200)\n",
	"halves": "%S = slice X start=100 step=1 : float32(100)\n%T = slice X start=0 step=1 : float32(100)\n" +
		"%U = concat %S %T axes=0 : float32(200)\n%V = add %U X : float32(200)\n",
	"shift": "%S = slice X start=1 step=1 : float32(199)\n%T = pad %S 0 start=0 step=1 : float32(200)\n" +
		"%U = mul %T 0.5 : float32(200)\n%V = add %U X : float32(200)\n",
	"chain":  "%S = mul X 0.5 : float32(200)\n%T = add %S %1 : float32(200)\n%U = tanh %T : float32(200)\n%V = sub %U X : float32(200)\n",
	"flip":   "%S = slice X start=199 step=-1 : float32(200)\n%T = add %S %1 : float32(200)\n%U = exp %T : float32(200)\n%V = sub %U X : float32(200)\n",
	"center": "%S = sum X axes=0 keep : float32(1)\n%T = sub X %S : float32(200)\n%U = mul %T %1 : float32(200)\n%V = add %U X : float32(200)\n",
}

func planOf(t *testing.T, step string, steps int) *segment.Segment {
	t.Helper()
	var b strings.Builder
	b.WriteString("%0 = input : float32(200)\n%1 = input : float32(200)\n")
	last, id := "%0", 2
	for range steps {
		text := strings.ReplaceAll(step, "X", last)
		for _, name := range []string{"%S", "%T", "%U", "%V"} {
			last = fmt.Sprintf("%%%d", id)
			text = strings.ReplaceAll(text, name, last)
			id++
		}
		b.WriteString(text)
	}
	b.WriteString("output " + last + "\n")
	return segmentOf(parseProgram(t, b.String()))
}

// TestPlanningIsBounded: planning looks at a bounded number of values for each op, even if the
// program reads deeply through moved data. The times are those of the table in
// docs/benchmarks/start.md.
func TestPlanningIsBounded(t *testing.T) {
	caps := testCaps()
	caps.MaxOperands = 32
	for name, step := range planned {
		for _, steps := range []int{40, 64, 256} {
			for _, opt := range []Options{{Effort: 512}, {}} {
				if steps > 64 && opt.Effort == 0 {
					continue // long segments are searched in parts
				}
				seg := planOf(t, step, steps)
				x := newExplorer(seg, caps, opt)
				begin := time.Now()
				p, err := x.explore()
				if err != nil {
					t.Fatal(err)
				}
				took := time.Since(begin)
				if err := p.Verify(seg); err != nil {
					t.Fatal(err)
				}
				n := len(seg.Nodes)
				t.Logf("%-8s %4d ops, effort %3d: %8.2f ms, %s, %d kernels, %d values and %d steps of maps an op", name, n, opt.Effort,
					took.Seconds()*1e3, p.Mode, len(p.Steps), x.values/n, x.maps.made/n)
				if most := 1000; opt.Effort > 0 && x.values/n > most || x.values/n > 4*most || x.maps.made/n > most {
					t.Errorf("%s: %d values and %d steps of maps for each of %d ops", name, x.values/n, x.maps.made/n, n)
				}
			}
		}
	}
}
