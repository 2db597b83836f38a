package optim

import (
	"fmt"
	"math"
	"slices"
)

// Option configures an optimiser: the parameters of a [Group], or all parameters outside of groups.
// Each rule lists its options; any other option is an error.
type Option struct {
	name string
	any  bool // every rule has this option
	set  func(h *settings) error
	all  func(o *Optimizer) error // used instead of set: for the whole optimiser
}

func option(name string, ok bool, value float64, set func(h *settings)) Option {
	return Option{name: name, set: func(h *settings) error {
		if !ok || math.IsNaN(value) {
			return fmt.Errorf("%s: %v is out of range", name, value)
		}
		set(h)
		return nil
	}}
}

func forAny(o Option) Option {
	o.any = true
	return o
}

// LR is a constant learning rate.
func LR(lr float64) Option {
	return forAny(option("LR", lr >= 0, lr, func(h *settings) { h.rate = Constant(lr) }))
}

// Schedule is a learning rate that depends on the number of updates.
func Schedule(r Rate) Option {
	return Option{name: "Schedule", any: true, set: func(h *settings) error {
		if r == nil {
			return fmt.Errorf("Schedule: the Rate is nil")
		}
		h.rate = r
		return nil
	}}
}

// WeightDecay adds decay·p to the gradient, which is the derivative of decay/2·Σp². With AdamW and
// Lion it instead multiplies weights by 1 - lr·decay before each update; with LAMB it is a part of
// the direction.
func WeightDecay(decay float64) Option {
	return forAny(option("WeightDecay", decay >= 0, decay, func(h *settings) { h.decay = decay }))
}

// Momentum is m in buffer = m·buffer + g, for SGD and RMSProp; RMSProp divides g before. The
// default is 0: no momentum.
func Momentum(m float64) Option {
	return option("Momentum", m >= 0, m, func(h *settings) { h.momentum = m })
}

// Dampening multiplies each gradient but the first by 1-d before SGD adds it to the momentum.
func Dampening(d float64) Option {
	return option("Dampening", true, d, func(h *settings) { h.dampening = d })
}

// Nesterov makes SGD use g + momentum·buffer as the direction.
func Nesterov() Option {
	return option("Nesterov", true, 0, func(h *settings) { h.nesterov = true })
}

// Betas are the decay factors of the moving averages of gradients and of their squares, for Adam,
// AdamW, Lion and LAMB.
func Betas(first, second float64) Option {
	ok := first >= 0 && first < 1 && second >= 0 && second < 1
	return option("Betas", ok, first, func(h *settings) { h.beta1, h.beta2 = first, second })
}

// Alpha is the decay factor of RMSProp's moving average of squares.
func Alpha(a float64) Option {
	return option("Alpha", a >= 0, a, func(h *settings) { h.alpha = a })
}

// Eps is added to the divisor of gradients, against division by 0.
func Eps(eps float64) Option {
	return option("Eps", eps >= 0, eps, func(h *settings) { h.eps = eps })
}

// AMSGrad makes Adam and AdamW divide by the largest moving average of squares so far.
func AMSGrad() Option {
	return option("AMSGrad", true, 0, func(h *settings) { h.maximum = true })
}

// Centered makes RMSProp divide by the gradients' standard deviation instead of their root mean
// square.
func Centered() Option {
	return option("Centered", true, 0, func(h *settings) { h.centered = true })
}

// RateDecay divides Adagrad's rate by 1 + decay·n, where n is the parameter's number of earlier
// updates.
func RateDecay(decay float64) Option {
	return option("RateDecay", decay >= 0, decay, func(h *settings) { h.rateDecay = decay })
}

// Initial is the first value of Adagrad's sums of squares.
func Initial(sum float64) Option {
	return option("Initial", sum >= 0, sum, func(h *settings) { h.initial = sum })
}

// Group sets options for the parameters whose names match, such as learning rates and weight
// decays. Other options are those of the optimiser. A parameter belongs to the first group that
// matches it.
func Group(match func(name string) bool, opts ...Option) Option {
	return Option{name: "Group", any: true, all: func(o *Optimizer) error {
		if match == nil {
			return fmt.Errorf("Group: the function is nil")
		}
		o.groups = append(o.groups, &group{match: match, options: opts})
		return nil
	}}
}

// ClipNorm multiplies all gradients by one factor if their joint norm is above the limit: PyTorch's
// clip_grad_norm_. [ClipValue], if given, is applied first.
func ClipNorm(limit float64) Option {
	return whole("ClipNorm", limit > 0, limit, func(o *Optimizer) { o.clipNorm = limit })
}

// ClipValue clamps the elements of gradients to [-limit, limit].
func ClipValue(limit float64) Option {
	return whole("ClipValue", limit > 0, limit, func(o *Optimizer) { o.clipValue = limit })
}

// Name is the prefix of the names of the optimiser's state; the default is "optim". Two optimisers
// in one file need different names.
func Name(name string) Option {
	return whole("Name", name != "", 0, func(o *Optimizer) { o.name = name })
}

func whole(name string, ok bool, value float64, set func(o *Optimizer)) Option {
	return Option{name: name, any: true, all: func(o *Optimizer) error {
		if !ok || math.IsNaN(value) {
			return fmt.Errorf("%s: %v is out of range", name, value)
		}
		set(o)
		return nil
	}}
}

// configure applies the options, groups included.
func (o *Optimizer) configure(opts []Option) error {
	rest := &group{match: func(string) bool { return true }, settings: o.rule.defaults}
	for _, opt := range opts {
		if opt.all != nil {
			if err := opt.all(o); err != nil {
				return err
			}
		} else if err := o.rule.take(&rest.settings, opt); err != nil {
			return err
		}
	}
	for _, g := range o.groups {
		g.settings = rest.settings
		for _, opt := range g.options {
			if err := o.rule.take(&g.settings, opt); err != nil {
				return fmt.Errorf("Group: %w", err)
			}
		}
	}
	o.groups = append(o.groups, rest)
	for _, g := range o.groups {
		if h := &g.settings; h.nesterov && (h.momentum == 0 || h.dampening != 0) {
			return fmt.Errorf("Nesterov needs Momentum and no Dampening")
		}
	}
	return nil
}

func (r *rule) take(h *settings, opt Option) error {
	switch {
	case opt.set == nil && opt.all == nil:
		return fmt.Errorf("an Option was made without a function of package optim")
	case opt.set == nil:
		return fmt.Errorf("%s cannot be set for a group", opt.name)
	case !opt.any && !slices.Contains(r.options, opt.name):
		return fmt.Errorf("%s has no option %s", r.name, opt.name)
	}
	return opt.set(h)
}
