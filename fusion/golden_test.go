package fusion

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/testing/golden"
	"github.com/millrace-go/millrace/runtime"
)

// TestGolden compares the plans of programs with golden files, and runs the programs that are
// small. Arguments such as operands=4 are limits of the device; stretch=3 is its stretch cost in
// ns.
func TestGolden(t *testing.T) {
	explore := func(m Mode) golden.Handler {
		return func(t *testing.T, c *golden.Case) string {
			prog := parseProgram(t, c.Input)
			seg := segmentOf(prog)
			p, err := Explore(seg, limited(t, c.Args), Options{Mode: m})
			if err != nil {
				return err.Error() + "\n"
			}
			if prog.Types()[0].Shape.Elems() <= 10000 {
				checkPlan(t, prog, seg, p)
			}
			p.Score = 0 // changes with the length of expansions
			return p.String()
		}
	}
	golden.Run(t, "testdata/plans", map[string]golden.Handler{
		"best":    explore(Best),
		"greedy":  explore(Greedy),
		"unfused": explore(Unfused),
	})
}

func limited(t *testing.T, args []string) *runtime.Caps {
	caps := testCaps()
	for _, a := range args {
		name, value, _ := strings.Cut(a, "=")
		n, err := strconv.Atoi(value)
		if err != nil {
			t.Fatal(err)
		}
		switch name {
		case "operands":
			caps.MaxOperands = n
		case "scalars":
			caps.MaxScalars = n
		case "body":
			caps.MaxBody = n
		case "stretch":
			caps.StretchCost = float64(n) * 1e-9
		default:
			t.Fatalf("unknown limit %q", a)
		}
	}
	return caps
}

// TestLayouts compares the layouts of programs' kernels and views with golden files.
func TestLayouts(t *testing.T) {
	golden.Run(t, "testdata/layouts", map[string]golden.Handler{
		"layout": func(t *testing.T, c *golden.Case) string {
			prog := parseProgram(t, c.Input)
			seg := segmentOf(prog)
			p, err := Explore(seg, testCaps(), Options{})
			if err != nil {
				return err.Error() + "\n"
			}
			checkPlan(t, prog, seg, p)
			l, err := p.Layout(seg, nil)
			if err != nil {
				return err.Error() + "\n"
			}
			return layoutText(p, l)
		},
	})
}

func layoutText(p *Plan, l *Layout) string {
	var b strings.Builder
	stages := func(ss []runtime.Stage) {
		for _, s := range ss {
			fmt.Fprintf(&b, " stage %v: %d%+v", s.Dims, s.Offset, s.Stride)
		}
		b.WriteByte('\n')
	}
	for i := range l.Launches {
		la := &l.Launches[i]
		fmt.Fprintf(&b, "step %d dims %v kept %d\n", i, la.Dims[:la.Rank], la.Kept)
		for k, a := range la.Args {
			fmt.Fprintf(&b, "  %v t%d: %d%+v", p.Steps[i].Kernel.Operands[k].Kind, p.Steps[i].Operands[k].Tensor, a.Offset, a.Stride[:la.Rank])
			stages(a.Stages)
		}
	}
	for i, v := range l.Views {
		fmt.Fprintf(&b, "view t%d of t%d: %d%+v", p.Aliases[i].Tensor, p.Aliases[i].Of, v.Offset, v.Stride)
		stages(v.Stages)
	}
	return b.String()
}
