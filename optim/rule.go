package optim

import "math"

// rule is a row of a table: how a parameter's new value follows from its old value, its gradient
// and its state. It consists of ops on tensors only; it therefore runs on every device, fuses, and
// gives the same bits recorded or not.
type rule struct {
	name     string
	options  []string // names of the rule's options besides those of all rules
	defaults settings

	// state names the state tensors of each parameter, which have its shape, by PyTorch's names.
	state func(h *settings) []string
	// counts reports whether the rule depends on a parameter's number of updates.
	counts func(h *settings) bool
	// common computes what the parameters of a group share: tensors with one element for each
	// parameter, from the learning rate, 0-d, and from the counts, 1 at the first update. It is
	// called if counts returns true.
	common func(h *settings, lr, count val) []val
	// whole says that update computes more than elements from elements.
	whole bool
	// update returns the new value and replaces the state in u.
	update func(h *settings, u *update) val
}

// settings are the values of the options of a group.
type settings struct {
	rate              Rate
	momentum          float64
	dampening         float64
	nesterov          bool
	beta1, beta2      float64
	alpha             float64
	eps               float64
	decay             float64 // weight decay
	rateDecay         float64
	initial           float64 // start of Adagrad's sums
	centered, maximum bool
}

// update is the update of one parameter: value and gradient, in the dtype of the update.
type update struct {
	value, grad val
	lr          val   // 0-d
	common      []val // 0-d, this parameter's elements
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
		whole:  true,
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

// decayed adds the gradient of the weight decay to the gradient.
func decayed(h *settings, u *update) val {
	if h.decay == 0 {
		return u.grad
	}
	return u.grad.add(u.value.times(h.decay))
}

// shrunk applies decoupled weight decay to the value.
func shrunk(h *settings, u *update) val {
	if h.decay == 0 {
		return u.value
	}
	return u.value.mul(u.lr.times(h.decay).from(1))
}

// lerp is a + w(b-a), in PyTorch's form for that weight.
func lerp(a, b val, w float64) val {
	d := b.sub(a)
	if w < 0.5 {
		return a.add(d.times(w))
	}
	return b.sub(d.times(1 - w))
}

// mean2 updates the moving average of squares.
func mean2(v, g val, beta float64) val {
	return v.times(beta).add(g.mul(g).times(1 - beta))
}

// remaining is 1 - beta^count, computed by expm1, which avoids the cancellation near 1.
func remaining(count val, beta float64) val {
	return count.times(math.Log(beta)).expm1().neg()
}

// firstWhole is the factor of the gradient in a momentum: 1 at the first update.
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

// unbias returns the step size lr/(1-beta1^count), and the root of the second moment's bias
// correction, which divides √v.
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

// lamb is Adam's direction scaled to the parameter's norm (You and others, 2019). If the norm of
// either is 0, the learning rate alone determines the step.
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
