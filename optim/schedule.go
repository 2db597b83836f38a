package optim

import (
	"cmp"
	"math"
)

// Rate is a learning rate that depends on the number of updates so far, 0 before the first one. It
// is computed in Go, once for each step. It must depend on nothing else; a run that continues from
// a saved state then has the same rates.
type Rate func(step int) float64

// Constant is the same rate always.
func Constant(lr float64) Rate { return func(int) float64 { return lr } }

// StepDecay is lr·gamma^⌊step/every⌋, as PyTorch's StepLR.
func StepDecay(lr float64, every int, gamma float64) Rate {
	every = max(every, 1)
	return func(step int) float64 { return lr * math.Pow(gamma, float64(step/every)) }
}

// MultiStep multiplies the rate by gamma at each of the steps at, as PyTorch's MultiStepLR.
func MultiStep(lr, gamma float64, at ...int) Rate {
	return func(step int) float64 {
		n := 0
		for _, m := range at {
			if step >= m {
				n++
			}
		}
		return lr * math.Pow(gamma, float64(n))
	}
}

// Exponential is lr·gamma^step, as PyTorch's ExponentialLR.
func Exponential(lr, gamma float64) Rate {
	return func(step int) float64 { return lr * math.Pow(gamma, float64(step)) }
}

// Linear goes from one rate to another along a line in so many steps, and stays there.
func Linear(from, to float64, steps int) Rate {
	return func(step int) float64 {
		if step >= steps {
			return to
		}
		return from + float64((to-from)*(float64(step)/float64(steps)))
	}
}

// Cosine falls from lr to 0 along half a cosine in so many steps, and stays there.
func Cosine(lr float64, steps int) Rate { return CosineTo(lr, 0, steps) }

// CosineTo is [Cosine] with another final rate, as PyTorch's CosineAnnealingLR, which however rises
// again after the last step.
func CosineTo(lr, end float64, steps int) Rate {
	return func(step int) float64 {
		if step >= steps {
			return end
		}
		return along(lr, end, float64(step)/float64(steps))
	}
}

// CosineRestarts falls from lr to end along half a cosine again and again: first in so many steps,
// then each time in mult times as many as before, as PyTorch's CosineAnnealingWarmRestarts.
func CosineRestarts(lr, end float64, steps, mult int) Rate {
	steps, mult = max(steps, 1), max(mult, 1)
	return func(step int) float64 {
		period := steps
		if mult == 1 {
			step %= period
		}
		for step >= period {
			step -= period
			period *= mult
		}
		return along(lr, end, float64(step)/float64(period))
	}
}

// along is the value at t in [0, 1] of half a cosine from one rate to another.
func along(from, to, t float64) float64 {
	return to + float64((from-to)*(1+math.Cos(math.Pi*t))/2)
}

// Warmup rises along a line from part times a schedule's first rate to that rate in so many steps,
// and then follows the schedule from its beginning. It is PyTorch's LinearLR before another
// schedule in a SequentialLR. With part 0 the first step changes nothing.
func Warmup(steps int, part float64, then Rate) Rate {
	return Linear(float64(part*then(0)), then(0), steps).Then(steps, then)
}

// Then follows r until step at, and from there on next, from its beginning.
func (r Rate) Then(at int, next Rate) Rate {
	return func(step int) float64 {
		if step < at {
			return r(step)
		}
		return next(step - at)
	}
}

// Times is the product of a rate and a factor that depends on the same step.
func (r Rate) Times(factor Rate) Rate {
	return func(step int) float64 { return r(step) * factor(step) }
}

// Cycle is one rise of the rate and its fall to nearly 0 (Smith and Topin, 2018), as PyTorch's
// OneCycleLR. Fields that are 0 have PyTorch's defaults.
type Cycle struct {
	Max        float64 // the highest rate
	Steps      int     // number of steps in all
	Rise       float64 // fraction of the steps in which it rises; 0: 0.3
	Div        float64 // the first rate is Max/Div; 0: 25
	FinalDiv   float64 // the last rate is the first one/FinalDiv; 0: 1e4
	Linear     bool    // along lines instead of cosines
	ThreePhase bool    // the fall to the first rate takes as long as the rise; then it falls to the last rate
}

// OneCycle is a [Cycle] with the defaults.
func OneCycle(highest float64, steps int) Rate { return Cycle{Max: highest, Steps: steps}.Rate() }

// Rate returns the cycle as a schedule.
func (c Cycle) Rate() Rate {
	first := c.Max / cmp.Or(c.Div, 25)
	last := first / cmp.Or(c.FinalDiv, 1e4)
	n := float64(c.Steps)
	top := float64(cmp.Or(c.Rise, 0.3)*n) - 1
	type phase struct{ end, from, to float64 }
	phases := []phase{{top, first, c.Max}, {n - 1, c.Max, last}}
	if c.ThreePhase {
		phases = []phase{{top, first, c.Max}, {float64(2*(top+1)) - 2, c.Max, first}, {n - 1, first, last}}
	}
	return func(step int) float64 {
		at, begin := float64(step), 0.0
		for i, p := range phases {
			if at <= p.end || i == len(phases)-1 {
				t := min((at-begin)/(p.end-begin), 1)
				if p.end == begin {
					t = 1
				}
				if c.Linear {
					return p.from + float64((p.to-p.from)*t)
				}
				return along(p.from, p.to, t)
			}
			begin = p.end
		}
		return last
	}
}
