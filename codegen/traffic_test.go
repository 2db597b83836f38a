package codegen

import (
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// TestTraffic checks that repeated elements count once, and that an indexed operand counts at most
// its size and at most the number of lookups.
func TestTraffic(t *testing.T) {
	k, err := Parse("in 0 : float32\nin 1 : float32\nin 2 : int32\nout 3 : float32 row\n" +
		"%0 = load 2 : int32\n%1 = loadat 0 error %0 : float32\n%2 = load 1 : float32\n%3 = dot %1 %2 : float32\nstore 3 %3")
	if err != nil {
		t.Fatal(err)
	}
	var size [ir.NumDTypes]int
	for d := ir.Bool; d < ir.NumDTypes; d++ {
		size[d] = d.Size()
	}
	for _, c := range []struct{ table, read int64 }{
		{100, 4 * (15*7 + 3*7 + 5)}, // at most a row of 7 per result, 3 rows of 7, 5 indices
		{2, 4 * (2*7 + 3*7 + 5)},
	} {
		l := &runtime.Launch{Rank: 3, Kept: 2, Args: make([]runtime.Access, 4)}
		l.Dims[0], l.Dims[1], l.Dims[2] = 5, 3, 7
		l.Args[0].Stride[2], l.Args[0].IndexStride, l.Args[0].IndexSize = 1, 7, c.table
		l.Args[1].Stride[1], l.Args[1].Stride[2] = 7, 1
		l.Args[2].Stride[0] = 1
		l.Args[3].Stride[0], l.Args[3].Stride[1] = 3, 1
		read, written := Traffic(k, l, &size)
		if read != c.read || written != 60 {
			t.Errorf("table of %d: %d read, %d written, want %d and 60", c.table, read, written, c.read)
		}
	}
}

// TestTrafficInside checks that of operands read within bounds, like those of a Concat, only the
// elements inside count.
func TestTrafficInside(t *testing.T) {
	k, err := Parse("index 0\nindex 1\nin 2 : float32\nin 3 : float32\nout 4 : float32\n" +
		"%0 = indexlo 0 : uint32\n%1 = indexlo 1 : uint32\n%2 = or %0 %1 : uint32\n%3 = const 2147483648 : uint32\n" +
		"%4 = lt %2 %3 : bool\n%5 = load 2 %4 : float32\n%6 = load 3 : float32\n%7 = where %4 %5 %6 : float32\nstore 4 %7")
	if err != nil {
		t.Fatal(err)
	}
	var size [ir.NumDTypes]int
	size[ir.Float32] = 4
	for _, c := range []struct {
		low, high, step int64 // bounds along the first dim
		rows            int64
	}{
		{-2, 5, 1, 4},   // rows 2 to 5
		{0, 100, 1, 10}, // all of 10
		{-9, 3, 1, 0},
		{-3, 13, 2, 5}, // 2i >= 3, 2i <= 13: 2 to 6
		{5, -100, 1, 0},
	} {
		l := &runtime.Launch{Rank: 2, Kept: 2, Args: make([]runtime.Access, 5)}
		l.Dims[0], l.Dims[1] = 10, 7
		l.Args[0].Offset, l.Args[0].Stride[0] = c.low, c.step
		l.Args[1].Offset, l.Args[1].Stride[0] = c.high, -c.step
		for i := 2; i < 5; i++ {
			l.Args[i].Stride[0], l.Args[i].Stride[1] = 7, 1
		}
		if read, written := Traffic(k, l, &size); read != 4*(7*c.rows+70) || written != 280 {
			t.Errorf("%+v: %d bytes read, %d written, want %d and 280", c, read, written, 4*(7*c.rows+70))
		}
	}
}
