package optim

import (
	"fmt"
	"math"
	"slices"
)

// Option says how an optimiser updates parameters: those of a [Group], or all that are in
// none. Each rule has its own options, and one that it does not have is an error.
type Option struct {
	name string
	any  bool // every rule has it
	set  func(h *settings) error
	all  func(o *Optimizer) error // in place of set: for the optimiser as a whole
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

// LR is a learning rate that stays what it is.
func LR(lr float64) Option {
	return forAny(option("LR", lr >= 0, lr, func(h *settings) { h.rate = Constant(lr) }))
}

// Schedule is a learning rate that changes from step to step.
func Schedule(r Rate) Option {
	return Option{name: "Schedule", any: true, set: func(h *settings) error {
		if r == nil {
			return fmt.Errorf("Schedule: nil")
		}
		h.rate = r
		return nil
	}}
}

// WeightDecay adds decay times the weight to the gradient, as for a loss with half of it
// times the weights' squares; with AdamW and Lion it makes weights smaller by the rate
// times decay before each update, and with LAMB it is a part of the direction.
func WeightDecay(decay float64) Option {
	return forAny(option("WeightDecay", decay >= 0, decay, func(h *settings) { h.decay = decay }))
}

// Momentum is which part of the last step is gone again; of SGD and RMSProp.
func Momentum(m float64) Option {
	return option("Momentum", m >= 0, m, func(h *settings) { h.momentum = m })
}

// Dampening takes a part of each gradient but the first from SGD's momentum.
func Dampening(d float64) Option {
	return option("Dampening", true, d, func(h *settings) { h.dampening = d })
}

// Nesterov has SGD look ahead along its momentum.
func Nesterov() Option {
	return option("Nesterov", true, 0, func(h *settings) { h.nesterov = true })
}

// Betas are how much of the moving averages of gradients, and of their squares, stays at
// each update; of Adam, AdamW, Lion and LAMB.
func Betas(first, second float64) Option {
	ok := first >= 0 && first < 1 && second >= 0 && second < 1
	return option("Betas", ok, first, func(h *settings) { h.beta1, h.beta2 = first, second })
}

// Alpha is how much of RMSProp's moving average of squares stays at each update.
func Alpha(a float64) Option {
	return option("Alpha", a >= 0, a, func(h *settings) { h.alpha = a })
}

// Eps is added to what gradients are divided by.
func Eps(eps float64) Option {
	return option("Eps", eps >= 0, eps, func(h *settings) { h.eps = eps })
}

// AMSGrad has Adam and AdamW divide by the largest moving average of squares so far.
func AMSGrad() Option {
	return option("AMSGrad", true, 0, func(h *settings) { h.maximum = true })
}

// Centered has RMSProp divide by the deviation of the gradients in place of their size.
func Centered() Option {
	return option("Centered", true, 0, func(h *settings) { h.centered = true })
}

// RateDecay makes Adagrad's rate smaller: it is divided by 1 + decay times the number of
// updates that a parameter has had before.
func RateDecay(decay float64) Option {
	return option("RateDecay", decay >= 0, decay, func(h *settings) { h.rateDecay = decay })
}

// Initial is where Adagrad's sums of squares begin.
func Initial(sum float64) Option {
	return option("Initial", sum >= 0, sum, func(h *settings) { h.initial = sum })
}

// Group is options for the parameters whose names match: learning rates, weight decays
// and whatever else the rule has. What they do not say is as for all others. A parameter
// is in the first group that matches it.
func Group(match func(name string) bool, opts ...Option) Option {
	return Option{name: "Group", any: true, all: func(o *Optimizer) error {
		if match == nil {
			return fmt.Errorf("Group: nil function")
		}
		o.groups = append(o.groups, &group{match: match, options: opts})
		return nil
	}}
}

// ClipNorm makes gradients smaller, all by one factor, where their norm, over all
// parameters together, is above a limit: PyTorch's clip_grad_norm_. [ClipValue] comes
// first where there are both.
func ClipNorm(limit float64) Option {
	return whole("ClipNorm", limit > 0, limit, func(o *Optimizer) { o.clipNorm = limit })
}

// ClipValue brings the elements of gradients into [-limit, limit].
func ClipValue(limit float64) Option {
	return whole("ClipValue", limit > 0, limit, func(o *Optimizer) { o.clipValue = limit })
}

// Name is what the names of the optimiser's state begin with, "optim" where it is not
// given. Two optimisers that are saved in one file need two.
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

// configure has the options say how the optimiser is, groups included.
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
		return fmt.Errorf("an Option that no function made")
	case opt.set == nil:
		return fmt.Errorf("%s is for all parameters together", opt.name)
	case !opt.any && !slices.Contains(r.options, opt.name):
		return fmt.Errorf("%s has no option %s", r.name, opt.name)
	}
	return opt.set(h)
}
