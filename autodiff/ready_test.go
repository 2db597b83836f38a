package autodiff_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// TestReady: each gradient is told once, complete, and from the last layer to the first; zeros and
// repeated tensors are told, too.
func TestReady(t *testing.T) {
	x := millrace.FromSlice([]float32{1, 2})
	var ws []*millrace.Tensor
	tied := autodiff.Watch(millrace.Full(millrace.Float32, 2, 2))
	h := x.Mul(tied)
	for i := range 4 { // each weight is watched where it is used, as nn does
		w := autodiff.Watch(millrace.Full(millrace.Float32, float64(i+1), 2))
		ws = append(ws, w)
		h = h.Mul(w)
	}
	loss := h.Mul(tied).Sum() // the first weight again: it is complete last
	unused := autodiff.Watch(millrace.Scalar[float32](1))
	wrt := append([]*millrace.Tensor{tied, unused, ws[2]}, ws...)
	var order []int
	told := map[int]*millrace.Tensor{}
	values := map[int]string{}
	grads, err := autodiff.Options{Ready: func(i int, g *millrace.Tensor) {
		order = append(order, i)
		told[i] = g
		values[i] = fmt.Sprint(g)
	}}.Grad(loss, wrt...)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{6, 2, 5, 4, 3, 0, 1}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
	for i, g := range grads {
		if got, want := values[i], fmt.Sprint(g); got != want {
			t.Errorf("gradient %d was told as %s, and is %s", i, got, want)
		}
		if i != 5 && told[i] != g { // 5 is the tensor of 2 again
			t.Errorf("gradient %d was told by another handle", i)
		}
	}
}
