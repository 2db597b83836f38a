package millrace_test

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestBadRowsAndMoves makes bad calls of reductions, contractions, movement and windows. The
// error must have the cause, the name of the called function, the operands' shapes and the
// caller's line.
func TestBadRowsAndMoves(t *testing.T) {
	f32, i32 := millrace.Float32, millrace.Int32
	f := millrace.Ones(f32, 2, 3)
	v := millrace.Ones(f32, 3)
	d := millrace.Ones(millrace.Float64, 3, 2)
	i := millrace.Ones(i32, 2, 3)
	at := millrace.Zeros(i32, 2)
	b := millrace.Ones(millrace.Bool, 2, 3)
	zero := millrace.Ones(f32)
	none := millrace.Zeros(f32, 0, 3)
	deep := millrace.Zeros(f32, 1, 1, 1, 1, 1, 1, 1, 1)
	image, kernels := millrace.Zeros(f32, 1, 4, 5, 5), millrace.Zeros(f32, 6, 4, 3, 3)
	shape, dtype := millrace.ErrShape, millrace.ErrDType
	type opt = millrace.ConvOptions
	type win = millrace.Window
	type pad = millrace.Padding
	values := func(t, _ *tensor) *tensor { return t }
	for _, c := range []struct {
		op    string
		call  func() (*tensor, int)
		cause error
	}{
		{"prod", func() (*tensor, int) { return f.Prod(2), line() }, shape},
		{"prod", func() (*tensor, int) { return b.Prod(), line() }, dtype},
		{"min", func() (*tensor, int) { return none.Min(), line() }, shape},
		{"any", func() (*tensor, int) { return f.Any(), line() }, dtype},
		{"all", func() (*tensor, int) { return i.AllKeep(1), line() }, dtype},
		{"argmax", func() (*tensor, int) { return none.ArgMax(0), line() }, shape},
		{"argmax", func() (*tensor, int) { return b.ArgMax(0), line() }, dtype},
		{"argmin", func() (*tensor, int) { return f.ArgMinAs(f32), line() }, dtype},
		{"argmin", func() (*tensor, int) { return f.ArgMin(0, 0), line() }, shape},
		{"mean", func() (*tensor, int) { return i.Mean(), line() }, dtype},
		{"mean", func() (*tensor, int) { return f.Mean(-3), line() }, shape},
		{"var", func() (*tensor, int) { return i.Var(0), line() }, dtype},
		{"std", func() (*tensor, int) { return f.Std(0, 1, 1), line() }, shape},
		{"logsumexp", func() (*tensor, int) { return none.LogSumExp(0), line() }, shape},
		{"logsumexp", func() (*tensor, int) { return b.LogSumExpKeep(), line() }, dtype},
		{"norm1", func() (*tensor, int) { return i.Norm1(), line() }, dtype},
		{"norm2", func() (*tensor, int) { return f.Norm2(5), line() }, shape},
		{"cumsum", func() (*tensor, int) { return f.CumSum(2), line() }, shape},
		{"cumprod", func() (*tensor, int) { return b.CumProd(0), line() }, dtype},
		{"cummax", func() (*tensor, int) { return zero.CumMax(0), line() }, shape},
		{"sort", func() (*tensor, int) { return f.Sort(-3), line() }, shape},
		{"sort", func() (*tensor, int) { return b.SortDescending(0), line() }, dtype},
		{"argsort", func() (*tensor, int) { return f.ArgSort(2), line() }, shape},
		{"argsort", func() (*tensor, int) { return f.ArgSortAs(f32, 0, true), line() }, dtype},
		{"topk", func() (*tensor, int) { return values(millrace.TopK(f, 4, 1)), line() }, shape},
		{"topk", func() (*tensor, int) { return values(millrace.TopK(f, -1, 1)), line() }, shape},
		{"topk", func() (*tensor, int) { return values(millrace.TopK(f, 1, 2)), line() }, shape},
		{"topk", func() (*tensor, int) { return values(millrace.TopK(b, 1, 1)), line() }, dtype},
		{"softmax", func() (*tensor, int) { return f.Softmax(2), line() }, shape},
		{"softmax", func() (*tensor, int) { return none.Softmax(0), line() }, shape},
		{"softmax", func() (*tensor, int) { return zero.Softmax(-1), line() }, shape},
		{"softmax", func() (*tensor, int) { return i.Softmax(0), line() }, dtype},
		{"logsoftmax", func() (*tensor, int) { return none.LogSoftmax(0), line() }, shape},
		{"maskedsoftmax", func() (*tensor, int) { return f.MaskedSoftmax(nil, 2), line() }, shape},
		{"maskedsoftmax", func() (*tensor, int) { return f.MaskedSoftmax(b, 2), line() }, shape},
		{"maskedsoftmax", func() (*tensor, int) { return f.MaskedSoftmax(f, 0), line() }, dtype},
		{"maskedsoftmax", func() (*tensor, int) { return i.MaskedSoftmax(b, 0), line() }, dtype},
		{"maskedsoftmax", func() (*tensor, int) { return v.MaskedSoftmax(b, 0), line() }, shape},
		{"maskedlogsoftmax", func() (*tensor, int) { return zero.MaskedLogSoftmax(nil, -1), line() }, shape},
		{"layernorm", func() (*tensor, int) { return f.LayerNorm(d, nil, 0), line() }, dtype},
		{"layernorm", func() (*tensor, int) { return f.LayerNorm(nil, at.Cast(f32), 0), line() }, shape},
		{"layernorm", func() (*tensor, int) { return v.LayerNorm(f, nil, 0), line() }, shape},
		{"layernorm", func() (*tensor, int) { return i.LayerNorm(nil, nil, 0), line() }, dtype},
		{"rmsnorm", func() (*tensor, int) { return f.RMSNorm(nil, 0, 2), line() }, shape},
		{"crossentropy", func() (*tensor, int) { return millrace.CrossEntropy(f, v), line() }, shape},
		{"crossentropy", func() (*tensor, int) { return millrace.CrossEntropy(f, at.Cast(f32)), line() }, dtype},
		{"crossentropy", func() (*tensor, int) { return millrace.CrossEntropy(i, at), line() }, dtype},
		{"crossentropy", func() (*tensor, int) { return millrace.CrossEntropy(zero, at), line() }, shape},
		{"crossentropy", func() (*tensor, int) { return millrace.CrossEntropy(none.T(), millrace.Zeros(i32, 3)), line() }, shape},
		{"matmul", func() (*tensor, int) { return f.MatMul(f), line() }, shape},
		{"matmul", func() (*tensor, int) { return zero.MatMul(f), line() }, shape},
		{"matmul", func() (*tensor, int) { return f.MatMul(zero), line() }, shape},
		{"matmul", func() (*tensor, int) { return f.MatMul(d), line() }, dtype},
		{"matmul", func() (*tensor, int) { return b.MatMul(b.T()), line() }, dtype},
		{"matmul", func() (*tensor, int) {
			return millrace.Ones(f32, 2, 2, 3).MatMul(millrace.Ones(f32, 3, 3, 2)), line()
		}, shape},
		{"dotgeneral", func() (*tensor, int) { return f.DotGeneral(f, nil, nil, []int{0}, nil), line() }, shape},
		{"dotgeneral", func() (*tensor, int) { return f.DotGeneral(f, []int{0}, []int{0}, []int{0}, []int{1}), line() }, shape},
		{"dotgeneral", func() (*tensor, int) { return f.DotGeneral(f, nil, nil, []int{0}, []int{1}), line() }, shape},
		{"dotgeneral", func() (*tensor, int) { return f.DotGeneral(f, nil, nil, []int{2}, []int{1}), line() }, shape},
		{"dotgeneral", func() (*tensor, int) { return deep.DotGeneral(f, nil, nil, nil, nil), line() }, shape},
		{"dotgeneral", func() (*tensor, int) { return f.DotGeneral(i, nil, nil, []int{0}, []int{0}), line() }, dtype},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("ij"), line() }, shape},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("ij,jk->ik", f), line() }, shape},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("ij,jk->ik", f, f), line() }, shape},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("ijk->", f), line() }, shape},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("ij->k", f), line() }, shape},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("ij->ii", f), line() }, shape},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("ii->i", f), line() }, shape},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("iijj->", millrace.Ones(f32, 2, 3, 4, 4)), line() }, shape},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("i1->", f), line() }, shape},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("ij->j->", f), line() }, shape},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("...i...->", f), line() }, shape},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("é->", f), line() }, shape},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("ij,ij->ij", f, i), line() }, dtype},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("ij->", b), line() }, dtype},
		{"concat", func() (*tensor, int) { return millrace.Concat(0), line() }, shape},
		{"concat", func() (*tensor, int) { return millrace.Concat(2, f, f), line() }, shape},
		{"concat", func() (*tensor, int) { return millrace.Concat(0, f, v), line() }, shape},
		{"concat", func() (*tensor, int) { return millrace.Concat(0, f, f, f, millrace.Ones(f32, 2, 4)), line() }, shape},
		{"concat", func() (*tensor, int) { return millrace.Concat(0, f, i), line() }, dtype},
		{"concat", func() (*tensor, int) { return millrace.Concat(0, zero), line() }, shape},
		{"stack", func() (*tensor, int) { return millrace.Stack(0), line() }, shape},
		{"stack", func() (*tensor, int) { return millrace.Stack(3, f), line() }, shape},
		{"stack", func() (*tensor, int) { return millrace.Stack(-4, f), line() }, shape},
		{"stack", func() (*tensor, int) { return millrace.Stack(0, f, v), line() }, shape},
		{"stack", func() (*tensor, int) { return millrace.Stack(0, f, b), line() }, dtype},
		{"stack", func() (*tensor, int) { return millrace.Stack(0, deep), line() }, shape},
		{"pad", func() (*tensor, int) { return f.Pad(0, pad{}, pad{}, pad{}), line() }, shape},
		{"pad", func() (*tensor, int) { return f.Pad(0, pad{Between: -1}), line() }, shape},
		{"pad", func() (*tensor, int) { return f.Pad(0, pad{Before: -2, After: -2}), line() }, shape},
		{"pad", func() (*tensor, int) { return f.Pad(0, pad{Before: math.MaxInt}), line() }, shape},
		{"pad", func() (*tensor, int) { return f.Pad(0, pad{Between: math.MaxInt}), line() }, shape},
		{"pad", func() (*tensor, int) { return f.Pad(0, pad{Between: 1 << 62}), line() }, shape},
		{"pad", func() (*tensor, int) { return f.Pad(0, pad{Before: math.MinInt, After: math.MaxInt}), line() }, shape},
		{"pad", func() (*tensor, int) { return i.Pad(0.5, pad{Before: 1}), line() }, dtype},
		{"assign", func() (*tensor, int) { return f.Assign(v, millrace.All, millrace.R(0, 2)), line() }, shape},
		{"assign", func() (*tensor, int) { return f.Assign(v, millrace.At(2)), line() }, shape},
		{"assign", func() (*tensor, int) { return v.Assign(v, millrace.All, millrace.All), line() }, shape},
		{"assign", func() (*tensor, int) { return f.Assign(i), line() }, dtype},
		{"assign", func() (*tensor, int) { return i.AssignScalar(0.5), line() }, dtype},
		{"assign", func() (*tensor, int) { return i.AssignScalar(1, millrace.R(0, 1, 0)), line() }, shape},
		{"tile", func() (*tensor, int) { return f.Tile(2, -1), line() }, shape},
		{"tile", func() (*tensor, int) { return f.Tile(1<<40, 1<<40), line() }, shape},
		{"tile", func() (*tensor, int) { return f.Tile(math.MaxInt, 1), line() }, shape},
		{"tile", func() (*tensor, int) { return v.Tile(1, 1, 1, 1, 1, 1, 1, 1, 2), line() }, shape},
		{"repeat", func() (*tensor, int) { return f.Repeat(-1, 0), line() }, shape},
		{"repeat", func() (*tensor, int) { return f.Repeat(1, 2), line() }, shape},
		{"repeat", func() (*tensor, int) { return f.Repeat(math.MaxInt, 0), line() }, shape},
		{"roll", func() (*tensor, int) { return f.Roll(1, 2), line() }, shape},
		{"triu", func() (*tensor, int) { return v.Triu(0), line() }, shape},
		{"tril", func() (*tensor, int) { return zero.Tril(0), line() }, shape},
		{"where", func() (*tensor, int) { return f.MaskedFill(i, 0), line() }, dtype},
		{"where", func() (*tensor, int) { return i.MaskedFill(b, 0.5), line() }, dtype},
		{"onehot", func() (*tensor, int) { return f.OneHot(f32, 3), line() }, dtype},
		{"onehot", func() (*tensor, int) { return i.OneHot(f32, -1), line() }, shape},
		{"onehot", func() (*tensor, int) { return i.OneHot(millrace.Invalid, 3), line() }, dtype},
		{"onehot", func() (*tensor, int) { return deep.Cast(i32).OneHot(f32, 3), line() }, shape},
		{"take", func() (*tensor, int) { return f.Take(at, 2), line() }, shape},
		{"take", func() (*tensor, int) { return zero.Take(at, 0), line() }, shape},
		{"take", func() (*tensor, int) { return deep.Take(i, 0), line() }, shape},
		{"gather", func() (*tensor, int) { return f.Take(v, 0), line() }, dtype},
		{"gather", func() (*tensor, int) { return f.Take(at, 0, 7), line() }, shape},
		{"gather", func() (*tensor, int) { return f.Take(at, 0, millrace.IndexClamp, millrace.IndexDrop), line() }, shape},
		{"gather", func() (*tensor, int) { return none.Take(at, 0, millrace.IndexClamp), line() }, shape},
		{"takealong", func() (*tensor, int) { return f.TakeAlong(i, -3), line() }, shape},
		{"gather", func() (*tensor, int) { return f.TakeAlong(at, 0), line() }, shape},
		{"gather", func() (*tensor, int) { return f.TakeAlong(millrace.Ones(i32, 5, 2), 0), line() }, shape},
		{"gather", func() (*tensor, int) { return f.TakeAlong(f, 0), line() }, dtype},
		{"dynamicslice", func() (*tensor, int) { return f.DynamicSlice(at, 3, 1), line() }, shape},
		{"dynamicslice", func() (*tensor, int) { return f.DynamicSlice(at, 1), line() }, shape},
		{"dynamicslice", func() (*tensor, int) { return f.DynamicSlice(at, -1, 1), line() }, shape},
		{"dynamicslice", func() (*tensor, int) { return f.DynamicSlice(i, 1, 1), line() }, shape},
		{"dynamicslice", func() (*tensor, int) { return f.DynamicSlice(at.Cast(f32), 1, 1), line() }, dtype},
		{"dynamicupdate", func() (*tensor, int) { return f.DynamicUpdate(v, at), line() }, shape},
		{"scatteradd", func() (*tensor, int) { return f.ScatterAdd(f, f, 0), line() }, dtype},
		{"scattermax", func() (*tensor, int) { return f.ScatterMax(i, i, 0), line() }, dtype},
		{"scattermin", func() (*tensor, int) { return b.ScatterMin(i, b, 0), line() }, dtype},
		{"scattermul", func() (*tensor, int) { return f.ScatterMul(i, f, 2), line() }, shape},
		{"scatterset", func() (*tensor, int) { return f.ScatterSet(at, f, 0), line() }, shape},
		{"scatterset", func() (*tensor, int) { return f.ScatterSet(millrace.Ones(i32, 5, 2), f, 0), line() }, shape},
		{"scatterset", func() (*tensor, int) { return f.ScatterSet(i, millrace.Ones(f32, 3, 3), 0), line() }, shape},
		{"scatterset", func() (*tensor, int) { return zero.ScatterSet(millrace.Zeros(i32), zero, 0), line() }, shape},
		{"scatter", func() (*tensor, int) { return f.Scatter(i, f, 0, 99), line() }, shape},
		{"scatter", func() (*tensor, int) { return f.Scatter(i, f, 0, millrace.CombineSet, 7), line() }, shape},
		{"scatter", func() (*tensor, int) {
			return none.Scatter(millrace.Zeros(i32, 2, 3), f, 0, millrace.CombineSet, millrace.IndexClamp), line()
		}, shape},
		{"indexadd", func() (*tensor, int) { return f.IndexAdd(at, i, 0), line() }, dtype},
		{"indexadd", func() (*tensor, int) { return b.IndexAdd(at, b, 0), line() }, dtype},
		{"indexset", func() (*tensor, int) { return f.IndexSet(v, f, 0), line() }, dtype},
		{"indexset", func() (*tensor, int) { return f.IndexSet(at, f, -3), line() }, shape},
		{"put", func() (*tensor, int) { return f.Put(at, millrace.Ones(f32, 3, 3), 0, millrace.CombineAdd), line() }, shape},
		{"put", func() (*tensor, int) { return deep.Put(i, zero, 0, millrace.CombineAdd), line() }, shape},
		{"put", func() (*tensor, int) {
			return f.Put(at, f, 0, millrace.CombineAdd, millrace.IndexClamp, millrace.IndexDrop), line()
		}, shape},
		{"dynamicupdate", func() (*tensor, int) { return f.DynamicUpdate(i, at), line() }, dtype},
		{"windows", func() (*tensor, int) { return f.Windows(2, win{Size: 1}, 0), line() }, shape},
		{"windows", func() (*tensor, int) { return f.Windows(0, win{}, 0), line() }, shape},
		{"windows", func() (*tensor, int) { return f.Windows(0, win{Size: 1, Stride: -1}, 0), line() }, shape},
		{"windows", func() (*tensor, int) { return f.Windows(0, win{Size: 1, Before: -1}, 0), line() }, shape},
		{"windows", func() (*tensor, int) {
			return f.Windows(0, win{Size: 1, Before: math.MaxInt, After: math.MaxInt}, 0), line()
		}, shape},
		{"windows", func() (*tensor, int) { return f.Windows(0, win{Size: 1, Before: math.MaxInt / 2}, 0), line() }, shape},
		{"windows", func() (*tensor, int) { return deep.Windows(0, win{Size: 1}, 0), line() }, shape},
		{"window", func() (*tensor, int) { return i.Windows(0, win{Size: 1}, 0.5), line() }, dtype},
		{"reducewindow", func() (*tensor, int) { return f.ReduceWindow(9, win{Size: 1}), line() }, shape},
		{"reducewindow", func() (*tensor, int) { return b.ReduceWindow(millrace.ReduceSum, win{Size: 1}), line() }, dtype},
		{"reducewindow", func() (*tensor, int) { return v.ReduceWindow(millrace.ReduceSum, win{Size: 1}, win{Size: 1}), line() }, shape},
		{"maxpool", func() (*tensor, int) { return f.MaxPool(win{Size: 4}), line() }, shape},
		{"maxpool", func() (*tensor, int) { return f.MaxPool(win{Size: 1 << 33, Dilation: 1 << 31}), line() }, shape},
		{"avgpool", func() (*tensor, int) { return f.AvgPool(win{Size: 4}), line() }, shape},
		{"reducewindow", func() (*tensor, int) {
			return f.Slice(millrace.R(0, 0)).ReduceWindow(millrace.ReduceSum, win{Size: 2}, win{Size: 1}), line()
		}, shape},
		{"maxpool", func() (*tensor, int) { return f.Slice(millrace.All, millrace.R(0, 0)).MaxPool(win{Size: 2}), line() }, shape},
		{"avgpool", func() (*tensor, int) { return f.Slice(millrace.All, millrace.R(0, 0)).AvgPool(win{Size: 2}), line() }, shape},
		{"avgpool", func() (*tensor, int) { return v.AvgPool(win{Size: 1}, win{Size: 1}), line() }, shape},
		{"avgpool", func() (*tensor, int) { return i.AvgPool(win{Size: 1}), line() }, dtype},
		{"conv", func() (*tensor, int) { return f.Conv(f, opt{}), line() }, shape},
		{"conv", func() (*tensor, int) { return image.Conv(f, opt{}), line() }, shape},
		{"conv", func() (*tensor, int) { return image.Conv(kernels.Cast(millrace.Float64), opt{}), line() }, dtype},
		{"conv", func() (*tensor, int) { return image.Conv(kernels, opt{Groups: 2}), line() }, shape},
		{"conv", func() (*tensor, int) { return image.Conv(kernels, opt{Groups: -1}), line() }, shape},
		{"conv", func() (*tensor, int) { return image.Conv(kernels, opt{Groups: 3}), line() }, shape},
		{"conv", func() (*tensor, int) { return image.Conv(kernels, opt{Stride: []int{1}}), line() }, shape},
		{"conv", func() (*tensor, int) { return image.Conv(kernels, opt{Stride: []int{1, -1}}), line() }, shape},
		{"conv", func() (*tensor, int) { return image.Conv(kernels, opt{Dilation: []int{3, 3}}), line() }, shape},
		{"conv", func() (*tensor, int) { return image.Conv(kernels, opt{Padding: [][2]int{{-1, 0}, {0, 0}}}), line() }, shape},
		{"conv", func() (*tensor, int) { return image.Conv(kernels, opt{OutputPadding: []int{1, 1}}), line() }, shape},
		{"convtranspose", func() (*tensor, int) { return image.ConvTranspose(kernels, opt{}), line() }, shape},
		{"convtranspose", func() (*tensor, int) {
			return millrace.Ones(f32, 1, 6, 2, 2).ConvTranspose(kernels, opt{Padding: [][2]int{{4, 4}, {0, 0}}}), line()
		}, shape},
		{"convtranspose", func() (*tensor, int) {
			return millrace.Ones(f32, 1, 6, 2, 2).ConvTranspose(kernels, opt{OutputPadding: []int{-1, 0}}), line()
		}, shape},
		{"bitcast", func() (*tensor, int) { return f.Bitcast(millrace.Bool), line() }, dtype},
		{"bitcast", func() (*tensor, int) { return b.Bitcast(millrace.Uint8), line() }, dtype},
		{"bitcast", func() (*tensor, int) { return f.Bitcast(millrace.Float64), line() }, shape},
		{"bitcast", func() (*tensor, int) { return zero.Bitcast(millrace.Float64), line() }, shape},
		{"bitcast", func() (*tensor, int) { return deep.Bitcast(millrace.Int8), line() }, shape},
		{"philox", func() (*tensor, int) { return i.Philox(i, i), line() }, dtype},
		{"philox", func() (*tensor, int) {
			u := millrace.Ones(millrace.Uint32, 2)
			return u.Philox(u, millrace.Ones(millrace.Uint64)), line()
		}, dtype},
		{"philox", func() (*tensor, int) {
			u := millrace.Ones(millrace.Uint32, 2)
			return u.Philox(u, millrace.Ones(millrace.Uint32, 3)), line()
		}, shape},
		{"convtranspose", func() (*tensor, int) { return millrace.Ones(f32, 1, 6, 0, 2).ConvTranspose(kernels, opt{}), line() }, shape},
	} {
		r, at := c.call()
		wantError(t, c.op, r.Err(), c.cause, at)
		var op *millrace.OpError
		if errors.As(r.Err(), &op) && op.Op != c.op {
			t.Errorf("line %d: names %s, want %s: %v", at, op.Op, c.op, r.Err())
		}
		if s := r.String(); !strings.Contains(s, fmt.Sprintf("badrows_test.go:%d", at)) {
			t.Errorf("line %d: prints %q", at, s)
		}
		for name, next := range withError(r, f, i) {
			var a *millrace.OpError
			if !errors.As(next.Err(), &a) || op == nil || a.Caller != op.Caller || a.Op != op.Op {
				t.Errorf("line %d: %s of it says %v", at, name, next.Err())
			}
		}
		r.Release()
	}
	if err := wantOnes(f.Sum().DivScalar(6)); err != nil {
		t.Errorf("the stream is no longer usable: %v", err)
	}
}

func wantOnes(x *tensor) error {
	v, err := millrace.Values[float32](x)
	for _, y := range v {
		if y != 1 {
			return fmt.Errorf("%v, want ones", v)
		}
	}
	return err
}

// withError returns the results of every method with a tensor that carries an error as one of its
// operands.
func withError(x, f, i *tensor) map[string]*tensor {
	top, order := millrace.TopK(x, 1, 0)
	return map[string]*tensor{
		"sum": x.Sum(9), "argmax": x.ArgMax(9), "mean": x.Mean(9), "var": x.Var(0, 9), "logsumexp": x.LogSumExp(9), "norm2": x.Norm2(9),
		"cumsum": x.CumSum(9), "sort": x.Sort(9), "argsort": x.ArgSort(9), "topk": top, "order of topk": order,
		"softmax": x.Softmax(9), "logsoftmax": x.LogSoftmax(9), "maskedsoftmax": x.MaskedSoftmax(nil, 9), "mask of softmax": f.MaskedSoftmax(x, 0), "maskedlogsoftmax": x.MaskedLogSoftmax(i, 9), "layernorm": x.LayerNorm(nil, nil, 0, 9), "weight": f.LayerNorm(x, nil, 0), "bias": f.LayerNorm(nil, x, 0), "rmsnorm": f.RMSNorm(x, 0),
		"crossentropy": millrace.CrossEntropy(x, i), "targets": millrace.CrossEntropy(f, x),
		"matmul": x.MatMul(f), "by matmul": f.MatMul(x), "dotgeneral": f.DotGeneral(x, nil, nil, []int{9}, []int{9}),
		"einsum": millrace.Einsum("iijj->", x), "second of einsum": millrace.Einsum("ij,jk", f, x),
		"concat": millrace.Concat(9, f, x), "stack": millrace.Stack(9, f, x), "pad": x.Pad(0, millrace.Padding{Before: 1}),
		"assign": x.Assign(f), "assigned": f.Assign(x), "assignscalar": x.AssignScalar(0.5), "tile": x.Tile(-1), "repeat": x.Repeat(2, 9), "roll": x.Roll(1, 9),
		"triu": x.Triu(0), "maskedfill": f.MaskedFill(x, 0), "onehot": x.OneHot(millrace.Float32, 3),
		"dynamicslice": x.DynamicSlice(i, 1), "starts": f.DynamicSlice(x, 1, 1), "dynamicupdate": f.DynamicUpdate(x, i),
		"scatter": x.ScatterAdd(i, f, 9), "scattered": f.ScatterAdd(i, x, 0), "scatter at": f.ScatterAdd(x, f, 0), "put": x.IndexAdd(i, f, 9), "put at": f.IndexSet(x, f, 0), "put there": f.IndexSet(i, x, 0),
		"windows": x.Windows(9, millrace.Window{}, 0), "reducewindow": x.ReduceWindow(9), "maxpool": x.MaxPool(millrace.Window{}), "avgpool": x.AvgPool(millrace.Window{}),
		"conv": x.Conv(f, millrace.ConvOptions{}), "kernels": f.Conv(x, millrace.ConvOptions{}), "convtranspose": f.ConvTranspose(x, millrace.ConvOptions{}),
	}
}

// TestRowsAndMovesOfNoTensor checks that methods of nil tensors, of the zero Tensor and of
// released tensors are errors.
func TestRowsAndMovesOfNoTensor(t *testing.T) {
	f, i := millrace.Ones(millrace.Float32, 2, 2), millrace.Zeros(millrace.Int32, 2, 2)
	for _, x := range []*tensor{nil, new(tensor)} {
		for name, r := range withError(x, f, i) {
			if x == nil && (name == "weight" || name == "bias" || name == "rmsnorm" || name == "mask of softmax") {
				continue // a nil weight is valid
			}
			if err := r.Err(); err == nil || !strings.Contains(err.Error(), "ensor") || !strings.Contains(err.Error(), "badrows_test.go") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	gone := millrace.Ones(millrace.Float32, 2, 2)
	gone.Release()
	first := func(values, _ *tensor) *tensor { return values }
	for name, r := range map[string]*tensor{
		"sum": gone.Sum(), "mean": gone.Mean(), "var": gone.Var(0), "logsumexp": gone.LogSumExp(), "norm2": gone.Norm2(), "argmax": gone.ArgMax(), "cumsum": gone.CumSum(0),
		"softmax": gone.Softmax(-1), "logsoftmax": gone.LogSoftmax(-1), "maskedsoftmax": f.MaskedSoftmax(gone, -1), "layernorm": f.LayerNorm(gone, nil, 0), "rmsnorm": gone.RMSNorm(nil, 0), "crossentropy": millrace.CrossEntropy(gone, i),
		"matmul": f.MatMul(gone), "dotgeneral": gone.DotGeneral(f, nil, nil, []int{0}, []int{0}), "einsum": millrace.Einsum("ii", gone),
		"concat": millrace.Concat(0, f, gone), "stack": millrace.Stack(0, gone, f), "pad": gone.Pad(0, millrace.Padding{Before: 1}), "assign": f.Assign(gone),
		"tile": gone.Tile(2), "repeat": gone.Repeat(2, 0), "roll": gone.Roll(1, 0), "triu": gone.Triu(0), "tril": gone.Tril(0), "onehot": gone.OneHot(millrace.Float32, 2),
		"take": gone.Take(i, 0), "takealong": f.TakeAlong(gone, 0), "dynamicslice": gone.DynamicSlice(i, 1, 1), "dynamicupdate": f.DynamicUpdate(gone, i),
		"avgpool": gone.AvgPool(millrace.Window{Size: 2}), "maxpool": gone.MaxPool(millrace.Window{Size: 2}), "conv": f.Conv(gone, millrace.ConvOptions{}),
		"reshape": gone.Reshape(4), "squeeze": gone.Squeeze(), "slice": gone.Slice(millrace.At(0)), "sort": gone.Sort(0), "topk": first(millrace.TopK(gone, 1, 0)),
		"scatteradd": gone.ScatterAdd(i, f, 0), "scattermax": f.ScatterMax(i, gone, 0), "indexset": f.IndexSet(gone, f, 0),
	} {
		var op *millrace.OpError
		err := r.Err()
		if !errors.Is(err, millrace.ErrReleased) || !strings.Contains(err.Error(), "badrows_test.go") || !errors.As(err, &op) || op.Op != name {
			t.Errorf("%s of a released tensor: %v", name, err)
		}
	}
	// The stream reports the error, even if the op has other errors too.
	d, err := millrace.Default()
	if err != nil {
		t.Fatal(err)
	}
	s := d.NewStream()
	x := millrace.OnesOn(s, millrace.Float32, 2)
	x.Release()
	x.Sum(9)
	x.MatMul(f)
	if err := s.Err(); !errors.Is(err, millrace.ErrReleased) {
		t.Errorf("the stream says %v", err)
	}
}

// TestReducedFromNothing: an empty tensor may have dimensions whose product, without the empty
// one, exceeds any memory. Ops that reduce or multiply the empty dimension away are then errors.
func TestReducedFromNothing(t *testing.T) {
	const m, n = 1 << (strconv.IntSize - 24), 1 << 21
	x := millrace.Zeros(millrace.Float64, m, n, 0)
	if err := x.Err(); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*tensor{
		"sum": x.Sum(2), "prod": x.ProdKeep(2), "mean": x.Mean(2), "norm2": x.Norm2(2), "all": x.Cast(millrace.Bool).All(2), "einsum": millrace.Einsum("ijk->ij", x),
		"matmul": millrace.Zeros(millrace.Float32, m, 0).MatMul(millrace.Zeros(millrace.Float32, 0, n)),
	} {
		if err := r.Err(); !errors.Is(err, millrace.ErrShape) || !strings.Contains(err.Error(), "badrows_test.go") {
			t.Errorf("%s: %v%v, %v", name, r.DType(), r.Shape(), err)
		}
	}
	if err := x.Sum(0, 1).Err(); err != nil {
		t.Error(err)
	}
}
