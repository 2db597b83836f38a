package everyday

import (
	"context"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

// TestNothingStays: ops release their temporaries: after the results of all cases nothing is live.
func TestNothingStays(t *testing.T) {
	all := cases(t)
	d := open(t, "cpu:compile=off,threads=1")
	for i := range all {
		c := &all[i]
		var in []*tensor
		for _, a := range c.In {
			x := tensorOf(t, a, d)
			if err := x.Eval(); err != nil {
				t.Fatal(err)
			}
			in = append(in, x)
		}
		before := d.Stats()
		out := call(t, c).Call(d, c, in)
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
	ran := map[string]bool{}
	for _, dt := range []millrace.DType{millrace.Float16, millrace.BFloat16} {
		for i := range all {
			c := &all[i]
			if p := call(t, c); !p.Halves || len(c.In) == 0 || c.In[0].DType != "float32" {
				continue
			}
			ran[c.Op] = true
			err := d.Scope(func(sc *millrace.Scope) error {
				var narrow, wide []*tensor
				for _, a := range c.In {
					x := tensorOf(t, a, sc)
					if x.DType() == millrace.Float32 {
						x = x.Cast(dt)
						wide = append(wide, x.Cast(millrace.Float32))
					} else {
						wide = append(wide, x)
					}
					narrow = append(narrow, x)
				}
				got, want := call(t, c).Call(sc, c, narrow), call(t, c).Call(sc, c, wide)
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
	for _, o := range optable.All() {
		for _, p := range o.Peers {
			if p.Halves && !ran[p.Name] && p.Name != "sumas" {
				t.Errorf("no case of %s ran", p.Name)
			}
		}
	}
}
