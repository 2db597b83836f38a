//go:build accuracy

package accuracy

import (
	"flag"
	"math"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
	"github.com/millrace-go/millrace/internal/testing/optable"
)

var stride = flag.Uint64("stride", 1, "measure every n-th float32")

func TestFloat32(t *testing.T) {
	dev, err := millrace.Open("cpu:compile=wait")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, f := range optable.All() {
		if f.Math == nil {
			continue
		}
		name := strings.ToLower(strings.TrimPrefix(f.Name, "Tensor."))
		t.Run(name, func(t *testing.T) {
			w := sweep(t, dev, f)
			if f.Math.Ulps > 0 {
				t.Logf("%s: %.3f ulp at %x, largest absolute error below 10: %.3g", name, w.ulps, w.at, w.abs)
				if w.ulps > f.Math.Ulps {
					t.Errorf("%s is off by %.3f ulp at %x, bound %g", name, w.ulps, w.at, f.Math.Ulps)
				}
				return
			}
			t.Logf("%s: %.2f of its bound at %x, largest absolute error below 10: %.3g", name, w.share, w.at, w.abs)
			if w.share > 1 {
				t.Errorf("%s is off by %.2f times its bound at %x", name, w.share, w.at)
			}
		})
	}
}

// worst is the largest error found: in ulps, as a fraction of an absolute and relative bound, and
// absolute for results below 10.
type worst struct {
	ulps, share, abs float64
	at               float32
}

func sweep(t *testing.T, dev *millrace.Device, f optable.Op) worst {
	const chunk = 1 << 20
	x, y := make([]float32, chunk), make([]float32, chunk)
	var total worst
	for next := uint64(0); next < 1<<32; {
		n := 0
		for ; n < chunk && next < 1<<32; n++ {
			x[n] = math.Float32frombits(uint32(next))
			next += *stride
		}
		in := millrace.FromSliceOn(dev, x[:n], n)
		out := f.Unary(in)
		if err := millrace.ReadInto(y[:n], out); err != nil {
			t.Fatal(err)
		}
		out.Release()
		in.Release()
		total.join(compare(f, x[:n], y[:n]), f)
	}
	return total
}

// compare uses all cores: the references take longer than the ops.
func compare(f optable.Op, x, y []float32) worst {
	parts := goruntime.GOMAXPROCS(0)
	found := make([]worst, parts)
	var wg sync.WaitGroup
	for p := range parts {
		lo, hi := len(x)*p/parts, len(x)*(p+1)/parts
		wg.Go(func() {
			var w worst
			for i := lo; i < hi; i++ {
				w.join(measure(f, x[i], y[i]), f)
			}
			found[p] = w
		})
	}
	wg.Wait()
	var w worst
	for _, v := range found {
		w.join(v, f)
	}
	return w
}

func (w *worst) join(v worst, f optable.Op) {
	w.abs = max(w.abs, v.abs)
	if v.ulps > w.ulps && f.Math.Ulps > 0 || v.share > w.share && f.Math.Ulps == 0 {
		w.at = v.at
	}
	w.ulps, w.share = max(w.ulps, v.ulps), max(w.share, v.share)
}

func measure(f optable.Op, x, got float32) worst {
	want := f.Math.Ref(float64(x))
	g := float64(got)
	w := worst{at: x}
	if g == want || g != g && want != want {
		if g == 0 && f.Math.Ulps > 0 && math.Signbit(g) != math.Signbit(want) {
			w.ulps = math.Inf(1)
		}
		return w
	}
	if math.IsInf(g, 0) && math.Abs(want) > math.MaxFloat32 {
		return w
	}
	d := math.Abs(g - want)
	if d != d || math.IsInf(d, 0) {
		w.ulps, w.share = math.Inf(1), math.Inf(1)
		return w
	}
	if f.Math.Ulps == 0 {
		w.share = d / (f.Math.Abs + f.Math.Rel*math.Abs(want))
	}
	_, e := math.Frexp(want)
	w.ulps = math.Ldexp(d, 24-max(e, -125))
	if math.Abs(want) < 10 {
		w.abs = d
	}
	return w
}
