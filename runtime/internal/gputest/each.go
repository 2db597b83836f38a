package gputest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/ir"
)

// eachKernels together have everything that neighbouring rows may share or not: positions, a scan,
// row values, an index, parameters.
var eachKernels = map[string]string{
	"softmax": rowtext.Softmax,
	"norm":    rowtext.Norm,
	"scaled": `in 0 : float32
in 1 : float32 row
in 2 : float32
out 3 : float32
%0 = load 0 : float32
%1 = mul %0 %0 : float32
%2 = sum %1 : float32
%3 = load 1 : float32
%4 = add %2 %3 : float32
%5 = rsqrt %4 : float32
%6 = mul %0 %5 : float32
%7 = load 2 : float32
%8 = mul %6 %7 : float32
store 3 %8
`,
	"mix": `in 0 : int32
in 1 : int32 row
out 2 : int32
out 3 : int32 row
index 4
out 5 : int32 row
scalar 0 : float32
%0 = load 0 : int32
%1 = max %0 : int32
%2 = load 1 : int32
%3 = sub %1 %2 : int32
%4 = xor %0 %3 : int32
%5 = cumsum %4 : int32
%6 = min %5 : int32
%7 = sub %5 %6 : int32
%8 = argmin %4 : int32
%9 = indexlo 4 : uint32
%10 = bitcast %9 : int32
%11 = add %7 %10 : int32
%12 = scalar 0 : float32
%13 = convert %12 : int32
%14 = add %8 %13 : int32
store 2 %11
store 3 %6
store 5 %14
`,
}

// testRowsTakenTogether tests shaders that take several neighbouring rows at once, as vectors of
// rows and by workgroups, with parameters of all rows and of each row.
func testRowsTakenTogether(t *testing.T) {
	d := openAs(t, software) // GPUs never do
	for name, src := range eachKernels {
		for _, c := range []struct {
			kept   int
			dims   []int64
			across bool
		}{{1, []int64{manyVectors * 4, 33}, true}, {2, []int64{3, manyVectors * 4 / 2, 40}, true},
			{1, []int64{wideVectors * 4, wideLong + 3}, true}, {2, []int64{3, wideVectors * 2, wideLong}, true},
			{1, []int64{manyGroups, 68}, false}, {2, []int64{2, manyGroups, 76}, false}} {
			if name == "mix" && !c.across {
				continue // workgroups that scan take one row
			}
			t.Run(fmt.Sprintf("%s/%v", name, c.dims), func(t *testing.T) {
				k := parse(t, src)
				x := newTrial(k, c.kept, c.dims...)
				if c.across {
					x.transpose()
				}
				if name == "norm" || name == "scaled" {
					clear(x.args[2].Stride[:c.kept]) // one weight for all rows
					if !c.across {
						clear(x.args[1].Stride[:c.kept])
					}
					x.args[2].Stride[c.kept] = 1
				}
				x.fillPositiveRows(rand.New(rand.NewPCG(1, 2)))
				x.allScalars(float32(points(c.dims[c.kept:])))
				if name == "softmax" && c.across { // in place
					x.shared[1] = 0
				}
				l := x.check(t, d, ir.Tolerance{Abs: 1e-5, Rel: 1e-5})
				v := d.Source(l.Prog)
				want := name == "scaled" || c.across // the others are faster in registers
				if got := strings.Contains(v[0].Source, " first = "); len(v) != 1 || got != want {
					t.Errorf("%d shaders, rows taken together %t, want %t\n%s", len(v), got, want, v[0].Source)
				}
			})
		}
	}
}

// testRowWork counts the work of a norm with a weight at a point.
func testRowWork(t *testing.T) {
	k := parse(t, rowtext.Norm)
	v := shader.Dense(k, 4)
	v.Args[2].Still = true
	for _, c := range []struct {
		each     int
		unrolled bool
		accesses float64
	}{{0, false, 5}, {0, true, 3}, {4, false, 4.25}} {
		v.Each = c.each
		if w := shader.CountRowWork(k, &v, c.unrolled); w.Accesses != c.accesses {
			t.Errorf("each %d, unrolled %t: %v accesses, want %v", c.each, c.unrolled, w.Accesses, c.accesses)
		}
	}
}

// testSoftmaxOnline sends rows of infinities and NaN, at their ends and everywhere, through a pass
// that has no maximum yet.
func testSoftmaxOnline(t *testing.T) {
	d := openAs(t, software)
	inf, nan := math.Inf(1), math.NaN()
	rows := [][]float64{
		{-inf, 1, 2, 3}, {-inf, -inf, -inf, -inf}, {1, -inf, 5, -inf}, {inf, 1, 2, 3}, {1, inf, -inf, inf}, {nan, 1, 2, 3},
		{1, 2, 3, nan}, {-inf, nan, inf, 0}, {-200, 0, 200, 0}, {88, 89, 90, 3e38}, {-3e38, 3e38, 0, 1}, {0, 0, 0, 0},
	}
	for _, n := range []int{40, 41} { // by several points, and one by one
		x := newTrial(parse(t, rowtext.Softmax), 1, fewColumns, int64(n))
		x.transpose()
		for i := range fewColumns {
			for j := range n {
				v := rows[i%len(rows)][j*4/n]
				binary.LittleEndian.PutUint32(x.args[0].Data[4*(j*fewColumns+i):], math.Float32bits(float32(v)))
			}
		}
		l := x.check(t, d, ir.Tolerance{Abs: 1e-5, Rel: 1e-5})
		if text := sources(d, l); strings.Count(text, "for (") != 2 {
			t.Errorf("the maximum and the sum have passes of their own:\n%s", text)
		}
	}
}
