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
	"chain":   "%S = mul X 0.5 : float32(200)\n%T = add %S %1 : float32(200)\n%U = tanh %T : float32(200)\n%V = sub %U X : float32(200)\n",
	"flip":    "%S = slice X start=199 step=-1 : float32(200)\n%T = add %S %1 : float32(200)\n%U = exp %T : float32(200)\n%V = sub %U X : float32(200)\n",
	"gather":  "%S = cast X : int32(200)\n%T = gather X %S axes=0 mode=drop : float32(200)\n%U = mul %T %1 : float32(200)\n%V = add %U X : float32(200)\n",
	"scatter": "%S = cast X : int32(200)\n%T = scatter X %S %1 axes=0 mode=drop combine=add : float32(200)\n%U = mul %T 0.5 : float32(200)\n%V = add %U X : float32(200)\n",
	"where":   "%S = gt X 0 : bool(200)\n%T = mul X 0.5 : float32(200)\n%U = where %S X %T : float32(200)\n%V = add %U %1 : float32(200)\n",
	"matmul":  "%S = expand X : float32(200,200)\n%T = dot %S %2 axes=1 : float32(200)\n%U = tanh %T : float32(200)\n%V = add %U X : float32(200)\n",
	"center":  "%S = sum X axes=0 keep : float32(1)\n%T = sub X %S : float32(200)\n%U = mul %T %1 : float32(200)\n%V = add %U X : float32(200)\n",
}

func planOf(t *testing.T, step string, steps int) *segment.Segment {
	t.Helper()
	var b strings.Builder
	b.WriteString("%0 = input : float32(200)\n%1 = input : float32(200)\n%2 = input : float32(200,200)\n")
	last, id := "%0", 3
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
			for _, opt := range []Options{{Effort: 512, Waits: true}, {Effort: 512}, {}} {
				if steps > 64 && opt.Effort == 0 {
					continue // long segments are searched in parts
				}
				seg := planOf(t, step, steps)
				looked := 0
				opt.looked = &looked
				begin := time.Now()
				p, err := Explore(seg, caps, opt)
				if err != nil {
					t.Fatal(err)
				}
				took := time.Since(begin)
				if err := p.Verify(seg); err != nil {
					t.Fatal(err)
				}
				n := len(seg.Nodes)
				t.Logf("%-8s %4d ops, effort %3d, waits %-5v: %8.2f ms, %s, %d kernels, %d values and steps of maps an op", name, n, opt.Effort, opt.Waits,
					took.Seconds()*1e3, p.Mode, len(p.Steps), looked/n)
				most := 5000
				if opt.Effort > 0 {
					most = 2000
				}
				if opt.Waits {
					most = 100
				}
				if looked/n > most {
					t.Errorf("%s: %d values and steps of maps for each of %d ops, at most %d", name, looked/n, n, most)
				}
			}
		}
	}
}
