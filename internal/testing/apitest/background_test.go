package apitest

import (
	"os"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/machine"
)

// longErf is an erf written in public ops and evaluated on x and -x: its best plan computes one of
// them, which takes a search to find out.
func longErf(x *millrace.Tensor) *millrace.Tensor {
	p := func(v *millrace.Tensor) *millrace.Tensor {
		t := v.Abs().MulScalar(0.3275911).AddScalar(1).Recip()
		poly := t.MulScalar(1.061405429).SubScalar(1.453152027)
		for _, c := range []float64{1.421413741, -0.284496736, 0.254829592} {
			poly = poly.Mul(t).AddScalar(c)
		}
		return poly.Mul(t).Mul(v.Mul(v).Neg().Exp()).Neg().AddScalar(1)
	}
	return millrace.Where(x.GtScalar(0), p(x), p(x.Neg()).Neg())
}

// TestBackgroundSearchCompilesWhatStays: the first run of new code takes a greedy plan. Its
// kernels are not compiled, because they do less work than a compile takes. The kernels of the
// plan that replaces it are compiled. The bits do not change.
func TestBackgroundSearchCompilesWhatStays(t *testing.T) {
	var plans []string
	dev := open(t, millrace.Options{Trace: &millrace.Trace{Flush: func(e millrace.FlushEvent) { plans = append(plans, e.Plan) }}})
	x := millrace.UniformOn(dev, millrace.Float32, 1, 8<<10).MulScalar(4).SubScalar(2)
	inMemory(t, x)
	if err := dev.Wait(); err != nil {
		t.Fatal(err)
	}
	plans = nil
	before := dev.Stats()
	pass := func() []float32 {
		v, err := millrace.Values[float32](longErf(x))
		if err != nil {
			t.Fatal(err)
		}
		if err := dev.Wait(); err != nil {
			t.Fatal(err)
		}
		return v
	}
	first := pass()
	after := dev.Stats()
	if n := codeMade(after) - codeMade(before); n != 0 {
		t.Errorf("%d kernels compiled for a plan that is replaced", n)
	}
	if e, s := after.Explorations-before.Explorations, after.Searches-before.Searches; e != 2 || s != 1 {
		t.Errorf("%d explorations, %d of them in the background, want 2 and 1", e, s)
	}
	for range 2 {
		for i, v := range pass() {
			if v != first[i] {
				t.Fatalf("element %d is %v by the better plan, %v before", i, v, first[i])
			}
		}
	}
	if got := strings.Join(plans, " "); got != "greedy best best" {
		t.Errorf("runs by plans %q", got)
	}
	last := dev.Stats()
	if n := last.Explorations - after.Explorations; n != 0 {
		t.Errorf("%d explorations in the second pass", n)
	}
	if n := codeMade(last) - codeMade(after); n != 1 && last.Runtime.CompileFails == 0 && compiles(t) {
		t.Errorf("%d kernels compiled, want 1", n)
	}
	if text := longErf(x).Explain(); !strings.Contains(text, "plan, best: 1 kernels") {
		t.Errorf("no word of the plan in:\n%s", text)
	}
}

// codeMade returns the number of kernels with code, of any kind.
func codeMade(s millrace.Stats) int64 { return s.Runtime.Compiles + s.Runtime.NativeKernels }

// compiles reports whether this machine makes code of kernels.
func compiles(t *testing.T) bool {
	dev, err := millrace.Open("cpu:tier=1")
	if err != nil {
		return false
	}
	defer dev.Close()
	if err := millrace.OnesOn(dev, millrace.Float32, 1).AddScalar(1).Eval(); err != nil {
		t.Fatal(err)
	}
	if codeMade(dev.Stats()) > 0 {
		return true
	}
	if machine.Level() != machine.None && strings.Contains(os.Getenv("MILLRACE_REQUIRE"), "cpu") {
		t.Fatal("nothing was compiled")
	}
	return false
}
