package optim

import "math"

// rule is how a parameter's new value follows from its old one, its gradient and what is
// kept of earlier gradients: a row of a table. All of it is ops on tensors, so that it
// runs on every device, fuses, and is the same whether it is recorded or not.
type rule struct {
	name     string
	options  []string // names of the options that it has, beside those that all rules have
	defaults settings

	// state names the tensors that are kept for each parameter, of its shape, with the
	// names that PyTorch has for them.
	state func(h *settings) []string
	// counts reports that the rule depends on how many updates a parameter has had.
	counts func(h *settings) bool
	// common is what the parameters of a group have in common: tensors with an element for
	// each of them, made of the learning rate, which is 0-d, and of the count, 1 at the first
	// update. It is asked where counts says so.
	common func(h *settings, lr, count val) []val
	// update gives the new value, and puts the new state in place of the old one.
	update func(h *settings, u *update) val
}

// settings are what the options of a group of parameters say.
type settings struct {
	rate              Rate
	momentum          float64
	dampening         float64
	nesterov          bool
	beta1, beta2      float64
	alpha             float64
	eps               float64
	decay             float64 // of weights
	rateDecay         float64
	initial           float64 // of Adagrad's sums
	centered, maximum bool
}

// update is one parameter's: its value and gradient, in the dtype in which it is computed.
type update struct {
	value, grad val
	lr          val   // 0-d
	common      []val // 0-d, the parameter's own
	state       []val
}

var rules = struct {
	sgd, adam, adamW, rmsProp, adagrad, lion, lamb rule
}{
	sgd: rule{
		name:     "SGD",
		options:  []string{"Momentum", "Dampening", "Nesterov"},
		defaults: settings{rate: Constant(1e-3)},
		state:    func(h *settings) []string { return when(h.momentum != 0, "momentum_buffer") },
		counts:   func(h *settings) bool { return h.momentum != 0 && h.dampening != 0 },
		common:   firstWhole,
		update:   sgd,
	},
	adam: rule{
		name:     "Adam",
		options:  []string{"Betas", "Eps", "AMSGrad"},
		defaults: settings{rate: Constant(1e-3), beta1: 0.9, beta2: 0.999, eps: 1e-8},
		state:    adamState,
		counts:   always,
		common:   unbias,
		update: func(h *settings, u *update) val {
			u.grad = decayed(h, u)
			return adam(h, u)
		},
	},
	adamW: rule{
		name:     "AdamW",
		options:  []string{"Betas", "Eps", "AMSGrad"},
		defaults: settings{rate: Constant(1e-3), beta1: 0.9, beta2: 0.999, eps: 1e-8, decay: 1e-2},
		state:    adamState,
		counts:   always,
		common:   unbias,
		update: func(h *settings, u *update) val {
			u.value = shrunk(h, u)
			return adam(h, u)
		},
	},
	rmsProp: rule{
		name:     "RMSProp",
		options:  []string{"Alpha", "Eps", "Momentum", "Centered"},
		defaults: settings{rate: Constant(1e-2), alpha: 0.99, eps: 1e-8},
		state: func(h *settings) []string {
			names := []string{"square_avg"}
			names = append(names, when(h.centered, "grad_avg")...)
			return append(names, when(h.momentum != 0, "momentum_buffer")...)
		},
		counts: never,
		update: rmsProp,
	},
	adagrad: rule{
		name:     "Adagrad",
		options:  []string{"RateDecay", "Initial", "Eps"},
		defaults: settings{rate: Constant(1e-2), eps: 1e-10},
		state:    func(*settings) []string { return []string{"sum"} },
		counts:   func(h *settings) bool { return h.rateDecay != 0 },
		common: func(h *settings, lr, count val) []val {
			return []val{lr.div(count.minus(1).times(h.rateDecay).plus(1))}
		},
		update: adagrad,
	},
	lion: rule{
		name:     "Lion",
		options:  []string{"Betas"},
		defaults: settings{rate: Constant(1e-4), beta1: 0.9, beta2: 0.99},
		state:    func(*settings) []string { return []string{"exp_avg"} },
		counts:   never,
		update:   lion,
	},
	lamb: rule{
		name:     "LAMB",
		options:  []string{"Betas", "Eps"},
		defaults: settings{rate: Constant(1e-3), beta1: 0.9, beta2: 0.999, eps: 1e-6},
		state:    func(*settings) []string { return []string{"exp_avg", "exp_avg_sq"} },
		counts:   always,
		common: func(h *settings, _, count val) []val {
			return []val{remaining(count, h.beta1), remaining(count, h.beta2).sqrt()}
		},
		update: lamb,
	},
}

func always(*settings) bool { return true }
func never(*settings) bool  { return false }

func when(yes bool, name string) []string {
	if yes {
		return []string{name}
	}
	return nil
}

func adamState(h *settings) []string {
	return append([]string{"exp_avg", "exp_avg_sq"}, when(h.maximum, "max_exp_avg_sq")...)
}

// decayed is the gradient with that of the weights' decay in the loss.
func decayed(h *settings, u *update) val {
	if h.decay == 0 {
		return u.grad
	}
	return u.grad.add(u.value.times(h.decay))
}

// shrunk is the value after a decay that is not the loss's.
func shrunk(h *settings, u *update) val {
	if h.decay == 0 {
		return u.value
	}
	return u.value.mul(u.lr.times(h.decay).from(1))
}

// lerp is a + w(b-a), of which the form is PyTorch's for the weight.
func lerp(a, b val, w float64) val {
	d := b.sub(a)
	if w < 0.5 {
		return a.add(d.times(w))
	}
	return b.sub(d.times(1 - w))
}

// mean2 is the moving average of squares.
func mean2(v, g val, beta float64) val {
	return v.times(beta).add(g.mul(g).times(1 - beta))
}

// remaining is 1 - beta to the power of the count, without the cancellation that this
// has near 1.
func remaining(count val, beta float64) val {
	return count.times(math.Log(beta)).expm1().neg()
}

// firstWhole is the weight of the gradient in a momentum: the first is taken whole.
func firstWhole(h *settings, _, count val) []val {
	return []val{count.atOne(1 - h.dampening)}
}

func sgd(h *settings, u *update) val {
	g := decayed(h, u)
	if h.momentum != 0 {
		add := g
		if len(u.common) > 0 {
			add = g.mul(u.common[0])
		}
		m := u.state[0].times(h.momentum).add(add)
		u.state[0] = m
		if h.nesterov {
			g = g.add(m.times(h.momentum))
		} else {
			g = m
		}
	}
	return u.value.sub(g.mul(u.lr))
}

// unbias are the size of a step and the root of the second moment's bias, by which it
// is divided.
func unbias(h *settings, lr, count val) []val {
	return []val{lr.div(remaining(count, h.beta1)), remaining(count, h.beta2).sqrt()}
}

func adam(h *settings, u *update) val {
	m := lerp(u.state[0], u.grad, 1-h.beta1)
	v := mean2(u.state[1], u.grad, h.beta2)
	u.state[0], u.state[1] = m, v
	if h.maximum {
		v = u.state[2].maximum(v)
		u.state[2] = v
	}
	size, bias := u.common[0], u.common[1]
	return u.value.sub(m.div(v.sqrt().div(bias).plus(h.eps)).mul(size))
}

func rmsProp(h *settings, u *update) val {
	g := decayed(h, u)
	v := mean2(u.state[0], g, h.alpha)
	u.state[0] = v
	at := 1
	if h.centered {
		mean := lerp(u.state[at], g, 1-h.alpha)
		u.state[at] = mean
		v = v.sub(mean.mul(mean))
		at++
	}
	d := g.div(v.sqrt().plus(h.eps))
	if h.momentum != 0 {
		d = u.state[at].times(h.momentum).add(d)
		u.state[at] = d
	}
	return u.value.sub(d.mul(u.lr))
}

func adagrad(h *settings, u *update) val {
	g := decayed(h, u)
	sum := u.state[0].add(g.mul(g))
	u.state[0] = sum
	lr := u.lr
	if len(u.common) > 0 {
		lr = u.common[0]
	}
	return u.value.sub(g.div(sum.sqrt().plus(h.eps)).mul(lr))
}

func lion(h *settings, u *update) val {
	p := shrunk(h, u)
	m := u.state[0]
	d := m.times(h.beta1).add(u.grad.times(1 - h.beta1)).sign()
	u.state[0] = m.times(h.beta2).add(u.grad.times(1 - h.beta2))
	return p.sub(d.mul(u.lr))
}

// lamb is Adam's direction, as long as the parameter (You et al., 2019): where either
// has no length, the learning rate alone says how far to go.
func lamb(h *settings, u *update) val {
	m := lerp(u.state[0], u.grad, 1-h.beta1)
	v := mean2(u.state[1], u.grad, h.beta2)
	u.state[0], u.state[1] = m, v
	d := m.div(u.common[0]).div(v.sqrt().div(u.common[1]).plus(h.eps))
	if h.decay != 0 {
		d = d.add(u.value.times(h.decay))
	}
	long, dlong := u.value.norm2(), d.norm2()
	ratio := long.ratio(dlong)
	return u.value.sub(d.mul(ratio.mul(u.lr)))
}
