package nn

import (
	"slices"

	"github.com/millrace-go/millrace"
)

// CrossEntropy is the mean over rows of -log(softmax(logits)[target]) (PyTorch's cross_entropy).
// Classes are along the last axis, or along [ClassAxis]. Targets are either indices, Int32 or
// Int64, with the shape of logits without that axis; or probabilities, of floats and the logits'
// shape. Other shapes are ErrShape, other targets and logits that are not floats ErrDType. It takes [LabelSmoothing], [ClassWeights], and, for indices,
// [IgnoreIndex]. An index out of range is ErrIndex when the loss is computed. 16-bit floats are
// computed in float32.
func CrossEntropy(logits, targets *millrace.Tensor, opts ...LossOption) *millrace.Tensor {
	const name = "crossentropy"
	o, x, bad := classes(name, logits, targets, opts, lIgnore|lSmoothing|lClassWeights|lClassAxis)
	if bad != nil {
		return bad
	}
	n := float64(x.Dim(-1))
	if targets.DType().IsFloat() {
		y := as(o.classesLast(targets), x.DType())
		if o.smoothing != 0 {
			y = y.MulScalar(1 - o.smoothing).AddScalar(o.smoothing / n)
		}
		return o.reduced(o.weighted(x.LogSoftmax(-1)).Mul(y).Sum(-1).Neg(), nil)
	}
	rows := o.rows(targets)
	if o.smoothing == 0 {
		return o.counted(millrace.CrossEntropy(x, rows.targets), x, rows)
	}
	log := x.LogSoftmax(-1)
	own := log.TakeAlong(rows.targets.Unsqueeze(-1), -1).Squeeze(-1)
	if o.weights != nil {
		own = own.Mul(rows.weights(o, x))
	}
	l := own.MulScalar(o.smoothing - 1).Sub(o.weighted(log).Sum(-1).MulScalar(o.smoothing / n))
	return o.reduced(rows.masked(l), rows.total(o, x))
}

// NLL is the mean over rows of -log[target], for logarithms of probabilities (PyTorch's nll_loss):
// [CrossEntropy] after [millrace.Tensor.LogSoftmax]. Targets are Int32 or Int64 indices and log is
// of floats, else ErrDType. It takes [ClassWeights], [IgnoreIndex] and [ClassAxis].
func NLL(log, targets *millrace.Tensor, opts ...LossOption) *millrace.Tensor {
	const name = "nll"
	o, x, bad := classes(name, log, targets, opts, lIgnore|lClassWeights|lClassAxis)
	if bad != nil {
		return bad
	}
	if targets.DType().IsFloat() {
		return fail(name, dtypeErr("targets cannot have dtype %v, only Int32 or Int64", targets.DType()), log, targets)
	}
	rows := o.rows(targets)
	return o.counted(x.TakeAlong(rows.targets.Unsqueeze(-1), -1).Squeeze(-1).Neg(), x, rows)
}

// classes returns the options of a classification loss, and its first operand in a wide dtype with
// the classes along the last axis.
func classes(name string, x, targets *millrace.Tensor, opts []LossOption, takes lossKind) (*lossSettings, *millrace.Tensor, *millrace.Tensor) {
	o, err := chosen(opts, takes)
	if o.axis < 0 {
		o.axis += x.Rank()
	}
	in, at := x.Shape(), targets.Shape()
	float := targets.DType().IsFloat()
	switch {
	case err != nil:
	case !x.DType().IsFloat():
		err = dtypeErr("%v is not a float dtype; use Cast", x.DType())
	case !float && targets.DType() != millrace.Int32 && targets.DType() != millrace.Int64:
		err = dtypeErr("targets cannot have dtype %v, only floats, Int32 or Int64", targets.DType())
	case o.axis < 0 || o.axis >= len(in):
		err = shapeErr("%v has no axis of classes", in)
	case float && !slices.Equal(in, at), !float && !slices.Equal(slices.Delete(slices.Clone(in), o.axis, o.axis+1), at):
		err = shapeErr("%v with classes along axis %d does not fit targets %v", in, o.axis, at)
	case o.weights != nil && !slices.Equal(o.weights.Shape(), []int{in[o.axis]}):
		err = shapeErr("weights %v do not fit %d classes", o.weights.Shape(), in[o.axis])
	case float && o.has(lIgnore):
		err = dtypeErr("with IgnoreIndex targets cannot have dtype %v, only Int32 or Int64", targets.DType())
	}
	if err != nil {
		return o, nil, fail(name, err, x, targets)
	}
	return o, o.classesLast(wide(x)), nil
}

// classesLast moves the axis of the classes to the end.
func (o *lossSettings) classesLast(x *millrace.Tensor) *millrace.Tensor {
	if o.axis == x.Rank()-1 {
		return x
	}
	var order []int
	for i := range x.Rank() {
		if i != o.axis {
			order = append(order, i)
		}
	}
	return x.Permute(append(order, o.axis)...)
}

// weighted multiplies x by the class weights, if there are any.
func (o *lossSettings) weighted(x *millrace.Tensor) *millrace.Tensor {
	if o.weights == nil {
		return x
	}
	return x.Mul(as(o.weights, x.DType()))
}

// classRows are the rows of a loss with indices as targets.
type classRows struct {
	targets *millrace.Tensor // 0 in rows that do not count
	counts  *millrace.Tensor // true in rows that count; nil: all
}

func (o *lossSettings) rows(targets *millrace.Tensor) classRows {
	if !o.has(lIgnore) {
		return classRows{targets, nil}
	}
	counts := targets.NeScalar(float64(o.ignore))
	return classRows{millrace.WhereScalar(counts, targets, 0), counts}
}

func (r classRows) masked(l *millrace.Tensor) *millrace.Tensor {
	if r.counts == nil {
		return l
	}
	return millrace.WhereScalar(r.counts, l, 0)
}

// weights are the class weights of the rows' targets.
func (r classRows) weights(o *lossSettings, x *millrace.Tensor) *millrace.Tensor {
	return as(o.weights, x.DType()).Take(r.targets, 0)
}

// total is the divisor of a mean: the sum of the weights of the rows that count. It is nil if that
// is the number of rows.
func (r classRows) total(o *lossSettings, x *millrace.Tensor) *millrace.Tensor {
	switch {
	case o.weights != nil:
		return r.masked(r.weights(o, x)).Sum()
	case r.counts != nil:
		return r.counts.Cast(x.DType()).Sum()
	}
	return nil
}

// counted applies weights to the rows l of a loss, drops the rows that do not count, and reduces.
func (o *lossSettings) counted(l, x *millrace.Tensor, r classRows) *millrace.Tensor {
	if o.weights != nil {
		l = l.Mul(r.weights(o, x))
	}
	return o.reduced(r.masked(l), r.total(o, x))
}
