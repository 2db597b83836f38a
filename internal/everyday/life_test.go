package everyday

import (
	"context"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestNothingStays: ops release their temporaries: after the results of all cases nothing is live.
func TestNothingStays(t *testing.T) {
	all := cases(t)
	d := open(t, "cpu:compile=off,threads=1")
	for i := range all {
		c := &all[i]
		var in []*tensor
		for _, a := range c.In {
			x := a.tensor(t, d)
			if err := x.Eval(); err != nil {
				t.Fatal(err)
			}
			in = append(in, x)
		}
		before := d.Stats()
		out := calls[c.Op](d, c, in)
		for _, r := range out {
			if err := r.Eval(); err != nil {
				t.Errorf("%v: %v", c, err)
			}
		}
		for _, r := range out {
			r.Release()
		}
		if err := d.Sync(context.Background()); err != nil {
			t.Errorf("%v: %v", c, err)
		}
		if after := d.Stats(); after.LiveBytes > before.LiveBytes || after.Runtime.AllocBytes > before.Runtime.AllocBytes {
			t.Errorf("%v: %d live bytes and %d allocated ones are left, there were %d and %d", c, after.LiveBytes, after.Runtime.AllocBytes, before.LiveBytes, before.Runtime.AllocBytes)
		}
		for _, x := range in {
			x.Release()
		}
	}
}

// TestHalves: ops on 16-bit floats are those of Float32, rounded once; results that are positions
// are equal.
func TestHalves(t *testing.T) {
	all := cases(t)
	d := open(t, "cpu:compile=off,threads=1")
	moves := "diag split chunk transpose moveaxis flatten nonzero maskedselect unique uniqueall takefromend takealongfromend"
	composed := "log10 asinh acosh atanh median quantile fft ifft rfft irfft resize searchsorted histogram sumas"
	ran := map[string]bool{}
	for _, dt := range []millrace.DType{millrace.Float16, millrace.BFloat16} {
		for i := range all {
			c := &all[i]
			if !strings.Contains(" "+moves+" "+composed+" ", " "+c.Op+" ") || len(c.In) == 0 || c.In[0].DType != "float32" {
				continue
			}
			ran[c.Op] = true
			err := d.Scope(func(sc *millrace.Scope) error {
				var narrow, wide []*tensor
				for _, a := range c.In {
					x := a.tensor(t, sc)
					if x.DType() == millrace.Float32 {
						x = x.Cast(dt)
						wide = append(wide, x.Cast(millrace.Float32))
					} else {
						wide = append(wide, x)
					}
					narrow = append(narrow, x)
				}
				got, want := calls[c.Op](sc, c, narrow), calls[c.Op](sc, c, wide)
				for k, w := range want {
					g := got[k]
					if w.DType() == millrace.Float32 && g.DType() != millrace.Float32 {
						w = w.Cast(dt)
					}
					same, err := millrace.Equal(g, w)
					if err != nil {
						return err
					}
					if !same {
						t.Errorf("%v of %v, result %d: %v, want %v", c, dt, k, g, w)
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%v of %v: %v", c, dt, err)
			}
		}
	}
	for op := range strings.FieldsSeq(moves + " " + composed) {
		if !ran[op] && op != "sumas" {
			t.Errorf("no case of %s ran", op)
		}
	}
}
