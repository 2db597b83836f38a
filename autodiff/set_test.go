package autodiff

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestGradBySetIntegers: a watched handle that was Set to integers has no derivative, and the error
// names the line.
func TestGradBySetIntegers(t *testing.T) {
	w := Watch(millrace.FromSlice([]float32{1, 2}))
	loss := w.Square().Sum()
	w.Set(millrace.FromSlice([]int32{3, 4}))
	for name, by := range map[string]*millrace.Tensor{"the handle": w, "what is computed from it": w.AddScalar(1)} {
		d, err := Options{Keep: true}.Grad(loss, by)
		if !errors.Is(err, millrace.ErrDType) && !errors.Is(err, ErrGraph) || !strings.Contains(err.Error(), "set_test.go:") {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
	w.Set(millrace.FromSlice([]float32{5, 6}))
	d, err := Grad(w.Square().Sum(), w)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := millrace.Values[float32](d[0]); err != nil || v[0] != 10 || v[1] != 12 {
		t.Errorf("set to floats again: %v, %v", v, err)
	}
}
