package portion

import "testing"

// TestOf: parts are neighbours that cover all rows, their sizes differ by one at most, and dividing
// a part by a power of two gives the parts of the whole.
func TestOf(t *testing.T) {
	for n := range 50 {
		for parts := 1; parts <= 24; parts++ {
			end := 0
			for i := range parts {
				from, to := Of(n, parts, i)
				if from != end || to-from < n/parts || to-from > (n+parts-1)/parts {
					t.Fatalf("%d rows, part %d of %d: %d to %d after %d", n, i, parts, from, to, end)
				}
				end = to
				for m := 2; m <= 8; m *= 2 {
					for k := range m {
						f, e := Of(to-from, m, k)
						wf, we := Of(n, parts*m, i*m+k)
						if from+f != wf || from+e != we {
							t.Fatalf("%d rows, part %d of %d, in it %d of %d: %d to %d, want %d to %d", n, i, parts, k, m, from+f, from+e, wf, we)
						}
					}
				}
			}
			if end != n {
				t.Fatalf("%d rows in %d parts end at %d", n, parts, end)
			}
		}
	}
	const huge = 1<<62 + 5
	if from, to := Of(huge, 3, 2); from != huge/3*2+huge%3*2/3 || to != huge {
		t.Errorf("%d to %d", from, to)
	}
}
