package autodiff_test

import (
	"math"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

// TestDerivativesAtEdges tests derivatives where a formula has 0/0, inf - inf or 0·inf, and where a
// square overflows or becomes 0.
func TestDerivativesAtEdges(t *testing.T) {
	for _, c := range edges() {
		x := autodiff.Watch(millrace.FromSlice(c.At))
		g, err := autodiff.Grad(c.F(x).Sum(), x)
		if err != nil {
			t.Fatal(c.Name, err)
		}
		for i, v := range values(t, g[0].Cast(millrace.Float64)) {
			if want := c.Want[i]; v != want && !(math.Abs(v-want) <= 1e-6*math.Abs(want)) {
				t.Errorf("%s at %v: %v, want %v", c.Name, c.At[i], v, want)
			}
		}
	}
}

func edges() (all []optable.Edge) {
	for _, o := range optable.All() {
		all = append(all, o.Edges...)
	}
	return all
}
