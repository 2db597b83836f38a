package nn

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/millrace-go/millrace"
)

// LossOption changes how a loss is computed. Each loss says which ones it takes beside
// [Summed] and [Each]; any other is an error that the result carries.
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

// Summed has a loss be the sum of its elements, in place of the mean.
func Summed() LossOption { return LossOption{lSummed, func(*lossSettings) {}} }

// Each has a loss be its elements.
func Each() LossOption { return LossOption{lEach, func(*lossSettings) {}} }

// IgnoreIndex is a target whose rows do not count.
func IgnoreIndex(i int) LossOption {
	return LossOption{lIgnore, func(o *lossSettings) { o.ignore = i }}
}

// LabelSmoothing spreads that part of the target over all classes.
func LabelSmoothing(part float64) LossOption {
	return LossOption{lSmoothing, func(o *lossSettings) { o.smoothing = part }}
}

// ClassWeights is a weight for each class; the mean is a weighted one.
func ClassWeights(w *millrace.Tensor) LossOption {
	return LossOption{lClassWeights, func(o *lossSettings) { o.weights = w }}
}

// ClassAxis is the axis of the classes, the last one without it: 1 for PyTorch's (batch,
// classes, height, width).
func ClassAxis(axis int) LossOption {
	return LossOption{lClassAxis, func(o *lossSettings) { o.axis = axis }}
}

// PosWeight multiplies the loss of positive targets; it broadcasts to the logits.
func PosWeight(w *millrace.Tensor) LossOption {
	return LossOption{lPosWeight, func(o *lossSettings) { o.weights = w }}
}

// Delta is where [Huber] and [SmoothL1] go over from a parabola to a line; 1 without it.
func Delta(d float64) LossOption {
	return LossOption{lDelta, func(o *lossSettings) { o.delta = d }}
}

// LogTargets says that targets are logarithms, too.
func LogTargets() LossOption { return LossOption{lLogTargets, func(*lossSettings) {}} }

// BatchMean has a loss be the sum divided by the size of the first dimension.
func BatchMean() LossOption { return LossOption{lBatchMean, func(*lossSettings) {}} }

// chosen are the options together, and the error of what does not fit.
func chosen(opts []LossOption, takes lossKind) (*lossSettings, error) {
	o := &lossSettings{axis: -1, delta: 1}
	for _, opt := range opts {
		if opt.set == nil {
			return o, fmt.Errorf("a LossOption that no function made")
		}
		opt.set(o)
		o.given |= opt.kind
	}
	how := o.given & (lSummed | lEach | lBatchMean)
	switch other := o.given &^ (takes | lSummed | lEach); {
	case other != 0:
		return o, fmt.Errorf("options that it does not take: %v", other)
	case how&(how-1) != 0:
		return o, fmt.Errorf("options that exclude each other: %v", how)
	case o.has(lSmoothing) && !(o.smoothing >= 0 && o.smoothing <= 1):
		return o, shapeErr("label smoothing of %v: from 0 to 1", o.smoothing)
	case !(o.delta > 0):
		return o, shapeErr("a delta of %v: above 0", o.delta)
	}
	return o, nil
}

// reduced is a loss of elements l. total is what a mean divides by where that is not
// their number.
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

// pair are two operands of a loss in a wide dtype, or the error of such as do not go
// together. Nothing broadcasts: a loss of (n) and (n, 1) would be of n·n elements.
func pair(name string, x, y *millrace.Tensor, opts []LossOption, takes lossKind) (a, b *millrace.Tensor, o *lossSettings, bad *millrace.Tensor) {
	o, err := chosen(opts, takes)
	if err == nil && !slices.Equal(x.Shape(), y.Shape()) {
		err = shapeErr("%v and targets %v", x.Shape(), y.Shape())
	}
	if err != nil {
		return nil, nil, o, fail(name, err, x, y)
	}
	return wide(x), wide(y), o, nil
}

// MSE is the mean of the squares of x - y, which have one shape (else ErrShape) and one
// dtype, of floats (else ErrDType). Floats of 16 bits are computed in float32.
func MSE(x, y *millrace.Tensor, opts ...LossOption) *millrace.Tensor {
	a, b, o, bad := pair("mse", x, y, opts, 0)
	if bad != nil {
		return bad
	}
	return o.reduced(a.Sub(b).Square(), nil)
}

// L1 is the mean of |x - y|; otherwise as [MSE].
func L1(x, y *millrace.Tensor, opts ...LossOption) *millrace.Tensor {
	a, b, o, bad := pair("l1", x, y, opts, 0)
	if bad != nil {
		return bad
	}
	return o.reduced(a.Sub(b).Abs(), nil)
}

// Huber is the mean of (x-y)²/2 up to a distance of [Delta], and of delta·(|x-y|-delta/2)
// beyond; otherwise as [MSE].
func Huber(x, y *millrace.Tensor, opts ...LossOption) *millrace.Tensor {
	a, b, o, bad := pair("huber", x, y, opts, lDelta)
	if bad != nil {
		return bad
	}
	return o.reduced(huber(a.Sub(b), o.delta), nil)
}

// SmoothL1 is [Huber] divided by its delta, PyTorch's beta.
func SmoothL1(x, y *millrace.Tensor, opts ...LossOption) *millrace.Tensor {
	a, b, o, bad := pair("smoothl1", x, y, opts, lDelta)
	if bad != nil {
		return bad
	}
	return o.reduced(huber(a.Sub(b), o.delta).DivScalar(o.delta), nil)
}

// huber is c·(d - c/2), with c what d is between -delta and delta: no square that may overflow, and whose
// derivative a choice would have to hide.
func huber(d *millrace.Tensor, delta float64) *millrace.Tensor {
	near := d.ClampScalar(-delta, delta)
	return near.Mul(d.Sub(near.MulScalar(0.5)))
}

// BCEWithLogits is binary cross-entropy: the mean of -y·log(σ(x)) - (1-y)·log(1-σ(x)) for
// logits x and probabilities y. It takes [PosWeight]; otherwise it is as [MSE].
func BCEWithLogits(logits, targets *millrace.Tensor, opts ...LossOption) *millrace.Tensor {
	x, y, o, bad := pair("bcewithlogits", logits, targets, opts, lPosWeight)
	if bad != nil {
		return bad
	}
	// Both logarithms as they are: one from the other would lose what is small.
	positive := y.Mul(x.Neg().Softplus())
	if o.weights != nil {
		positive = positive.Mul(as(o.weights, x.DType()))
	}
	return o.reduced(positive.Add(y.ScalarSub(1).Mul(x.Softplus())), nil)
}

// KLDiv is the mean of y·(log(y) - x), with logarithms of probabilities x and
// probabilities y: the divergence of Kullback and Leibler where it is [BatchMean]. With
// [LogTargets] y are logarithms, too. Otherwise it is as [MSE].
func KLDiv(x, y *millrace.Tensor, opts ...LossOption) *millrace.Tensor {
	a, b, o, bad := pair("kldiv", x, y, opts, lLogTargets|lBatchMean)
	if bad != nil {
		return bad
	}
	if o.has(lLogTargets) {
		return o.reduced(b.Exp().Mul(b.Sub(a)), nil)
	}
	// The logarithm of 1 where y is 0: the product is 0 there, and so is its derivative.
	log := millrace.ScalarWhere(b.EqScalar(0), 1, b).Log()
	return o.reduced(b.Mul(log).Sub(b.Mul(a)), nil)
}
