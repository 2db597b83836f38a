package autodiff

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/ir"
)

// over reshapes a reduction's result so that the reduced axes are kept with size 1.
func (s *step) over(t *tensor) *tensor {
	want := keepDims(s.kinds[0].shape, s.attr().Axes)
	if slices.Equal(t.Shape(), want) {
		return t
	}
	return t.Reshape(want...)
}

// spread repeats a reduction's derivative over the reduced elements.
func (s *step) spread(d *tensor) *tensor {
	return s.over(d).Expand(s.kinds[0].shape...)
}

// alongLast applies f to t with the axes merged into one last axis, and restores the shape of f's
// result.
func (s *step) alongLast(t *tensor, axes []int, f func(t *tensor) *tensor) *tensor {
	shape := t.Shape()
	var order, outer []int
	for i, n := range shape {
		if !slices.Contains(axes, i) {
			order, outer = append(order, i), append(outer, n)
		}
	}
	row := 1
	for _, a := range axes {
		order = append(order, a)
		row *= shape[a]
	}
	there, back := t.Permute(order...), make([]int, len(order))
	for i, a := range order {
		back[a] = i
	}
	r := f(there.Reshape(append(outer, row)...))
	return r.Reshape(there.Shape()...).Permute(back...)
}

// prodBack: the derivative by an element is the product of all others: of those before it times
// those after it. It does not divide, so zeros are harmless.
func prodBack(s *step) {
	s.give(0, s.spread(s.d).Mul(s.alongLast(s.x(), s.attr().Axes, s.products)))
}

// products are, for each element, the products of all other elements in its row.
func (s *step) products(x *tensor) *tensor {
	if x.Len() == 0 {
		return x
	}
	behind := s.before(x.Flip(-1)).Flip(-1)
	return s.before(x).Mul(behind)
}

// before is, for each element, the product of the elements before it in its row.
func (s *step) before(x *tensor) *tensor {
	last := x.Rank() - 1
	n := x.Dim(last)
	head := make([]millrace.Range, last+1)
	head[last] = millrace.R(0, n-1)
	one := fullLike(x, 1, keepDims(x.Shape(), []int{last})...)
	return millrace.Concat(last, one, x.CumProd(last).Slice(head...))
}

// takenBack gives the derivative to the first element that is the maximum or minimum.
func takenBack(s *step, find func(t *tensor, dt millrace.DType, axes ...int) *tensor) {
	axes := s.attr().Axes
	if len(axes) == 0 { // each row is one element
		s.give(0, s.d)
		return
	}
	at := s.over(find(s.x(), position(s.kinds[0].shape), axes...))
	hit := s.places(s.kinds[0].shape, axes).Eq(at)
	s.give(0, millrace.WhereScalar(hit, s.over(s.d), 0))
}

// position is the dtype of positions in a tensor of a shape. Some devices have no Int64.
func position(shape []int) millrace.DType {
	if ir.Shape(shape).Elems() > math.MaxInt32 {
		return millrace.Int64
	}
	return millrace.Int32
}

// places numbers the elements of a row over axes in row-major order. All other dims are 1.
func (s *step) places(shape, axes []int) *tensor {
	wide, n := slices.Repeat([]int{1}, len(shape)), 1
	for _, a := range axes {
		wide[a] = shape[a]
		n *= shape[a]
	}
	return millrace.ArangeOn(root.Beside(s.d), position(shape), 0, float64(n), 1).Reshape(wide...)
}

// cumFromEnd is, for each element, the sum of it and all elements after it.
func (s *step) cumFromEnd(t *tensor) *tensor {
	axis := s.attr().Axes[0]
	return t.Flip(axis).CumSum(axis).Flip(axis)
}

// cumProdBack: before a row's first zero it is Σ d·out, over the element and those after it,
// divided by the element. At that zero it is the same with 1 in place of the zero. After it all
// products are 0, and so is the derivative.
func cumProdBack(s *step) {
	if s.follow {
		cumProdFollowed(s)
		return
	}
	axis, x := s.attr().Axes[0], s.x()
	zero := x.EqScalar(0)
	seen := zero.Cast(millrace.Int32).CumSum(axis)
	first := zero.And(seen.EqScalar(1))
	filled := millrace.ScalarWhere(first, 1, x)
	at := s.cumFromEnd(s.d.Mul(filled.CumProd(axis)))
	before := s.cumFromEnd(s.d.Mul(s.out())).Div(filled)
	rest := millrace.WhereScalar(seen.EqScalar(0), before, 0)
	s.give(0, millrace.Where(first, at, rest))
}

// cumTakenBack gives each derivative to the element that was the maximum so far: the last one that
// is beyond all elements before it, or the first element.
func cumTakenBack(s *step, beyond func(t, u *tensor) *tensor) {
	axis, x, y, shape := s.attr().Axes[0], s.x(), s.out(), s.kinds[0].shape
	n := shape[axis]
	if ir.Shape(shape).Elems() == 0 {
		s.give(0, s.d)
		return
	}
	head, tail := make([]millrace.Range, axis+1), make([]millrace.Range, axis+1)
	head[axis], tail[axis] = millrace.R(0, n-1), millrace.R(1, n)
	was, is := y.Slice(head...), x.Slice(tail...)
	more := beyond(is, was)
	nan := is.IsNaN().And(was.IsNaN().Not())
	wide := slices.Repeat([]int{1}, len(shape))
	wide[axis] = n - 1
	place := millrace.ArangeOn(root.Beside(s.d), position(shape), 1, float64(n), 1).Reshape(wide...)
	marked := millrace.WhereScalar(more.Or(nan), place, 0)
	start := millrace.ZerosOn(root.Beside(s.d), position(shape), keepDims(shape, []int{axis})...)
	at := millrace.Concat(axis, start, marked).CumMax(axis)
	s.give(0, zerosLike(s.d, shape).ScatterAdd(at, s.d, axis))
}

// cumProdFollowed is cumProdBack for derivatives that are followed. At zeros cumProdBack goes
// through masks, which have no derivative. So this version computes, for each element and each
// later product, the product of all other factors. It needs memory of a row's length for each
// element.
func cumProdFollowed(s *step) {
	shape, axis := s.kinds[0].shape, s.attr().Axes[0]
	n, last := shape[axis], len(shape)-1
	if ir.Shape(shape).Elems() == 0 {
		s.give(0, s.d)
		return
	}
	order := allAxes(len(shape))
	order[axis], order[last] = last, axis
	rows := func(t *tensor) *tensor { return t.Permute(order...).Reshape(-1, n) }
	x, d := rows(s.x()), rows(s.d)
	line := millrace.ArangeOn(root.Beside(s.d), millrace.Int32, 0, float64(n), 1)
	of := line.Unsqueeze(1) // the element by which to differentiate; the products are along line
	factors := millrace.WhereScalar(line.Gt(of), x.Unsqueeze(1), 1)
	slopes := millrace.WhereScalar(line.Ge(of), factors.CumProd(2), 0)
	behind := slopes.Mul(d.Unsqueeze(1)).Sum(2)
	r := s.before(x).Mul(behind)
	shape = slices.Clone(shape)
	shape[axis], shape[last] = shape[last], n
	s.give(0, r.Reshape(shape...).Permute(order...))
}

func sortBack(s *step) {
	axis := s.attr().Axes[0]
	order := s.x().ArgSortAs(position(s.kinds[0].shape), axis, s.attr().Descending)
	s.give(0, zerosLike(s.d, s.kinds[0].shape).ScatterSet(order, s.d, axis))
}

// rowAxes are the axes of a row composite as sorted numbers from 0; none stands for an empty list.
func (s *step) rowAxes(list []int, none []int) []int {
	rank := len(s.kinds[0].shape)
	var axes []int
	for _, a := range list {
		axes = append(axes, (a+rank)%rank)
	}
	if len(list) == 0 {
		axes = none
	}
	slices.Sort(axes)
	return axes
}

func (s *step) axis(a int) []int { return s.rowAxes([]int{a}, nil) }

// softmaxBack: y·(d - Σ d·y).
func softmaxBack(s *step, axis int) {
	y, axes := s.out(), s.axis(axis)
	dot := s.d.Mul(y).SumKeep(axes...)
	s.give(0, y.Mul(s.d.Sub(dot)))
}

// logSoftmaxBack: d - exp(y)·Σ d.
func logSoftmaxBack(s *step, c adhook.LogSoftmax) {
	sum := s.d.SumKeep(s.axis(c.Axis)...)
	s.give(0, s.d.Sub(s.out().Exp().Mul(sum)))
}

// maskedLogSoftmaxBack is logSoftmaxBack over the elements that the mask does not hide.
func maskedLogSoftmaxBack(s *step, c adhook.MaskedLogSoftmax) {
	y := s.out()
	d := millrace.ScalarWhere(y.EqScalar(math.Inf(-1)), 0, s.d)
	sum := d.SumKeep(s.axis(c.Axis)...)
	s.give(0, d.Sub(y.Exp().Mul(sum)))
}

func allAxes(rank int) []int {
	axes := make([]int, rank)
	for i := range axes {
		axes[i] = i
	}
	return axes
}

// logSumExpBack: exp(x - y), which is the softmax; 0 if all of a row is -Inf.
func logSumExpBack(s *step, c adhook.LogSumExp) {
	axes := s.rowAxes(c.Axes, allAxes(len(s.kinds[0].shape)))
	shape := keepDims(s.kinds[0].shape, axes)
	y, d := s.out().Reshape(shape...), s.d.Reshape(shape...)
	shift := millrace.ScalarWhere(y.EqScalar(math.Inf(-1)), 0, y)
	s.give(0, d.Mul(s.x().Sub(shift).Exp()))
}

// norm2Back: x/|x|; 0 where |x| is 0.
func norm2Back(s *step, c adhook.Norm2) {
	axes := s.rowAxes(c.Axes, allAxes(len(s.kinds[0].shape)))
	d := s.d.Reshape(keepDims(s.kinds[0].shape, axes)...)
	s.give(0, d.Mul(s.direction(s.x(), axes)))
}

// direction is x/|x| for each row, 0 for rows of zeros. It divides by the largest element first, so
// no square overflows or becomes 0. Infinities count as the largest finite numbers.
func (s *step) direction(x *tensor, axes []int) *tensor {
	if x.Len() == 0 {
		return x
	}
	x = x.ClampScalar(-largest(x), largest(x))
	most := x.Abs().MaxKeep(axes...)
	most = millrace.ScalarWhere(most.EqScalar(0), 1, most)
	most = s.plain(most) // any divisor gives the same result, so it has no derivative
	part := x.Div(most)
	length := part.Square().SumKeep(axes...).Sqrt()
	length = millrace.ScalarWhere(length.EqScalar(0), 1, length)
	return part.Div(length)
}

// largest is the largest finite number in which t is computed: floats of 16 bits are computed in
// float32.
func largest(t *tensor) float64 {
	if t.DType() == millrace.Float64 {
		return math.MaxFloat64
	}
	return math.MaxFloat32
}

// deviations are, for stdBack and varBack: the elements minus their mean (c), the result's
// derivative with the axes kept (d), the axes, and the number of elements of a row minus ddof (n).
// The mean is subtracted twice: otherwise its rounding error would remain in c and give it a
// direction.
func (s *step) deviations(along []int, ddof int) (c, d *tensor, axes []int, n float64) {
	in := s.kinds[0].shape
	axes, n = s.rowAxes(along, allAxes(len(in))), 1
	for _, a := range axes {
		n *= float64(in[a])
	}
	c = s.x()
	for range 2 {
		c = c.Sub(c.MeanKeep(axes...))
	}
	return c, s.d.Reshape(keepDims(in, axes)...), axes, max(0, n-float64(ddof))
}

// stdBack: c/|c|/√(n-ddof), where c is the elements minus their mean; 0 if all are equal.
func stdBack(s *step, with adhook.Std) {
	c, d, axes, n := s.deviations(with.Axes, with.Ddof)
	s.give(0, d.MulScalar(1/math.Sqrt(n)).Mul(s.direction(c, axes)))
}

// varBack: 2·c/(n-ddof), where c is the elements minus their mean.
func varBack(s *step, with adhook.Var) {
	c, d, _, n := s.deviations(with.Axes, with.Ddof)
	s.give(0, d.MulScalar(2/n).Mul(c))
}

// betweenBack is the rule of a weighted mean. The bounds on its rounded value are ignored.
func betweenBack(s *step, c adhook.Between) {
	s.each(0, func() *tensor { return s.d.MulScalar(1 - c.Share) })
	s.each(1, func() *tensor { return s.d.MulScalar(c.Share) })
}

func lastAxis(rank int) []int {
	if rank == 0 {
		return nil
	}
	return []int{rank - 1}
}

// layerNormBack: by x it is r·(e - mean(e) - n·mean(e·n)), with n the normalised operand, r =
// 1/√(var+eps) and e = d·weight. By the weight it is d·n, by the bias d. The rule computes the
// rows' statistics again: keeping those of the forward pass would save neither a kernel nor a byte
// (docs/lab/2026-11-25-row-statistics.md), and second derivatives need to go through them.
func layerNormBack(s *step, norm adhook.LayerNorm) {
	axes := s.rowAxes(norm.Axes, lastAxis(len(s.kinds[0].shape)))
	x := s.x()
	c := x.Sub(x.MeanKeep(axes...))
	r := c.Square().MeanKeep(axes...).AddScalar(norm.Eps).Rsqrt()
	n := c.Mul(r)
	s.normBack(axes, n, r, true)
	if !s.isScalar(2) {
		s.give(2, s.d)
	}
}

// rmsNormBack is layerNormBack without the mean.
func rmsNormBack(s *step, norm adhook.RMSNorm) {
	axes := s.rowAxes(norm.Axes, lastAxis(len(s.kinds[0].shape)))
	x := s.x()
	r := x.Square().MeanKeep(axes...).AddScalar(norm.Eps).Rsqrt()
	s.normBack(axes, x.Mul(r), r, false)
}

func (s *step) normBack(axes []int, n, r *tensor, centred bool) {
	e := s.d
	if !s.isScalar(1) {
		s.each(1, func() *tensor { return s.d.Mul(n) })
		if s.wants[0] {
			e = e.Mul(s.y())
		}
	}
	s.each(0, func() *tensor {
		inner := n.Mul(e.Mul(n).MeanKeep(axes...))
		if centred {
			inner = inner.Add(e.MeanKeep(axes...))
		}
		return r.Mul(e.Sub(inner))
	})
}

// crossEntropyBack: the softmax of the logits, minus 1 at the target. There the softmax is computed
// as exp(-y) from the result y, which carries the error of a target out of range.
func crossEntropyBack(s *step, _ adhook.CrossEntropy) {
	x, targets := s.x(), s.asKept(1)
	last := len(s.kinds[0].shape) - 1
	p := x.Softmax(last)
	line := millrace.ArangeOn(root.Beside(s.d), targets.DType(), 0, float64(s.kinds[0].shape[last]), 1)
	hit := targets.Unsqueeze(-1).Eq(line)
	own := s.out().Neg().Expm1().Unsqueeze(-1)
	q := millrace.Where(hit, own, p)
	s.give(0, q.Mul(s.d.Unsqueeze(-1)))
}
