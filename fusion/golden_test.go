package fusion

import (
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/golden"
	"github.com/millrace-go/millrace/runtime"
)

// TestGolden holds programs and their plans, and runs those that are small.
// Arguments such as operands=4 are limits of the device.
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
			p.Score = 0 // moves with the length of expansions
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
		default:
			t.Fatalf("unknown limit %q", a)
		}
	}
	return caps
}
