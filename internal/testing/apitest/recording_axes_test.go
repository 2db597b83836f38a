package apitest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestRandomRecordingsWithAxes: random functions of arguments with named axes give the same bits at
// every size, called or adapted from another size, and are called for the first size only.
func TestRandomRecordingsWithAxes(t *testing.T) {
	devices := []*millrace.Device{openSpec(t, "cpu:compile=off"), openSpec(t, "cpu:compile=off,queue=5"), openSpec(t, "ref")}
	general, n := 0, count(t, "PROGRAMS", 80)
	for seed := range uint64(n) {
		dev := devices[seed%3]
		calls, err := sizedFunction(dev, seed)
		if err != nil {
			t.Fatalf("seed %d on %v: %v", seed, dev, err)
		}
		if calls == 1 {
			general++
		}
	}
	if general < n*19/20 {
		t.Errorf("%d of %d functions were called at the first size only", general, n)
	}
}

// sized is a tensor whose dims have names, which determine their sizes.
type sized struct {
	*tensor
	names []string
}

// sizedFunction runs a function of seed at several sizes, by calling it and as a Recording, and
// counts the calls for values.
func sizedFunction(dev *millrace.Device, seed uint64) (calls int64, err error) {
	s := dev.NewStream()
	weight := millrace.NormalOn(dev, millrace.Float32, seed, 4, 4)
	args := [][]string{{"a", "4"}, {"b", "4"}, {"a", "b", "4"}}
	f := func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) {
		var list []sized
		for i, x := range in {
			list = append(list, sized{x, args[i]})
		}
		rng := rand.New(rand.NewPCG(seed, 7))
		for range 4 + rng.IntN(30) {
			list = append(list, sizedOp(sc, rng, list, weight, in[2].Shape()))
		}
		var out []*tensor
		for range 1 + rng.IntN(3) {
			out = append(out, list[rng.IntN(len(list))].tensor)
		}
		return append(out, list[len(list)-1].tensor), nil
	}
	rec := millrace.NewRecording(f, millrace.Axes{"a", ""}, millrace.Axes{"b", ""}, millrace.Axes{"a", "b", ""})
	defer rec.Release()
	rng := rand.New(rand.NewPCG(seed, 8))
	before := dev.Stats().Recordings
	for turn := range 5 {
		a, b := 3+rng.IntN(20), 3+rng.IntN(20)
		if turn == 4 {
			a, b = 100+rng.IntN(100), 7
		}
		if err := s.Scope(func(sc *millrace.Scope) error {
			in := []*tensor{millrace.NormalOn(sc, millrace.Float32, seed+1, a, 4), millrace.NormalOn(sc, millrace.Float32, seed+2, b, 4), millrace.NormalOn(sc, millrace.Float32, seed+3, a, b, 4)}
			want, err := f(sc, in)
			if err != nil {
				return err
			}
			got, err := rec.RunWith(nil, millrace.RunOptions{On: s}, in...)
			if err != nil {
				return err
			}
			for i := range want {
				x, err := Bytes(want[i])
				if err != nil {
					return err
				}
				y, err := Bytes(got[i])
				if err != nil {
					return err
				}
				if !slices.Equal(want[i].Shape(), got[i].Shape()) || !slices.Equal(x, y) {
					return fmt.Errorf("turn %d, a %d, b %d: result %d of shape %v is of shape %v, or other bits", turn, a, b, i, want[i].Shape(), got[i].Shape())
				}
				got[i].Release()
			}
			return nil
		}); err != nil {
			return 0, err
		}
	}
	return dev.Stats().Recordings - before, nil
}

// sizedOp does one op of a random function. Its choices depend on the names only.
func sizedOp(sc *millrace.Scope, rng *rand.Rand, list []sized, weight *tensor, sizes []int) sized {
	x := list[rng.IntN(len(list))]
	rank := len(x.names)
	names := slices.Clone(x.names)
	axis := 0
	if rank > 0 {
		axis = rng.IntN(rank)
	}
	size := func(d int) int { return x.Shape()[d] }
	whole := make([]millrace.Range, rank)
	switch kind := rng.IntN(18); {
	case kind == 0:
		return sized{x.Tanh(), names}
	case kind == 1:
		return sized{x.MulScalar(0.5).AddScalar(float64(sizes[0])), names}
	case kind == 2:
		return sized{x.MulScalar(1 / float64(sizes[1])), names}
	case kind == 3 && rank > 0:
		return sized{x.MeanKeep(axis), append(names[:axis:axis], append([]string{"1"}, names[axis+1:]...)...)}
	case kind == 4 && rank > 0:
		return sized{x.Sum(axis), append(names[:axis:axis], names[axis+1:]...)}
	case kind == 5 && rank > 0:
		return sized{x.Softmax(axis), names}
	case kind == 6 && rank > 1:
		order := rng.Perm(rank)
		to := make([]string, rank)
		for i, o := range order {
			to[i] = names[o]
		}
		return sized{x.Permute(order...), to}
	case kind == 7 && rank > 1: // two dims become one
		d := rng.IntN(rank - 1)
		dims := slices.Clone(x.Shape())
		dims[d] *= dims[d+1]
		if rng.IntN(2) == 0 {
			dims[rng.IntN(rank-1)] = -1
			dims = slices.Delete(dims, d+1, d+2)
			if !slices.Contains(dims, -1) {
				dims[d] = -1
			}
		} else {
			dims = slices.Delete(dims, d+1, d+2)
		}
		return sized{x.Reshape(dims...), append(names[:d:d], append([]string{names[d] + "*" + names[d+1]}, names[d+2:]...)...)}
	case kind == 8 && rank > 0 && names[axis] == "4":
		dims := slices.Clone(x.Shape())
		dims[axis] = 2
		return sized{x.Reshape(slices.Insert(dims, axis, 2)...), slices.Insert(names[:axis:axis], axis, append([]string{"2", "2"}, x.names[axis+1:]...)...)}
	case kind == 9 && rank > 0 && len(names[axis]) == 1 && names[axis] != "1":
		whole[axis] = millrace.R(1, size(axis))
		if rng.IntN(2) == 0 {
			whole[axis] = millrace.R(0, size(axis)-1)
		}
		names[axis] += "-1"
		return sized{x.Slice(whole...), names}
	case kind == 10 && rank > 0:
		return sized{x.Flip(axis), names}
	case kind == 11 && rank > 0:
		y := millrace.OnesOn(sc, millrace.Float32, x.Shape()...)
		names[axis] += "+" + names[axis]
		return sized{millrace.Concat(axis, x.tensor, y), names}
	case kind == 12 && rank > 0:
		pads := make([]millrace.Padding, rank)
		pads[axis] = millrace.Padding{Before: 1, After: size(axis)}
		names[axis] = "1+2" + names[axis]
		return sized{x.Pad(0.25, pads...), names}
	case kind == 13 && rank > 0 && names[rank-1] == "4":
		return sized{x.MatMul(weight.Permute(1, 0)), names}
	case kind == 14 && rank > 1:
		y := x.Permute(append(order(rank-2), rank-1, rank-2)...)
		names[rank-1] = names[rank-2]
		return sized{x.MatMul(y).Tanh(), names}
	case kind == 15 && rank > 0:
		return sized{x.CumSum(axis), names}
	case kind == 16 && rank > 0:
		at := millrace.ArangeOn(sc, millrace.Int32, float64(size(axis)-1), -1, -1)
		return sized{x.Take(at, axis), names}
	}
	for range 8 {
		y := list[rng.IntN(len(list))]
		if fits := to(x, y); fits != nil {
			return sized{x.Add(y.tensor), fits}
		}
	}
	return sized{x.Neg(), names}
}

func order(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// to is the names of x and y broadcast together, nil if they are incompatible.
func to(x, y sized) []string {
	a, b := x.names, y.names
	if len(a) < len(b) {
		a, b = b, a
	}
	names := slices.Clone(a)
	for i, name := range b {
		switch at := &names[len(a)-len(b)+i]; {
		case *at == "1":
			*at = name
		case name != "1" && name != *at:
			return nil
		}
	}
	return names
}

// TestRecordingAxes: a Recording with axes at sizes of 0 and 1, and functions with independent
// sizes, with reads, with failures at some sizes, or with panics.
func TestRecordingAxes(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off")
	s := dev.NewStream()
	outside := millrace.Ones(millrace.Float32, 3)
	elsewhere := millrace.OnesOn(dev.NewStream(), millrace.Float32, 1)
	table := millrace.NormalOn(dev, millrace.Float32, 1, 400, 3)
	part := table.Slice(millrace.R(100, 350)) // a view of another tensor's memory
	type call = func(sc *millrace.Scope, x *tensor) (*tensor, error)
	for name, c := range map[string]struct {
		f     call
		sizes []int
		calls int64 // at these sizes
	}{
		"plain":        {func(_ *millrace.Scope, x *tensor) (*tensor, error) { return x.MulScalar(2), nil }, []int{5, 6, 7, 5, 300}, 1},
		"small":        {func(_ *millrace.Scope, x *tensor) (*tensor, error) { return x.MulScalar(2), nil }, []int{5, 1, 0, 1, 0, 6}, 3},
		"small inside": {func(_ *millrace.Scope, x *tensor) (*tensor, error) { return x.Slice(millrace.R(1, x.Shape()[0])), nil }, []int{5, 6, 2, 3, 2}, 2},
		"halves": {func(_ *millrace.Scope, x *tensor) (*tensor, error) {
			return x.Slice(millrace.R(0, x.Shape()[0]/2)), nil
		}, []int{5, 6, 7, 5}, 3},
		"steps": {func(_ *millrace.Scope, x *tensor) (*tensor, error) {
			return x.Slice(millrace.R(0, x.Shape()[0], 2)), nil
		}, []int{5, 6, 7}, 3},
		"reads": {func(_ *millrace.Scope, x *tensor) (*tensor, error) {
			sum, err := millrace.Item[float32](x.Sum())
			return x.MulScalar(float64(sum)), err
		}, []int{5, 6, 5}, 3},
		"evaluates": {func(_ *millrace.Scope, x *tensor) (*tensor, error) {
			y := x.MulScalar(3)
			return y.AddScalar(1), y.Eval()
		}, []int{5, 6, 5}, 2},
		"makes data": {func(sc *millrace.Scope, x *tensor) (*tensor, error) {
			return x.Add(millrace.FromSliceOn(sc, make([]float32, x.Shape()[0]))), nil
		}, []int{5, 6, 7}, 3},
		"chooses": {func(_ *millrace.Scope, x *tensor) (*tensor, error) {
			if x.Shape()[0] > 100 {
				return x.Exp(), nil
			}
			return x.Tanh(), nil
		}, []int{5, 6, 101}, 3},
		"panics at sizes": {func(_ *millrace.Scope, x *tensor) (*tensor, error) {
			if x.Shape()[0] > 50 {
				panic("so many")
			}
			return x.Tanh(), nil
		}, []int{5, 6, 7}, 3},
		"fails at sizes": {func(_ *millrace.Scope, x *tensor) (*tensor, error) {
			if x.Shape()[0] > 50 {
				return x.Reshape(7, 11), nil
			}
			return x.Tanh(), nil
		}, []int{5, 6, 7}, 3},
		"sets on trial": {func(_ *millrace.Scope, x *tensor) (*tensor, error) {
			if x.Shape()[0] > 50 {
				outside.Set(x.Sum())
			}
			return x.Tanh(), nil
		}, []int{5, 6, 7}, 3},
		"mixes": {func(_ *millrace.Scope, x *tensor) (*tensor, error) {
			y := elsewhere.Add(x) // not on the trial's stream
			if x.Shape()[0] > 50 {
				outside.Set(y.Sum())
			}
			return y.Tanh(), nil
		}, []int{5, 6, 7}, 3},
		"slices others": {func(_ *millrace.Scope, x *tensor) (*tensor, error) {
			n := x.Shape()[0]
			return x.Reshape(-1, 1).Mul(table.Slice(millrace.R(1, n+1))).Sum(0), nil
		}, []int{5, 6, 7, 399}, 1},
		"slices too far": {func(_ *millrace.Scope, x *tensor) (*tensor, error) {
			n := min(x.Shape()[0], 200)
			return x.Sum().Mul(part.Slice(millrace.R(n, 2*n)).Sum()), nil
		}, []int{5, 6, 7}, 3},
		"slices parts": {func(_ *millrace.Scope, x *tensor) (*tensor, error) {
			n := x.Shape()[0]
			return x.Sum().Mul(part.Slice(millrace.R(n, n+4)).Sum()), nil
		}, []int{5, 6, 7}, 3},
		"moves": {func(sc *millrace.Scope, x *tensor) (*tensor, error) {
			return x.To(sc).AddScalar(1).To(sc).MulScalar(3), nil
		}, []int{5, 6, 7, 8}, 1},
		"count": {func(_ *millrace.Scope, x *tensor) (*tensor, error) {
			return x.Mean().AddScalar(float64(x.Shape()[0])).MulScalar(1 / float64(3*x.Shape()[0]+1)), nil
		}, []int{5, 6, 7, 1000}, 1},
	} {
		var rec *millrace.Recording
		rec = millrace.NewRecording(func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) {
			y, err := c.f(sc, in[0])
			return []*tensor{y}, err
		}, millrace.Axes{"n"})
		before := dev.Stats()
		for _, n := range c.sizes {
			x := millrace.NormalOn(s, millrace.Float32, uint64(n), n)
			var want *tensor
			if err := s.Scope(func(sc *millrace.Scope) (err error) {
				if want, err = c.f(sc, x); err == nil {
					sc.Keep(want)
				}
				return err
			}); err != nil {
				t.Fatal(name, err)
			}
			got, err := rec.RunWith(nil, millrace.RunOptions{On: s}, x)
			if err != nil {
				t.Fatalf("%s of %d: %v", name, n, err)
			}
			a, err := Bytes(want)
			b, err2 := Bytes(got[0])
			if err = errors.Join(err, err2); err != nil || !slices.Equal(a, b) || !slices.Equal(want.Shape(), got[0].Shape()) {
				t.Errorf("%s of %d: %v, other values, or %v for %v", name, n, err, got[0].Shape(), want.Shape())
			}
		}
		if calls := dev.Stats().Recordings - before.Recordings; calls != c.calls {
			t.Errorf("%s: called at %d of the sizes %v, want %d", name, calls, c.sizes, c.calls)
		}
		rec.Release()
	}
	if !slices.Equal(outside.Shape(), []int{3}) {
		t.Error("a trial set a tensor")
	}
	if err := errors.Join(outside.Err(), s.Err(), dev.Err()); err != nil {
		t.Errorf("of trials nobody need hear: %v", err)
	}
}

// TestBadRecordingAxes: arguments that do not fit their axes are errors with the caller's line, and
// the Recording stays usable.
func TestBadRecordingAxes(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off")
	s := dev.NewStream()
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
		return []*tensor{in[0].MatMul(in[1])}, nil
	}, millrace.Axes{"n", "k"}, millrace.Axes{"k", ""})
	ones := func(shape ...int) *tensor { return millrace.OnesOn(s, millrace.Float32, shape...) }
	for name, c := range map[string]struct {
		in   []*tensor
		want string
	}{
		"few":      {[]*tensor{ones(2, 3)}, "1 inputs were given for a Recording that names the axes of 2"},
		"rank":     {[]*tensor{ones(2, 3), ones(3)}, "input 1 of a Recording has shape (3), the number of named axes is 2"},
		"mismatch": {[]*tensor{ones(2, 3), ones(4, 5)}, `axis "k" of earlier inputs is 3`},
	} {
		_, err := rec.RunWith(nil, millrace.RunOptions{On: s}, c.in...)
		if !errors.Is(err, millrace.ErrShape) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "recording_axes_test.go") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Another size of an axis without a name, and another dtype, are recorded again.
	before := dev.Stats().Recordings
	for _, in := range [][]*tensor{{ones(2, 3), ones(3, 5)}, {ones(4, 3), ones(3, 5)}, {ones(4, 3), ones(3, 6)}, {ones(6, 2), ones(2, 6)},
		{ones(6, 2).Cast(millrace.Float64), ones(2, 6).Cast(millrace.Float64)}, {ones(7, 2).Cast(millrace.Float64), ones(2, 6).Cast(millrace.Float64)}} {
		out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, in...)
		if err != nil || !slices.Equal(out[0].Shape(), []int{in[0].Shape()[0], in[1].Shape()[1]}) || out[0].DType() != in[0].DType() {
			t.Fatal(out, err)
		}
	}
	if n := dev.Stats().Recordings - before; n != 3 {
		t.Errorf("recorded %d times, want 3", n)
	}
}

// TestRecordingAxesAtOnce: many goroutines use more sizes than are kept, while the Recording is
// released.
func TestRecordingAxesAtOnce(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off")
	weight := millrace.NormalOn(dev, millrace.Float32, 1, 8, 8)
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
		return []*tensor{in[0].MatMul(weight).Softmax(-1).Sum(1)}, nil
	}, millrace.Axes{"n", ""})
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			s := dev.NewStream()
			rng := rand.New(rand.NewPCG(g, 1))
			for i := range 150 {
				n := 2 + rng.IntN(60)
				out, err := rec.RunWith(nil, millrace.RunOptions{Give: []bool{true}}, millrace.NormalOn(s, millrace.Float32, g, n, 8))
				if err != nil {
					t.Error(err)
					return
				}
				v, err := millrace.Values[float32](out[0])
				if err != nil || len(v) != n || v[n-1] < 0.999 || v[n-1] > 1.001 {
					t.Errorf("%d rows: %v, %v", n, v, err)
					return
				}
				if g == 0 && i%50 == 49 {
					rec.Release()
				}
			}
		})
	}
	wg.Wait()
	if n := dev.Stats(); n.Recordings > 40 || n.Resizes < 60 {
		t.Errorf("%d recordings, %d resizes", n.Recordings, n.Resizes)
	}
}
