package fusion

import (
	"testing"

	"github.com/millrace-go/millrace/internal/golden"
)

// TestGolden runs programs in, plans out.
func TestGolden(t *testing.T) {
	explore := func(m Mode) golden.Handler {
		return func(t *testing.T, c *golden.Case) string {
			seg := segmentOf(parseProgram(t, c.Input))
			p, err := Explore(seg, testCaps(), Options{Mode: m})
			if err != nil {
				return err.Error() + "\n"
			}
			if _, err := p.Layout(seg, nil); err != nil {
				t.Errorf("line %d: layout: %v", c.Line, err)
			}
			return p.String()
		}
	}
	golden.Run(t, "testdata/plans", map[string]golden.Handler{
		"best":    explore(Best),
		"greedy":  explore(Greedy),
		"unfused": explore(Unfused),
	})
}
