package calls_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/millrace-go/millrace"
)

func TestElementsInOrder(t *testing.T) {
	d := openCPU(t, "cpu")
	x := millrace.FromSliceOn(d, []int32{1, 2, 3, 4, 5, 6}, 2, 3)
	list := func(x *tensor, most int) (s string) {
		all, err := millrace.Elements[int32](x)
		if err != nil {
			return err.Error()
		}
		for at, v := range all {
			if s += fmt.Sprint(at, v) + " "; most == 1 {
				break
			}
			most--
		}
		return s
	}
	for _, c := range []struct {
		x    *tensor
		most int
		want string
	}{
		{x, 9, "[0 0] 1 [0 1] 2 [0 2] 3 [1 0] 4 [1 1] 5 [1 2] 6 "},
		{x.T(), 3, "[0 0] 1 [0 1] 4 [1 0] 2 "},
		{x.Sum(), 9, "[] 21 "},
		{x.Slice(millrace.R(0, 0)), 9, ""},
	} {
		if got := list(c.x, c.most); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if _, err := millrace.Elements[int64](x); !errors.Is(err, millrace.ErrDType) {
		t.Errorf("as int64: %v", err)
	}
	_, err := millrace.Elements[int64](nil)
	wantError(t, "elements", err, nil, line()-1)
}

func TestAlong(t *testing.T) {
	d := openCPU(t, "cpu")
	x := millrace.FromSliceOn(d, []int32{1, 2, 3, 4, 5, 6}, 2, 3)
	for axis, want := range map[int]string{0: "0 [1 2 3]1 [4 5 6]", -2: "0 [1 2 3]1 [4 5 6]", 1: "0 [1 4]1 [2 5]2 [3 6]", -1: "0 [1 4]1 [2 5]2 [3 6]"} {
		got := ""
		for i, row := range x.Along(axis) {
			got += fmt.Sprint(i, row)
		}
		if got != want {
			t.Errorf("along %d: %s, want %s", axis, got, want)
		}
	}
	for i, row := range x.Along(0) { // it iterates over x's value at the call
		x.Set(row)
		if i == 1 && fmt.Sprint(row) != "[4 5 6]" {
			t.Errorf("after Set: %v", row)
		}
	}
	for _, c := range []struct {
		x    *tensor
		axis int
		want error
	}{{x, 1, millrace.ErrShape}, {x, -2, millrace.ErrShape}, {x.Sum(), 0, millrace.ErrShape}, {nil, 0, nil}, {new(tensor), 0, nil}} {
		n := 0
		for _, row := range c.x.Along(c.axis) {
			wantError(t, "along", row.Err(), c.want, line()-1)
			n++
		}
		if n != 1 {
			t.Errorf("%d tensors for an error", n)
		}
	}
	for range x.Slice(millrace.R(0, 0)).Along(0) {
		t.Error("a slice of nothing")
	}
}

// A tensor's elements with their indices, and its rows.
func ExampleElements() {
	x := millrace.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	elements, err := millrace.Elements[float32](x)
	if err != nil {
		fmt.Println(err)
		return
	}
	for at, v := range elements {
		fmt.Println(at, v)
	}
	for i, row := range x.Along(0) {
		fmt.Println(i, row)
	}
	// Output:
	// [0 0] 1
	// [0 1] 2
	// [1 0] 3
	// [1 1] 4
	// 0 [1. 2.]
	// 1 [3. 4.]
}
