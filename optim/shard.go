package optim

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/distapi"
	"github.com/millrace-go/millrace/internal/hold"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/millrace-go/millrace/nn"
)

// shard is how an optimiser's state is divided among the ranks of a World (ZeRO 1: Rajbhandari and
// others, 2019). Each parameter is divided by itself: its elements in row-major order, with as many
// more as make parts of one size, are a row of a matrix for each rank:
//
//	0 1 2 3      rank 0
//	4 5 6 7      rank 1
//	8 9 . .      rank 2
//
// A rank has the state of its row, and updates it; all ranks then gather the rows. So a part depends
// neither on buckets nor on which parameters a step uses.
type shard struct {
	world      any // a *dist.World
	rank, size int
	bucket     int  // how many bytes of parameters are gathered at once
	whole      bool // gradients are those of all elements on each rank
}

// part is the number of elements of a rank's part of n.
func (d *shard) part(n int) int { return (n + d.size - 1) / d.size }

// span is where this rank's elements of n begin and end. They may be fewer than part says, or none.
func (d *shard) span(n int) (from, to int) {
	c := d.part(n)
	return min(d.rank*c, n), min(d.rank*c+c, n)
}

// cut is this rank's row of a parameter-shaped value.
func (d *shard) cut(v val) val {
	n := v.t.Len()
	from, to := d.span(n)
	v = v.reshape(n).slice(from, to)
	if more := d.part(n) - (to - from); more > 0 {
		v = v.x.own(v.t.Pad(0, millrace.Padding{After: more}))
	}
	return v
}

// rows is a tensor as the matrix of all ranks' rows, which it ends.
func (d *shard) rows(t *millrace.Tensor) *millrace.Tensor {
	var temps temps
	defer temps.end()
	n := t.Len()
	v := temps.own(t).reshape(n)
	if more := d.part(n)*d.size - n; more > 0 {
		v = v.x.own(v.t.Pad(0, millrace.Padding{After: more}))
	}
	return temps.keep(v.reshape(d.size, d.part(n)))
}

// buffer makes a parameter-shaped buffer, or this rank's part of one.
func (d *shard) buffer(p *param, make func(shape ...int) *millrace.Tensor) *nn.Param {
	if d == nil {
		return nn.NewBuffer(make(p.Tensor().Shape()...))
	}
	b := nn.NewBuffer(make(d.part(p.Tensor().Len())))
	d.mark(b, p.Tensor().Shape())
	return b
}

func (d *shard) mark(b *nn.Param, shape []int) {
	n := 1
	for _, s := range shape {
		n *= s
	}
	from, to := d.span(n)
	hold.MarkPart(b, &hold.Part{World: d.world, Shape: shape, From: from, To: to})
}

// sums is how sums of gradients are divided, nil if they are not.
func (o *Optimizer) sums() *shard {
	if o.shard != nil && o.shard.whole {
		return nil
	}
	return o.shard
}

// divide divides the optimiser's state as a step says, once. After an error the state is as before.
func (o *Optimizer) divide(d *shard) error {
	if o.rule.whole {
		return fmt.Errorf("%w: Ranks.Sharded: %s computes norms of whole parameters, of which a rank has only a part", millrace.ErrUnsupported, o.rule.name)
	}
	if err := o.turn.take(nil, "step"); err != nil {
		return err
	}
	defer o.turn.give()
	if o.shard != nil {
		if o.shard.world != d.world {
			return fmt.Errorf("%w: the state of the optimiser is divided among the ranks of another World", millrace.ErrUnsupported)
		}
		return nil
	}
	d.whole = o.clipNorm > 0
	type half struct{ whole, part *nn.Param }
	var all []half
	defer func() {
		for _, x := range all {
			hostapi.Drop(x.part.Tensor())
		}
	}()
	for _, p := range o.params {
		list := p.state
		if p.sum != nil && !d.whole {
			list = append(list[:len(list):len(list)], p.sum)
		}
		for _, b := range list {
			t := b.Tensor()
			part := d.buffer(p, func(shape ...int) *millrace.Tensor { return zeros(t.Stream(), t.DType(), shape...) })
			all = append(all, half{b, part})
			err := hold.SetPart(part, t)
			if err == nil {
				err = part.Tensor().Err()
			}
			if err != nil {
				return err
			}
		}
	}
	for _, x := range all { // nothing fails from here on
		shape := x.whole.Tensor().Shape()
		x.whole.Tensor().Set(x.part.Tensor())
		d.mark(x.whole, shape)
	}
	for key, rec := range o.ends { // they have the whole state
		rec.Release()
		delete(o.ends, key)
	}
	o.shard = d
	return nil
}

var errDivided = fmt.Errorf("%w: the state of the optimiser is divided among ranks by a Step with Ranks.Sharded; only such steps can update", millrace.ErrUnsupported)

// shares are new values of the rank's parts of parameters, of one dtype.
type shares struct {
	params []*param
	parts  []*millrace.Tensor
	bytes  int
	all    *millrace.Tensor
	ready  bool // all is the only parameter
}

// share notes the new value of the rank's part of a parameter. Values are gathered while others are
// computed.
func (x *pass) share(p *param, old, to val) {
	if x.ok != nil {
		to = old.x.of(x.ok).ifElse(to, old)
	}
	if x.o.shard.size == 1 {
		x.sets = append(x.sets, set{p.Param, to.x.keep(to.reshape(p.Tensor().Shape()...))})
		return
	}
	dt, bytes := to.t.DType(), p.Tensor().Len()*to.t.DType().Size()
	s := x.open[dt]
	if bytes >= x.o.shard.bucket || s == nil {
		s = &shares{}
		x.shares = append(x.shares, s)
	}
	s.params, s.parts = append(s.params, p), append(s.parts, to.x.keep(to))
	switch s.bytes += bytes; {
	case bytes >= x.o.shard.bucket: // alone, so that nothing is to be copied
		x.gather(s)
	case s.bytes >= x.o.shard.bucket:
		delete(x.open, dt)
		x.gather(s)
	default:
		if x.open == nil {
			x.open = map[millrace.DType]*shares{}
		}
		x.open[dt] = s
	}
}

// gather gathers values from all ranks.
func (x *pass) gather(s *shares) {
	d := x.o.shard
	lines := []string{x.o.rule.name}
	for _, p := range s.params {
		lines = append(lines, fmt.Sprintf("%s %v %v", p.Name, p.Tensor().DType(), p.Tensor().Shape()))
	}
	mine := s.parts[0]
	if shape := s.params[0].Tensor().Shape(); len(s.parts) == 1 && len(shape) > 0 && shape[0]%d.size == 0 {
		shape[0] /= d.size // rows are whole, and the result is the parameter
		mine = mine.Reshape(shape...)
		hostapi.Drop(s.parts[0])
		s.ready = true
	} else if len(s.parts) > 1 {
		mine = millrace.Concat(0, s.parts...)
		for _, t := range s.parts {
			hostapi.Drop(t)
		}
	}
	s.all = distapi.AllGather(d.world, "step, parameters from "+s.params[0].Name, lines, mine).(*millrace.Tensor)
	hostapi.Drop(mine)
}

// received takes the parameters out of what was gathered. Those that were not alone are copies: a
// recorded step can only be repeated if what it sets is not a view.
func (x *pass) received() {
	for _, s := range x.shares {
		if s.all == nil {
			x.gather(s)
		}
	}
	for _, s := range x.shares {
		if s.ready {
			x.sets = append(x.sets, set{s.params[0].Param, s.all})
			continue
		}
		at := 0
		all := x.temps.own(s.all)
		width := all.t.Len() / x.o.shard.size
		for _, p := range s.params {
			n := p.Tensor().Len()
			c := x.o.shard.part(n)
			var rows []*millrace.Tensor
			for r := range x.o.shard.size {
				from := r*width + at
				rows = append(rows, all.slice(from, from+min(c, max(n-r*c, 0))).t)
			}
			v := x.temps.own(millrace.Concat(0, rows...)).reshape(p.Tensor().Shape()...)
			x.sets = append(x.sets, set{p.Param, x.temps.keep(v)})
			at += c
		}
	}
}

// finite is [finite] for the gradients of all ranks.
func (o *Optimizer) finite(grads []*millrace.Tensor) *millrace.Tensor {
	ok := finite(grads)
	d := o.sums()
	if ok == nil || d == nil {
		return ok
	}
	var temps temps
	defer temps.end()
	bad := temps.own(ok).not().cast(millrace.Float32).reshape(1)
	all := temps.own(distapi.AllReduce(d.world, "step, finite", []string{strings.ToLower(o.rule.name)}, bad.t).(*millrace.Tensor))
	return temps.keep(all.reshape().above(0).not())
}
