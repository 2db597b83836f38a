package nn

import (
	"fmt"

	"github.com/millrace-go/millrace"
)

// Layers stacks n recurrent layers: each reads the results of the one before.
func Layers(n int) Option { return Option{kLayers, func(o *settings) { o.layers = n }} }

// Bidirectional makes each recurrent layer read the sequence in both directions; both results are
// concatenated along the features.
func Bidirectional() Option { return Option{kBidirectional, func(o *settings) {}} }

// BatchFirst makes sequences (batch, steps, features) instead of (steps, batch, features).
func BatchFirst() Option { return Option{kBatchFirst, func(o *settings) {}} }

// recurrent is the common part of GRU and LSTM.
type recurrent struct {
	name             string
	cells            []*cell // for each layer: forward, then backward
	in, hidden, dirs int
	batchFirst       bool
	dropout          float64
	bad              *millrace.Tensor
}

// cell holds the parameters of one layer in one direction; the rows of the gates follow one
// another.
type cell struct {
	weightIn, weightHidden *Param // (gates·hidden, in) and (gates·hidden, hidden)
	biasIn, biasHidden     *Param // (gates·hidden), or nil
}

func newRecurrent(name string, gates, in, hidden int, opts []Option) recurrent {
	o := settled(name, opts, kNoBias|kLayers|kBidirectional|kBatchFirst|kDropout|kWeights|kBiases)
	r := recurrent{name: name, in: in, hidden: hidden, dirs: 1, batchFirst: o.has(kBatchFirst), dropout: o.p}
	if o.layers < 1 || hidden < 1 {
		o.fault(name, shapeErr("a network cannot have %d layers of %d features", o.layers, hidden))
	}
	if o.has(kBidirectional) {
		r.dirs = 2
	}
	usual := initFan(hidden)
	for range o.layers {
		for range r.dirs {
			c := &cell{weightIn: o.draw(o.weights, usual, gates*hidden, in), weightHidden: o.draw(o.weights, usual, gates*hidden, hidden)}
			if !o.has(kNoBias) {
				c.biasIn, c.biasHidden = o.draw(o.biases, usual, gates*hidden), o.draw(o.biases, usual, gates*hidden)
			}
			r.cells = append(r.cells, c)
		}
		in = r.dirs * hidden
	}
	r.bad = o.bad
	return r
}

// State names the parameters as PyTorch does: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0;
// other numbers for later layers, and _reverse for the backward direction.
func (r *recurrent) State() []Named {
	var all []Named
	for i, c := range r.cells {
		suffix := fmt.Sprintf("_l%d", i/r.dirs)
		if i%r.dirs == 1 {
			suffix += "_reverse"
		}
		all = append(all, Named{"weight_ih" + suffix, c.weightIn}, Named{"weight_hh" + suffix, c.weightHidden})
		if c.biasIn != nil {
			all = append(all, Named{"bias_ih" + suffix, c.biasIn}, Named{"bias_hh" + suffix, c.biasHidden})
		}
	}
	return all
}

// steps computes one step of a cell from the input's products, the previous state's products and
// the previous state. The first tensor of a state is the cell's result.
type steps func(fromInput, fromHidden *millrace.Tensor, state []*millrace.Tensor) []*millrace.Tensor

// run goes through a sequence. Each tensor of state and of end is (layers·directions, batch,
// hidden); nil in state stands for zeros.
func (r *recurrent) run(c *Ctx, x *millrace.Tensor, state []*millrace.Tensor, f steps) (y *millrace.Tensor, end []*millrace.Tensor) {
	x = c.Cast(x)
	if bad := r.check(x, state); bad != nil {
		end = make([]*millrace.Tensor, len(state))
		for i := range end {
			end[i] = fail(r.name, errNil, bad) // a handle of its own
		}
		return bad, end
	}
	if r.batchFirst {
		x = x.Permute(1, 0, 2)
	}
	length, batch := x.Dim(0), x.Dim(1)
	ends := make([][]*millrace.Tensor, len(state))
	for i := 0; i < len(r.cells); i += r.dirs {
		if i > 0 {
			x = dropout(r.name, c, r.dropout, x)
		}
		var both []*millrace.Tensor
		for d := range r.dirs {
			now := make([]*millrace.Tensor, len(state))
			for j, s := range state {
				if s == nil {
					now[j] = millrace.ZerosOn(c.place(x), x.DType(), batch, r.hidden)
				} else {
					now[j] = as(s.Slice(millrace.At(i+d)), x.DType())
				}
			}
			all := r.cells[i+d].walk(c, x, now, length, d == 1, f)
			both = append(both, millrace.Stack(0, all...))
			for j := range now {
				ends[j] = append(ends[j], now[j])
			}
		}
		x = both[0]
		if r.dirs == 2 {
			x = millrace.Concat(-1, both...)
		}
	}
	for _, e := range ends {
		end = append(end, millrace.Stack(0, e...))
	}
	if r.batchFirst {
		x = x.Permute(1, 0, 2)
	}
	return x, end
}

func (r *recurrent) check(x *millrace.Tensor, state []*millrace.Tensor) *millrace.Tensor {
	if r.bad != nil {
		return fail(r.name, errNoParam, r.bad)
	}
	batch, length := x.Dim(1), x.Dim(0)
	if r.batchFirst {
		batch, length = length, batch
	}
	if x.Rank() != 3 || x.Dim(2) != r.in || length == 0 {
		return fail(r.name, shapeErr("%v is not a sequence, or a batch of sequences, of %d features", x.Shape(), r.in), x)
	}
	for _, s := range state {
		if s != nil && (s.Rank() != 3 || s.Dim(0) != len(r.cells) || s.Dim(1) != batch || s.Dim(2) != r.hidden) {
			return fail(r.name, shapeErr("the state has shape %v, it must have %v", s.Shape(), []int{len(r.cells), batch, r.hidden}), x, s)
		}
	}
	return nil
}

// walk goes through a sequence, from its end if backwards. now is the first state and becomes the
// last one. The results are in the sequence's order.
func (l *cell) walk(c *Ctx, x *millrace.Tensor, now []*millrace.Tensor, length int, backwards bool, f steps) []*millrace.Tensor {
	times := func(x *millrace.Tensor, w, b *Param) *millrace.Tensor {
		y := x.DotGeneral(w.In(c), nil, nil, []int{-1}, []int{1})
		if b != nil {
			y = y.Add(b.In(c))
		}
		return y
	}
	in := times(x, l.weightIn, l.biasIn)
	all := make([]*millrace.Tensor, length)
	for i := range length {
		if backwards {
			i = length - 1 - i
		}
		copy(now, f(in.Slice(millrace.At(i)), times(now[0], l.weightHidden, l.biasHidden), now))
		all[i] = now[0]
	}
	return all
}

// GRU has gated recurrent units (Cho and others, 2014), with the reset gate applied after the
// product, as in PyTorch's nn.GRU.
type GRU struct{ recurrent }

// NewGRU makes a GRU for sequences of in features. It takes [Layers], [Bidirectional],
// [BatchFirst], [DropoutOf] for the results that one layer passes to the next, [NoBias], [Weights]
// and [Biases]; parameters start uniform on ±1/√hidden.
func NewGRU(in, hidden int, opts ...Option) *GRU {
	return &GRU{newRecurrent("gru", 3, in, hidden, opts)}
}

// Forward returns the last layer's state after each step, (steps, batch, hidden), for x of shape
// (steps, batch, in). If it is bidirectional, the last dimension is 2·hidden. Other shapes are
// [millrace.ErrShape]. Dtypes are as for [Linear.Forward].
func (l *GRU) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	y, _ := l.Run(c, x, nil)
	return y
}

// Run is Forward with a first state of shape (layers·directions, batch, hidden), else
// [millrace.ErrShape]; it is cast to the dtype of x. nil stands for zeros. Run also returns the
// last state, of the same shape and in the dtype of y.
func (l *GRU) Run(c *Ctx, x, state *millrace.Tensor) (y, end *millrace.Tensor) {
	n := l.hidden
	y, ends := l.run(c, x, []*millrace.Tensor{state}, func(in, rec *millrace.Tensor, s []*millrace.Tensor) []*millrace.Tensor {
		gates := last(in, 0, 2*n).Add(last(rec, 0, 2*n)).Sigmoid()
		reset, update := last(gates, 0, n), last(gates, n, 2*n)
		fresh := last(in, 2*n, 3*n).Add(reset.Mul(last(rec, 2*n, 3*n))).Tanh()
		return []*millrace.Tensor{s[0].Sub(fresh).Mul(update).Add(fresh)}
	})
	return y, ends[0]
}

// LSTM is long short-term memory (Hochreiter and Schmidhuber, 1997) with forget gates, as PyTorch's
// nn.LSTM.
type LSTM struct{ recurrent }

// NewLSTM makes an LSTM. Options and first values are those of [NewGRU].
func NewLSTM(in, hidden int, opts ...Option) *LSTM {
	return &LSTM{newRecurrent("lstm", 4, in, hidden, opts)}
}

// Forward returns the last layer's state after each step. Shapes, dtypes and errors are those of
// [GRU.Forward].
func (l *LSTM) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	y, _, _ := l.Run(c, x, nil, nil)
	return y
}

// Run is Forward with the first hidden state and the first cell state, memory. It also returns the
// last ones. Shapes, dtypes and errors of each are as in [GRU.Run].
func (l *LSTM) Run(c *Ctx, x, state, memory *millrace.Tensor) (y, end, endMemory *millrace.Tensor) {
	n := l.hidden
	y, ends := l.run(c, x, []*millrace.Tensor{state, memory}, func(in, rec *millrace.Tensor, s []*millrace.Tensor) []*millrace.Tensor {
		all := in.Add(rec)
		input, forget := last(all, 0, n).Sigmoid(), last(all, n, 2*n).Sigmoid()
		fresh, output := last(all, 2*n, 3*n).Tanh(), last(all, 3*n, 4*n).Sigmoid()
		kept := forget.Mul(s[1]).Add(input.Mul(fresh))
		return []*millrace.Tensor{output.Mul(kept.Tanh()), kept}
	})
	return y, ends[0], ends[1]
}
