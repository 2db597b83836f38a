package autodiff_test

import (
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// TestTopKOfALongAxis: the derivative of the selected elements of a long axis goes to the places
// that they came from, among equal elements to the first.
func TestTopKOfALongAxis(t *testing.T) {
	const n = 6000
	data := make([]float32, n)
	for i, v := range map[int]float32{17: 3, 4095: 5, 4096: 3, 5999: 4, 40: 3} {
		data[i] = v
	}
	x := autodiff.Watch(millrace.FromSlice(data))
	v, p := millrace.TopK(x, 4, 0)
	p.Release()
	g, err := autodiff.Grad(v.Square().Sum(), x)
	if err != nil {
		t.Fatal(err)
	}
	got, err := millrace.Values[float32](g[0])
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]float32{4095: 10, 5999: 8, 17: 6, 40: 6}
	for i, d := range got {
		if d != want[i] {
			t.Errorf("derivative %v at %d, want %v", d, i, want[i])
		}
	}
}
