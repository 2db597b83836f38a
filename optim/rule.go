package optim

import (
	"math"

	"github.com/millrace-go/millrace"
)

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
	common func(h *settings, lr, count *millrace.Tensor) []*millrace.Tensor
	// update gives the new value, and puts the new state in place of the old one.
	update func(h *settings, u *update) *millrace.Tensor
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
	value, grad *millrace.Tensor
	lr          *millrace.Tensor   // 0-d
	common      []*millrace.Tensor // 0-d, the parameter's own
	state       []*millrace.Tensor
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
		update: func(h *settings, u *update) *millrace.Tensor {
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
		update: func(h *settings, u *update) *millrace.Tensor {
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
		common: func(h *settings, lr, count *millrace.Tensor) []*millrace.Tensor {
			return []*millrace.Tensor{lr.Div(count.SubScalar(1).MulScalar(h.rateDecay).AddScalar(1))}
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
		common: func(h *settings, _, count *millrace.Tensor) []*millrace.Tensor {
			return []*millrace.Tensor{remaining(count, h.beta1), remaining(count, h.beta2).Sqrt()}
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
func decayed(h *settings, u *update) *millrace.Tensor {
	if h.decay == 0 {
		return u.grad
	}
	return u.grad.Add(u.value.MulScalar(h.decay))
}

// shrunk is the value after a decay that is not the loss's.
func shrunk(h *settings, u *update) *millrace.Tensor {
	if h.decay == 0 {
		return u.value
	}
	return u.value.Mul(u.lr.MulScalar(h.decay).ScalarSub(1))
}

// lerp is a + w(b-a), of which the form is PyTorch's for the weight.
func lerp(a, b *millrace.Tensor, w float64) *millrace.Tensor {
	d := b.Sub(a)
	if w < 0.5 {
		return a.Add(d.MulScalar(w))
	}
	return b.Sub(d.MulScalar(1 - w))
}

// mean2 is the moving average of squares.
func mean2(v, g *millrace.Tensor, beta float64) *millrace.Tensor {
	return v.MulScalar(beta).Add(g.Mul(g).MulScalar(1 - beta))
}

// remaining is 1 - beta to the power of the count, without the cancellation that this
// has near 1.
func remaining(count *millrace.Tensor, beta float64) *millrace.Tensor {
	return count.MulScalar(math.Log(beta)).Expm1().Neg()
}

// firstWhole is the weight of the gradient in a momentum: the first is taken whole.
func firstWhole(h *settings, _, count *millrace.Tensor) []*millrace.Tensor {
	return []*millrace.Tensor{millrace.WhereScalar(count.EqScalar(1), count, 1-h.dampening)}
}

func sgd(h *settings, u *update) *millrace.Tensor {
	g := decayed(h, u)
	if h.momentum != 0 {
		add := g
		if len(u.common) > 0 {
			add = g.Mul(u.common[0])
		}
		m := u.state[0].MulScalar(h.momentum).Add(add)
		u.state[0] = m
		if h.nesterov {
			g = g.Add(m.MulScalar(h.momentum))
		} else {
			g = m
		}
	}
	return u.value.Sub(g.Mul(u.lr))
}

// unbias are the size of a step and the root of the second moment's bias, by which it
// is divided.
func unbias(h *settings, lr, count *millrace.Tensor) []*millrace.Tensor {
	return []*millrace.Tensor{lr.Div(remaining(count, h.beta1)), remaining(count, h.beta2).Sqrt()}
}

func adam(h *settings, u *update) *millrace.Tensor {
	m := lerp(u.state[0], u.grad, 1-h.beta1)
	v := mean2(u.state[1], u.grad, h.beta2)
	u.state[0], u.state[1] = m, v
	if h.maximum {
		v = u.state[2].Maximum(v)
		u.state[2] = v
	}
	size, bias := u.common[0], u.common[1]
	return u.value.Sub(m.Div(v.Sqrt().Div(bias).AddScalar(h.eps)).Mul(size))
}

func rmsProp(h *settings, u *update) *millrace.Tensor {
	g := decayed(h, u)
	v := mean2(u.state[0], g, h.alpha)
	u.state[0] = v
	at := 1
	if h.centered {
		mean := lerp(u.state[at], g, 1-h.alpha)
		u.state[at] = mean
		v = v.Sub(mean.Mul(mean))
		at++
	}
	d := g.Div(v.Sqrt().AddScalar(h.eps))
	if h.momentum != 0 {
		d = u.state[at].MulScalar(h.momentum).Add(d)
		u.state[at] = d
	}
	return u.value.Sub(d.Mul(u.lr))
}

func adagrad(h *settings, u *update) *millrace.Tensor {
	g := decayed(h, u)
	sum := u.state[0].Add(g.Mul(g))
	u.state[0] = sum
	lr := u.lr
	if len(u.common) > 0 {
		lr = u.common[0]
	}
	return u.value.Sub(g.Div(sum.Sqrt().AddScalar(h.eps)).Mul(lr))
}

func lion(h *settings, u *update) *millrace.Tensor {
	p := shrunk(h, u)
	m := u.state[0]
	d := m.MulScalar(h.beta1).Add(u.grad.MulScalar(1 - h.beta1)).Sign()
	u.state[0] = m.MulScalar(h.beta2).Add(u.grad.MulScalar(1 - h.beta2))
	return p.Sub(d.Mul(u.lr))
}

// lamb is Adam's direction, as long as the parameter (You et al., 2019): where either
// has no length, the learning rate alone says how far to go.
func lamb(h *settings, u *update) *millrace.Tensor {
	m := lerp(u.state[0], u.grad, 1-h.beta1)
	v := mean2(u.state[1], u.grad, h.beta2)
	u.state[0], u.state[1] = m, v
	d := m.Div(u.common[0]).Div(v.Sqrt().Div(u.common[1]).AddScalar(h.eps))
	if h.decay != 0 {
		d = d.Add(u.value.MulScalar(h.decay))
	}
	long, dlong := u.value.Norm2(), d.Norm2()
	ratio := millrace.WhereScalar(long.GtScalar(0).And(dlong.GtScalar(0)), long.Div(dlong), 1)
	return u.value.Sub(d.Mul(ratio.Mul(u.lr)))
}
