package data_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
)

func source(t testing.TB) func(s data.Source, err error) data.Source {
	return func(s data.Source, err error) data.Source {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// all returns every record, as text.
func all(t testing.TB, s data.Source) string {
	t.Helper()
	var list []string
	for i := range s.Len() {
		list = append(list, record(t, s, i))
	}
	return strings.Join(list, "; ")
}

func TestFromColumns(t *testing.T) {
	s := source(t)(data.FromColumns(data.ColumnOf([]float32{1, 2, 3, 4, 5, 6}, 1, 2), data.ColumnOf([]int32{7, 8, 9}), data.ColumnOf([]uint8{1, 2, 3})))
	if got := fmt.Sprint(s.Fields()); got != "[x float32[1 2] y int32[] field2 uint8[]]" {
		t.Error(got)
	}
	if got := all(t, s); got != "1 2] [7] [1; 3 4] [8] [2; 5 6] [9] [3" {
		t.Error(got)
	}
	for name, cols := range map[string][]data.Column{
		"none":     nil,
		"zero":     {{}},
		"shape":    {data.ColumnOf([]float32{1, 2, 3}, 2)},
		"negative": {data.ColumnOf([]float32{1, 2, 3}, -1)},
		"empty":    {data.ColumnOf([]float32{}, 0)},
		"overflow": {data.ColumnOf([]float32{1}, math.MaxInt, math.MaxInt)},
		"numbers":  {data.ColumnOf([]float32{1, 2, 3}), data.ColumnOf([]float32{1, 2})},
	} {
		if s, err := data.FromColumns(cols...); s != nil || !errors.Is(err, millrace.ErrShape) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

// TestFromTensors: every dtype goes through a loader and back.
func TestFromTensors(t *testing.T) {
	dev := device(t)
	for _, dt := range []millrace.DType{
		millrace.Bool, millrace.Uint8, millrace.Uint16, millrace.Uint32, millrace.Uint64, millrace.Int8, millrace.Int16, millrace.Int32, millrace.Int64,
		millrace.Float16, millrace.BFloat16, millrace.Float32, millrace.Float64,
	} {
		if !dev.Supports(dt) {
			t.Fatal(dt)
		}
		x := millrace.Arange(millrace.Int32, 0, 12, 1).Cast(dt).Reshape(3, 2, 2)
		s := source(t)(data.FromTensors(x, millrace.Arange(millrace.Int32, 0, 3, 1)))
		for b, err := range loader(t, s, data.Options{Batch: 3}).Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if same, err := millrace.Equal(b.X, x); !same || err != nil {
				t.Errorf("%v: %v, %v", dt, b.X, err)
			}
		}
	}
	gone := millrace.Ones(millrace.Int8, 2)
	gone.Release()
	for name, ts := range map[string][]*millrace.Tensor{
		"none": nil, "0-d": {millrace.Scalar(1.0)}, "released": {gone}, "nil": {nil}, "numbers": {millrace.Ones(millrace.Int8, 2), millrace.Ones(millrace.Int8, 3)},
	} {
		if s, err := data.FromTensors(ts...); s != nil || err == nil {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

func TestCombine(t *testing.T) {
	a := source(t)(data.FromColumns(data.ColumnOf([]int32{0, 1, 2})))
	b := source(t)(data.FromColumns(data.ColumnOf([]int32{10, 11})))
	none := source(t)(data.FromColumns(data.ColumnOf([]int32{})))
	s := source(t)(data.Concat(none, a, none, b, a))
	if got := all(t, s); got != "0; 1; 2; 10; 11; 0; 1; 2" {
		t.Error(got)
	}
	sub := source(t)(data.Subset(s, []int{4, 0, 4}))
	if got := all(t, sub); got != "11; 0; 11" {
		t.Error(got)
	}
	double := source(t)(data.Map(sub, []data.Field{{Name: "x", DType: millrace.Float32, Shape: []int{2}}}, func(i int, in, out []any) error {
		v := in[0].([]int32)[0]
		if v == 0 {
			return errors.New("zero")
		}
		out[0].([]float32)[0], out[0].([]float32)[1] = float32(v)/2, float32(i)
		return nil
	}))
	z := source(t)(data.Zip(sub, double))
	if got := record(t, z, 2); got != "11] [5.5 2" {
		t.Error(got)
	}
	if err := z.Read(1, room(z)); err == nil || err.Error() != "zero" {
		t.Error(err)
	}
	// An error keeps the index in the part.
	whole := source(t)(data.Concat(double, double))
	err := whole.Read(4, room(whole))
	if re, ok := errors.AsType[*data.RecordError](err); !ok || re.Record != 1 {
		t.Error(err)
	}
	pair := source(t)(data.FromColumns(data.ColumnOf([]int32{1, 2, 3, 4}, 2)))
	for name, f := range map[string]func() (data.Source, error){
		"concat of none":  func() (data.Source, error) { return data.Concat() },
		"other shapes":    func() (data.Source, error) { return data.Concat(a, pair) },
		"other fields":    func() (data.Source, error) { return data.Concat(sub, z) },
		"zip of none":     func() (data.Source, error) { return data.Zip() },
		"zip":             func() (data.Source, error) { return data.Zip(a, b) },
		"subset":          func() (data.Source, error) { return data.Subset(a, []int{0, 3}) },
		"negative subset": func() (data.Source, error) { return data.Subset(a, []int{-1}) },
		"map to nothing":  func() (data.Source, error) { return data.Map(a, nil, nil) },
	} {
		if s, err := f(); s != nil || err == nil {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

// TestMapInParallel: concurrent calls of Map's function have separate memory.
func TestMapInParallel(t *testing.T) {
	s := source(t)(data.Map(&counting{n: 1000}, []data.Field{{Name: "x", DType: millrace.Float32}}, func(i int, in, out []any) error {
		x, y := in[0].([]float32), in[1].([]int64)
		if x[0] != float32(i) || y[0] != int64(i) {
			return fmt.Errorf("record %d is %v, %v", i, x, y)
		}
		out[0].([]float32)[0] = x[0] * 2
		return nil
	}))
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			dst := []any{make([]float32, 1)}
			for i := w; i < 1000; i++ {
				if err := s.Read(i, dst); err != nil || dst[0].([]float32)[0] != float32(2*i) {
					t.Errorf("record %d: %v, %v", i, dst, err)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestSplit(t *testing.T) {
	src := &counting{n: 100}
	y := func(s data.Source) (list []int) {
		for i := range s.Len() {
			dst := []any{make([]float32, 2), make([]int64, 1)}
			if err := s.Read(i, dst); err != nil {
				t.Fatal(err)
			}
			list = append(list, int(dst[1].([]int64)[0]))
		}
		return list
	}
	for fraction, n := range map[float64]int{0: 0, 1: 100, 0.8: 80, 0.333: 33, 0.5: 50} {
		a, b, err := data.Split(src, fraction, 5)
		if err != nil {
			t.Fatal(err)
		}
		first, rest := y(a), y(b)
		if len(first) != n || !slices.IsSorted(first) || !slices.IsSorted(rest) {
			t.Errorf("%v: %v, %v", fraction, first, rest)
		}
		both := slices.Concat(first, rest)
		slices.Sort(both)
		for i, r := range both {
			if i != r {
				t.Fatalf("%v: record %d is there not once", fraction, i)
			}
		}
		a2, _, _ := data.Split(src, fraction, 5)
		other, _, _ := data.Split(src, fraction, 6)
		if !slices.Equal(y(a2), first) || n > 10 && n < 90 && (slices.Equal(y(other), first) || first[n-1] == n-1) {
			t.Errorf("%v: the seed does not decide", fraction)
		}
	}
	for _, f := range []float64{-0.1, 1.1, math.NaN()} {
		if _, _, err := data.Split(src, f, 1); err == nil {
			t.Errorf("split by %v", f)
		}
	}
}
