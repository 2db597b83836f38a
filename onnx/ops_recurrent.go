package onnx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-go/millrace"
)

func init() {
	register(
		op{name: "GRU", since: 7, run: func(c *call) []*value { return recurrent(c, 3, []string{"sigmoid", "tanh"}, gruStep) }},
		op{name: "LSTM", since: 7, run: func(c *call) []*value {
			return recurrent(c, 4, []string{"sigmoid", "tanh", "tanh"}, lstmStep)
		}},
		op{name: "RNN", since: 7, run: func(c *call) []*value { return recurrent(c, 1, []string{"tanh"}, rnnStep) }},
	)
}

// cell is one direction of a recurrent op.
type cell struct {
	c        *call
	w, r     *tensor   // transposed: (inputs, gates·hidden), (hidden, gates·hidden)
	wb, rb   *tensor   // biases
	peep     []*tensor // LSTM: of the gates i, o, f; nil without
	act      []func(*tensor) *tensor
	clip     float64
	linear   bool // GRU: linear_before_reset
	coupled  bool // LSTM: input_forget
	hidden   int
	backward bool
}

// activation finds an activation function by its name, with its two numbers.
func activation(name string, alpha, beta float64, given [2]bool) (func(*tensor) *tensor, error) {
	or := func(i int, v, d float64) float64 {
		if given[i] {
			return v
		}
		return d
	}
	switch strings.ToLower(name) {
	case "sigmoid":
		return (*tensor).Sigmoid, nil
	case "tanh":
		return (*tensor).Tanh, nil
	case "relu":
		return (*tensor).Relu, nil
	case "softplus":
		return (*tensor).Softplus, nil
	case "softsign":
		return func(x *tensor) *tensor { return x.Div(x.Abs().AddScalar(1)) }, nil
	case "affine":
		return func(x *tensor) *tensor { return x.MulScalar(or(0, alpha, 1)).AddScalar(or(1, beta, 0)) }, nil
	case "leakyrelu":
		return func(x *tensor) *tensor {
			return millrace.Where(x.LtScalar(0), x.MulScalar(or(0, alpha, 0.01)), x)
		}, nil
	case "thresholdedrelu":
		return func(x *tensor) *tensor { return millrace.WhereScalar(x.GtScalar(or(0, alpha, 1)), x, 0) }, nil
	case "scaledtanh":
		return func(x *tensor) *tensor { return x.MulScalar(or(1, beta, 1)).Tanh().MulScalar(or(0, alpha, 1)) }, nil
	case "hardsigmoid":
		return func(x *tensor) *tensor {
			return x.MulScalar(or(0, alpha, 0.2)).AddScalar(or(1, beta, 0.5)).ClampScalar(0, 1)
		}, nil
	case "elu":
		return func(x *tensor) *tensor {
			return millrace.Where(x.LtScalar(0), x.Expm1().MulScalar(or(0, alpha, 1)), x)
		}, nil
	}
	return nil, fmt.Errorf("%w: activation %q", millrace.ErrUnsupported, name)
}

// The functions that have the numbers alpha and beta.
var (
	withBeta  = []string{"affine", "scaledtanh", "hardsigmoid"}
	withAlpha = append([]string{"leakyrelu", "thresholdedrelu", "elu"}, withBeta...)
)

// activations are those of all directions.
func (c *call) activations(names []string, directions int) [][]func(*tensor) *tensor {
	all := slices.Repeat(names, directions)
	if a := c.attr("activations"); a != nil {
		all = a.strings
	}
	if len(all) != directions*len(names) {
		c.fail("%d activations for %d directions", len(all), directions)
		return nil
	}
	// Only the functions that have a number take one of the list.
	used := map[string]int{}
	number := func(list, function string, takers []string) (float64, bool) {
		i, a := used[list], c.attr(list)
		if a == nil || i >= len(a.floats) || !slices.Contains(takers, strings.ToLower(function)) {
			return 0, false
		}
		used[list]++
		return float64(a.floats[i]), true
	}
	out := make([][]func(*tensor) *tensor, directions)
	for i, name := range all {
		alpha, hasAlpha := number("activation_alpha", name, withAlpha)
		beta, hasBeta := number("activation_beta", name, withBeta)
		f, err := activation(name, alpha, beta, [2]bool{hasAlpha, hasBeta})
		if err != nil {
			c.fail("%w", err)
			return nil
		}
		out[i/len(names)] = append(out[i/len(names)], f)
	}
	return out
}

// recurrent runs RNN, GRU and LSTM: a step for each element of the sequence.
func recurrent(c *call, gates int, names []string, step func(*cell, *tensor, *tensor, *tensor) (h, m *tensor)) []*value {
	x, w, r := c.t(0), c.t(1), c.t(2)
	batchFirst := c.int("layout", 0) != 0
	if batchFirst {
		x = x.Transpose(0, 1)
	}
	if c.rank(0) != 3 || c.rank(1) != 3 || c.rank(2) != 3 {
		c.shapeFail("shapes %v, %v and %v", c.shape(0), c.shape(1), c.shape(2))
		return nil
	}
	directions, hidden := c.shape(1)[0], c.shape(2)[2]
	direction := c.str("direction", "forward")
	if directions != map[string]int{"forward": 1, "reverse": 1, "bidirectional": 2}[direction] {
		c.shapeFail("direction %q and weights of shape %v", direction, c.shape(1))
		return nil
	}
	acts := c.activations(names, directions)
	state := func(i, d int) *tensor {
		if !c.has(i) {
			return millrace.ZerosOn(c.f.r.place, x.DType(), x.Dim(1), hidden)
		}
		t := c.t(i)
		if batchFirst {
			t = t.Transpose(0, 1)
		}
		return t.Slice(millrace.At(d))
	}
	var lens *tensor
	if c.has(4) {
		lens = c.t(4).Reshape(-1, 1)
	}
	if c.err != nil {
		return nil
	}
	var ys, hs, ms []*tensor
	for d := range directions {
		one := &cell{c: c, act: acts[d], clip: c.float("clip", 0), hidden: hidden,
			linear: c.int("linear_before_reset", 0) != 0, coupled: c.int("input_forget", 0) != 0,
			backward: direction == "reverse" || d == 1}
		one.w, one.r = w.Slice(millrace.At(d)).T(), r.Slice(millrace.At(d)).T()
		if c.has(3) {
			b := c.t(3).Slice(millrace.At(d))
			one.wb, one.rb = b.Slice(millrace.R(0, gates*hidden)), b.Slice(millrace.R(gates*hidden, millrace.End))
		} else {
			one.wb = millrace.ZerosOn(c.f.r.place, x.DType(), gates*hidden)
			one.rb = one.wb
		}
		if gates == 4 && c.has(7) {
			one.peep = millrace.Chunk(c.t(7).Slice(millrace.At(d)), 3, 0)
		}
		memory := new(tensor)
		if gates == 4 {
			memory = state(6, d)
		}
		y, h, m := one.sequence(x, state(5, d), memory, lens, step)
		if c.err != nil {
			return nil
		}
		ys, hs, ms = append(ys, y), append(hs, h), append(ms, m)
	}
	y, h := millrace.Stack(1, ys...), millrace.Stack(0, hs...)
	if batchFirst {
		y, h = y.Permute(2, 0, 1, 3), h.Transpose(0, 1)
	}
	if gates != 4 {
		return results(y, h)
	}
	m := millrace.Stack(0, ms...)
	if batchFirst {
		m = m.Transpose(0, 1)
	}
	return results(y, h, m)
}

// sequence runs the steps. A sequence that has ended keeps its state, and its outputs are 0.
func (l *cell) sequence(x, h, m, lens *tensor, step func(*cell, *tensor, *tensor, *tensor) (h, m *tensor)) (y, end, memory *tensor) {
	n := x.Dim(0)
	if n == 0 || h.Err() != nil {
		l.c.shapeFail("a sequence of shape %v", x.Shape())
		return nil, nil, nil
	}
	// The products with the inputs of all steps are one.
	in := x.MatMul(l.w).Add(l.wb)
	outs := make([]*tensor, n)
	for k := range n {
		if err := l.c.f.r.ctx.Err(); err != nil {
			l.c.fail("%w", err)
			return nil, nil, nil
		}
		at := k
		if l.backward {
			at = n - 1 - k
		}
		nh, nm := step(l, in.Slice(millrace.At(at)), h, m)
		out := nh
		if lens != nil {
			live := lens.GtScalar(float64(at))
			nh, out = millrace.Where(live, nh, h), millrace.WhereScalar(live, nh, 0)
			if l.c.n.op == "LSTM" {
				nm = millrace.Where(live, nm, m)
			}
		}
		h, m, outs[at] = nh, nm, out
		if err := h.Err(); err != nil {
			l.c.fail("%w", err)
			return nil, nil, nil
		}
	}
	return millrace.Stack(0, outs...), h, m
}

// clipped limits what goes into an activation.
func (l *cell) clipped(x *tensor) *tensor {
	if l.clip > 0 {
		return x.ClampScalar(-l.clip, l.clip)
	}
	return x
}

func rnnStep(l *cell, in, h, m *tensor) (*tensor, *tensor) {
	return l.act[0](l.clipped(in.Add(h.MatMul(l.r)).Add(l.rb))), m
}

// gruStep has the gates z, r and h.
func gruStep(l *cell, in, h, m *tensor) (*tensor, *tensor) {
	n := l.hidden
	part := func(t *tensor, from, to int) *tensor {
		if t.Rank() == 1 {
			return t.Slice(millrace.R(from*n, to*n))
		}
		return t.Slice(millrace.All, millrace.R(from*n, to*n))
	}
	gates := part(in, 0, 2).Add(h.MatMul(part(l.r, 0, 2))).Add(part(l.rb, 0, 2))
	gates = l.act[0](l.clipped(gates))
	z, r := part(gates, 0, 1), part(gates, 1, 2)
	var next *tensor
	if l.linear {
		next = r.Mul(h.MatMul(part(l.r, 2, 3)).Add(part(l.rb, 2, 3)))
	} else {
		next = r.Mul(h).MatMul(part(l.r, 2, 3)).Add(part(l.rb, 2, 3))
	}
	next = l.act[1](l.clipped(part(in, 2, 3).Add(next)))
	return z.ScalarSub(1).Mul(next).Add(z.Mul(h)), m
}

// lstmStep has the gates i, o, f and c.
func lstmStep(l *cell, in, h, m *tensor) (*tensor, *tensor) {
	all := millrace.Chunk(in.Add(h.MatMul(l.r)).Add(l.rb), 4, 1)
	if len(all) != 4 {
		l.c.shapeFail("gates of shape %v", in.Shape())
		return h, m
	}
	i, o, f, g := all[0], all[1], all[2], all[3]
	if l.peep != nil {
		i, f = i.Add(l.peep[0].Mul(m)), f.Add(l.peep[2].Mul(m))
	}
	i = l.act[0](l.clipped(i))
	if l.coupled {
		f = i.ScalarSub(1)
	} else {
		f = l.act[0](l.clipped(f))
	}
	m = f.Mul(m).Add(i.Mul(l.act[1](l.clipped(g))))
	if l.peep != nil {
		o = o.Add(l.peep[1].Mul(m))
	}
	return l.act[0](l.clipped(o)).Mul(l.act[2](m)), m
}
