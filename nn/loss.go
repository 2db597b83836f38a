package nn

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/millrace-go/millrace"
)

// LossOption changes how a loss is computed. Every loss takes [Summed] and [Each], and lists its
// other options; any other option is an error that the result carries.
type LossOption struct {
	kind lossKind
	set  func(*lossSettings)
}

type lossKind uint32

const (
	lSummed lossKind = 1 << iota
	lEach
	lIgnore
	lSmoothing
	lClassWeights
	lClassAxis
	lPosWeight
	lDelta
	lLogTargets
	lBatchMean
)

var lossNames = [...]string{"Summed", "Each", "IgnoreIndex", "LabelSmoothing", "ClassWeights", "ClassAxis", "PosWeight", "Delta",
	"LogTargets", "BatchMean"}

func (k lossKind) String() string {
	var names []string
	for ; k != 0; k &= k - 1 {
		names = append(names, lossNames[bits.TrailingZeros32(uint32(k))])
	}
	return strings.Join(names, ", ")
}

type lossSettings struct {
	given            lossKind
	ignore, axis     int
	smoothing, delta float64
	weights          *millrace.Tensor
}

func (o *lossSettings) has(k lossKind) bool { return o.given&k != 0 }

// Summed makes a loss the sum of its elements instead of their mean (PyTorch's reduction="sum").
func Summed() LossOption { return LossOption{lSummed, func(*lossSettings) {}} }

// Each makes a loss return its elements without reduction (PyTorch's reduction="none").
func Each() LossOption { return LossOption{lEach, func(*lossSettings) {}} }

// IgnoreIndex is the target index of rows that do not count.
func IgnoreIndex(i int) LossOption {
	return LossOption{lIgnore, func(o *lossSettings) { o.ignore = i }}
}

// LabelSmoothing spreads that fraction of the target evenly over all classes.
func LabelSmoothing(part float64) LossOption {
	return LossOption{lSmoothing, func(o *lossSettings) { o.smoothing = part }}
}

// ClassWeights sets a weight for each class; the mean becomes a weighted mean.
func ClassWeights(w *millrace.Tensor) LossOption {
	return LossOption{lClassWeights, func(o *lossSettings) { o.weights = w }}
}

// ClassAxis is the axis of the classes; the default is the last axis. It is 1 for PyTorch's (batch,
// classes, height, width).
func ClassAxis(axis int) LossOption {
	return LossOption{lClassAxis, func(o *lossSettings) { o.axis = axis }}
}

// PosWeight multiplies the loss of positive targets; w broadcasts to the logits.
func PosWeight(w *millrace.Tensor) LossOption {
	return LossOption{lPosWeight, func(o *lossSettings) { o.weights = w }}
}

// Delta is the distance at which [Huber] and [SmoothL1] change from a parabola to a line; the
// default is 1.
func Delta(d float64) LossOption {
	return LossOption{lDelta, func(o *lossSettings) { o.delta = d }}
}

// LogTargets says that the targets of [KLDiv] are logarithms, too.
func LogTargets() LossOption { return LossOption{lLogTargets, func(*lossSettings) {}} }

// BatchMean makes a loss the sum divided by the size of the first dimension; of 0-d tensors that is
// ErrShape.
func BatchMean() LossOption { return LossOption{lBatchMean, func(*lossSettings) {}} }

// chosen merges the options, and returns an error for those that the loss does not take.
func chosen(opts []LossOption, takes lossKind) (*lossSettings, error) {
	o := &lossSettings{axis: -1, delta: 1}
	for _, opt := range opts {
		if opt.set == nil {
			return o, errors.New("a LossOption was made without a function of package nn")
		}
		opt.set(o)
		o.given |= opt.kind
	}
	how := o.given & (lSummed | lEach | lBatchMean)
	switch other := o.given &^ (takes | lSummed | lEach); {
	case other != 0:
		return o, fmt.Errorf("the loss does not take the options %v", other)
	case how&(how-1) != 0:
		return o, fmt.Errorf("the options %v cannot be combined", how)
	case o.has(lSmoothing) && !(o.smoothing >= 0 && o.smoothing <= 1):
		return o, shapeErr("label smoothing %v is not between 0 and 1", o.smoothing)
	case !(o.delta > 0):
		return o, shapeErr("delta %v is not above 0", o.delta)
	}
	return o, nil
}

// reduced reduces the elements l of a loss. total is the divisor of a mean; nil stands for the
// number of elements.
func (o *lossSettings) reduced(l, total *millrace.Tensor) *millrace.Tensor {
	switch {
	case o.has(lEach):
		return l
	case o.has(lSummed):
		return l.Sum()
	case o.has(lBatchMean):
		return l.Sum().DivScalar(float64(l.Dim(0)))
	case total != nil:
		return l.Sum().Div(total)
	}
	return l.Mean()
}

// pair returns two operands of a loss in a wide dtype, or bad, which carries the error of operands
// that do not match. Nothing broadcasts: a loss of (n) and (n, 1) would have n·n elements.
func pair(name string, x, y *millrace.Tensor, opts []LossOption, takes lossKind) (a, b *millrace.Tensor, o *lossSettings, bad *millrace.Tensor) {
	o, err := chosen(opts, takes)
	switch {
	case err != nil:
	case !slices.Equal(x.Shape(), y.Shape()):
		err = shapeErr("%v does not fit targets %v", x.Shape(), y.Shape())
	case o.has(lBatchMean) && x.Rank() == 0:
		err = shapeErr("a 0-d tensor has no first dimension, by whose size BatchMean divides")
	}
	if err != nil {
		return nil, nil, o, fail(name, err, x, y)
	}
	return wide(x), wide(y), o, nil
}

// MSE is the mean of (x-y)² (PyTorch's mse_loss). x and y have one shape, else ErrShape: nothing
// broadcasts. They have one dtype, and a mean is of floats, else ErrDType; 16-bit floats are first
// cast to Float32. The result has that dtype. It is 0-d, or has x's shape with [Each].
func MSE(x, y *millrace.Tensor, opts ...LossOption) *millrace.Tensor {
	a, b, o, bad := pair("mse", x, y, opts, 0)
	if bad != nil {
		return bad
	}
	return o.reduced(a.Sub(b).Square(), nil)
}

// L1 is the mean of |x-y| (PyTorch's l1_loss). Shapes, dtypes and errors are those of [MSE].
func L1(x, y *millrace.Tensor, opts ...LossOption) *millrace.Tensor {
	a, b, o, bad := pair("l1", x, y, opts, 0)
	if bad != nil {
		return bad
	}
	return o.reduced(a.Sub(b).Abs(), nil)
}

// Huber is the mean of (x-y)²/2 where |x-y| is at most delta, and of delta·(|x-y|-delta/2)
// elsewhere (Huber, 1964; PyTorch's huber_loss). It takes [Delta]. x and y are floats; shapes,
// dtypes and errors are those of [MSE].
func Huber(x, y *millrace.Tensor, opts ...LossOption) *millrace.Tensor {
	a, b, o, bad := pair("huber", x, y, opts, lDelta)
	if bad != nil {
		return bad
	}
	return o.reduced(huber(a.Sub(b), o.delta), nil)
}

// SmoothL1 is [Huber] divided by delta, which PyTorch's smooth_l1_loss calls beta. It takes
// [Delta]. Shapes, dtypes and errors are those of [Huber].
func SmoothL1(x, y *millrace.Tensor, opts ...LossOption) *millrace.Tensor {
	a, b, o, bad := pair("smoothl1", x, y, opts, lDelta)
	if bad != nil {
		return bad
	}
	return o.reduced(huber(a.Sub(b), o.delta).DivScalar(o.delta), nil)
}

// huber is c·(d - c/2), where c is d clamped to [-delta, delta]. It has no square that may
// overflow, and no select whose gradient would have to be hidden.
func huber(d *millrace.Tensor, delta float64) *millrace.Tensor {
	near := d.ClampScalar(-delta, delta)
	return near.Mul(d.Sub(near.MulScalar(0.5)))
}

// BCEWithLogits is binary cross-entropy: the mean of -y·log(σ(x)) - (1-y)·log(1-σ(x)) for logits x
// and probabilities y (PyTorch's binary_cross_entropy_with_logits). It is computed from softplus,
// so no logarithm of 0 occurs. It takes [PosWeight]. Logits and targets are floats; shapes, dtypes
// and errors are those of [MSE].
func BCEWithLogits(logits, targets *millrace.Tensor, opts ...LossOption) *millrace.Tensor {
	x, y, o, bad := pair("bcewithlogits", logits, targets, opts, lPosWeight)
	if bad != nil {
		return bad
	}
	// Compute both logarithms directly: deriving one from the other would lose small values.
	positive := y.Mul(x.Neg().Softplus())
	if o.weights != nil {
		positive = positive.Mul(as(o.weights, x.DType()))
	}
	return o.reduced(positive.Add(y.ScalarSub(1).Mul(x.Softplus())), nil)
}

// KLDiv is the mean of y·(log(y) - x), for logarithms of probabilities x and probabilities y
// (PyTorch's kl_div). Where y is 0, y·log(y) counts as 0. With [BatchMean] it is the
// Kullback-Leibler divergence. With [LogTargets] y holds logarithms, too. x and y are floats;
// shapes, dtypes and errors are those of [MSE].
func KLDiv(x, y *millrace.Tensor, opts ...LossOption) *millrace.Tensor {
	a, b, o, bad := pair("kldiv", x, y, opts, lLogTargets|lBatchMean)
	if bad != nil {
		return bad
	}
	if o.has(lLogTargets) {
		return o.reduced(b.Exp().Mul(b.Sub(a)), nil)
	}
	// Take the logarithm of 1 where y is 0: the product and its gradient are then 0.
	log := millrace.ScalarWhere(b.EqScalar(0), 1, b).Log()
	return o.reduced(b.Mul(log).Sub(b.Mul(a)), nil)
}
