package optim

import (
	"cmp"
	"math"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// Scaling configures the loss scale, which keeps small gradients in the range of float16. Fields
// that are 0 have the values of PyTorch's GradScaler.
type Scaling struct {
	Initial  float64 // the first scale; 0: 65536
	Growth   float64 // factor after Interval good updates; 0: 2
	Backoff  float64 // factor after a gradient that is not finite; 0: 0.5
	Interval int     // good updates until the scale grows; 0: 2000
}

// LossScale multiplies the loss by a scale, and gradients by its inverse. If a gradient is not
// finite, nothing is updated and the scale shrinks; after Interval good updates in a row it grows.
// All of this runs on the device without reads. A skipped update counts for schedules, but not for
// the rules' own counts. float16 needs it, as in LossScale(Scaling{}); bfloat16 has float32's range
// and does not.
func LossScale(s Scaling) Option {
	s.Initial, s.Growth, s.Backoff = cmp.Or(s.Initial, 65536), cmp.Or(s.Growth, 2), cmp.Or(s.Backoff, 0.5)
	s.Interval = cmp.Or(s.Interval, 2000)
	ok := s.Initial > 0 && s.Growth >= 1 && s.Backoff > 0 && s.Backoff <= 1 && s.Interval > 0 && !math.IsInf(s.Initial, 0)
	return whole("LossScale", ok, s.Initial, func(o *Optimizer) { o.scaling = &scaling{Scaling: s} })
}

// scaling is a scale with the number of good updates since its last change.
type scaling struct {
	Scaling
	scale, good *nn.Param
}

func (x *scaling) begin(at millrace.Place) {
	x.scale = nn.NewBuffer(millrace.ScalarOn(at, float32(x.Initial)))
	x.good = nn.NewBuffer(millrace.ScalarOn(at, int32(0)))
}

// Scale is the loss scale: a 0-d Float32 tensor that changes with updates. It is nil without
// [LossScale], and for an optimiser whose arguments are in error. A program that computes gradients
// itself multiplies the loss by it.
func (o *Optimizer) Scale() *millrace.Tensor {
	if o == nil || o.scaling == nil || o.scaling.scale == nil {
		return nil
	}
	return o.scaling.scale.Tensor()
}

// after returns the scale and the count of good updates after an update; ok says whether that was
// good.
func (x *scaling) after(scale, good, ok val) (nextScale, nextGood val) {
	n := good.plus(1)
	full := n.above(float64(x.Interval) - 1)
	larger := scale.times(x.Growth)
	grown := full.and(larger.finite()).ifElse(larger, scale)
	nextScale = ok.ifElse(grown, scale.times(x.Backoff))
	nextGood = ok.and(full.not()).ifElseOf(n, 0)
	return nextScale, nextGood
}

// finite returns whether all gradients are finite, as a Bool tensor; nil without gradients.
func finite(grads []*millrace.Tensor) *millrace.Tensor {
	var temps temps
	defer temps.end()
	var all val
	for _, g := range grads {
		if g == nil {
			continue
		}
		ok := temps.of(g).finite().all()
		if all.t != nil {
			ok = all.and(ok)
		}
		all = ok
	}
	return temps.keep(all)
}
