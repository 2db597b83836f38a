package everyday

import (
	"math"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestSameBits: on the CPU results have the same bits in every way to run, fused with neighbours or
// not.
func TestSameBits(t *testing.T) {
	all := cases(t)
	var devices []*millrace.Device
	for _, spec := range []string{"cpu:fusion=off,compile=off,threads=1", "cpu:compile=off,threads=2", "cpu:threads=2", "cpu:fusion=greedy,tier=0"} {
		devices = append(devices, open(t, spec))
	}
	for i := range all {
		c := &all[i]
		var want [][]float64
		for k, d := range devices {
			err := d.Scope(func(sc *millrace.Scope) error {
				var in []*tensor
				for _, a := range c.In {
					x := tensorOf(t, a, sc)
					if k > 0 {
						x = before(x)
					}
					in = append(in, x)
				}
				for j, r := range call(t, c).Call(sc, c, in) {
					if k > 0 {
						r = behind(r)
					}
					vs, err := elements(r)
					if err != nil {
						return err
					}
					if k == 0 {
						want = append(want, vs)
						continue
					}
					for e, v := range vs {
						w := want[j][e]
						if r.DType().IsFloat() {
							w *= 2
						}
						if v != w && !(math.IsNaN(v) && math.IsNaN(w)) && !math.IsInf(w, 0) || math.Signbit(v) != math.Signbit(w) && v == v {
							t.Errorf("%v, result %d, element %d: %x, want %x", c, j, e, v, w)
							return nil
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%v: %v", c, err)
			}
		}
	}
}
