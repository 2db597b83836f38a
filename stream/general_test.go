package stream

import (
	"testing"

	"github.com/millrace-go/millrace/internal/poly"
)

// The sizes of trials distinguish the polynomials in up to mostAxes axes, whatever sizes the tape
// has.
func TestTrialSizes(t *testing.T) {
	for axes := 1; axes <= mostAxes; axes++ {
		for ranges := 2; ranges <= len(trialRanges); ranges++ {
			degree := degreeOf(axes)
			points := trialSizes(axes, poly.Needs(axes, degree)+checks, ranges)
			if poly.NewFitter(points, degree) == nil {
				t.Errorf("%d axes, %d ranges: %v are not enough", axes, ranges, points)
			}
		}
	}
}
