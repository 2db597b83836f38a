package nn_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/safetensors"
)

// reference is a file of PyTorch's numbers: see testdata/reference.py.
type reference map[string]*millrace.Tensor

func readReference(t *testing.T, name string) reference {
	t.Helper()
	r, err := safetensors.Load("testdata/" + name + ".safetensors")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// list returns the tensors name/kind.0, name/kind.1, …
func (r reference) list(name, kind string) (all []*millrace.Tensor) {
	for {
		x := r[name+"/"+kind+"."+string(rune('0'+len(all)))]
		if x == nil {
			return all
		}
		all = append(all, x)
	}
}

// cases returns the names of a file's cases, in order.
func (r reference) cases() []string {
	var all []string
	for name := range r {
		if c, _, ok := strings.Cut(name, "/"); ok {
			all = append(all, c)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// load gives a module the case's state, which must cover all of the module's parameters.
func (r reference) load(t *testing.T, name string, module any) {
	t.Helper()
	left := map[string]bool{}
	for key := range r {
		if own, ok := strings.CutPrefix(key, name+"/state."); ok {
			left[own] = true
		}
	}
	for _, p := range nn.Params(module) {
		from := r[name+"/state."+p.Name]
		if from == nil {
			t.Fatalf("%s: PyTorch has no %s", name, p.Name)
		}
		if !slices.Equal(from.Shape(), p.Tensor().Shape()) || from.DType() != p.Tensor().DType() {
			t.Fatalf("%s: %s is %v %v, PyTorch's %v %v", name, p.Name, p.Tensor().DType(), p.Tensor().Shape(), from.DType(), from.Shape())
		}
		delete(left, p.Name)
		p.Tensor().Set(from)
	}
	if len(left) > 0 {
		t.Fatalf("%s: PyTorch has %v besides", name, left)
	}
}

// near compares a tensor with a reference: the largest difference relative to the reference's
// largest number.
func near(t *testing.T, what string, got, want *millrace.Tensor, tol float64) {
	t.Helper()
	if want == nil {
		t.Errorf("%s: no reference", what)
		return
	}
	if err := got.Err(); err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if !slices.Equal(got.Shape(), want.Shape()) {
		t.Errorf("%s: %v, want %v", what, got.Shape(), want.Shape())
		return
	}
	a, b := values(t, got.Cast(millrace.Float32)), values(t, want.Cast(millrace.Float32))
	var size, worst float64
	for i := range b {
		size = max(size, math.Abs(float64(b[i])))
		d := math.Abs(float64(a[i]) - float64(b[i]))
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		worst = max(worst, d)
	}
	if worst > tol*max(size, 1e-3) {
		t.Errorf("%s: off by %.3g of %.3g\n got %v\nwant %v", what, worst, size, got, want)
	}
}

const tolerance = 1e-5

// program computes a case's results.
type program func(c *nn.Ctx, in []*millrace.Tensor) []*millrace.Tensor

// check runs a case of a file and compares results, gradients of inputs and weights, and buffers.
func (r reference) check(t *testing.T, name string, module any, train bool, f program) {
	t.Helper()
	r.load(t, name, module)
	var in, wrt []*millrace.Tensor
	var wants []string
	for i, x := range r.list(name, "in") {
		if key := "grad.in." + string(rune('0'+i)); r[name+"/"+key] != nil {
			x = autodiff.Watch(x)
			wrt, wants = append(wrt, x), append(wants, key)
		}
		in = append(in, x)
	}
	c := nn.NewCtx(nn.CtxOptions{Train: train, Watch: true})
	out := f(c, in)
	for i, want := range r.list(name, "out") {
		near(t, name+" out", out[i], want, tolerance)
	}
	loss := out[0]
	if seed := r[name+"/seed"]; seed != nil {
		loss = loss.Mul(seed).Sum()
	}
	if _, handles := c.Watched(); module != nil {
		wrt = append(wrt, handles...)
		ps, _ := c.Watched()
		for _, p := range ps {
			for _, n := range nn.Params(module) {
				if n.Param == p {
					wants = append(wants, "grad."+n.Name)
				}
			}
		}
	}
	for key := range r { // all derivatives that PyTorch gives
		if own, ok := strings.CutPrefix(key, name+"/"); ok && strings.HasPrefix(own, "grad.") && !slices.Contains(wants, own) {
			t.Errorf("%s: %s is not followed", name, own)
		}
	}
	grads, err := autodiff.Grad(loss, wrt...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for i, key := range wants {
		near(t, name+" "+key, grads[i], r[name+"/"+key], tolerance)
	}
	if err := c.Commit(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, p := range nn.Params(module) {
		if want := r[name+"/after."+p.Name]; train && want != nil {
			near(t, name+" after "+p.Name, p.Tensor(), want, tolerance)
		}
	}
}
