package optim

import (
	"fmt"
	"math"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/millrace-go/millrace/internal/portion"
	"github.com/millrace-go/millrace/nn"
)

// A leaf is a part of the batch with a pass of its own. Its gradients, loss and buffers are weighted
// by its rows. A rank adds its leaves as neighbours in pairs, again and again, in the order
// in which package dist adds those of ranks, so bits do not depend on how leaves are distributed:
//
//	0   1   2   3   4
//	0+1     2+3     4
//	0+1+2+3         4
//	0+1+2+3+4
//
// A leaf without rows adds -0, which changes no number, and is not computed.

// addends are what one leaf, or several, add to the sums; nil adds nothing.
type addends struct {
	grads   []*millrace.Tensor // by parameter
	loss    *millrace.Tensor
	buffers []*millrace.Tensor // of floats, by their index in across.buffers
}

// joint is one run on this rank.
type joint struct {
	*across
	s     *Step
	sc    *millrace.Scope // owns what outlives a leaf
	now   *millrace.Scope // sc, or that of a leaf
	in    []*millrace.Tensor
	own   map[*nn.Param]*millrace.Tensor // handles of parameters; none unless the step is recorded
	eager bool
	rows  int
	whole []addends // sums of 1, 2, 4 and so on leaves, the largest first

	open  map[kindOfBucket]*bucket // buckets that are not sent yet
	sent  []*bucket
	gone  []bool           // gradients that are in a bucket, by parameter
	bad   error            // of a gradient, the loss or a buffer
	total addends          // of all ranks
	all   *millrace.Tensor // number of rows of all ranks

	loss   millrace.DType // of the function's loss
	used   []*nn.Param
	others []set                        // new values of buffers that are not of floats
	floats map[*nn.Param]millrace.DType // dtypes of new values of the others
}

// gradients is [Step.backward] for the whole batch.
func (a *across) gradients(s *Step, sc *millrace.Scope, in []*millrace.Tensor, as map[*nn.Param]*millrace.Tensor) (x found, err error) {
	err = sc.Scope(func(inner *millrace.Scope) error {
		j := &joint{across: a, s: s, sc: inner, now: inner, in: in, own: s.handles(inner, as), eager: as == nil, rows: in[0].Dim(0),
			open: map[kindOfBucket]*bucket{}, floats: map[*nn.Param]millrace.DType{}}
		j.total.grads, j.gone = make([]*millrace.Tensor, len(s.o.params)), make([]bool, len(s.o.params))
		for i := range a.leaves {
			if err := j.next(i); err != nil {
				return err
			}
		}
		if j.bad != nil {
			return j.bad
		}
		if err := j.collect(&x); err != nil {
			return err
		}
		return s.finish(inner, &x, j.own, as)
	})
	return x, err
}

// next computes the rank's leaf i and adds it to the others. The last leaf has rows if any has, and
// its gradients are sent while its backward pass runs.
func (j *joint) next(i int) error {
	from, to := portion.Of(j.rows, j.leaves, i)
	last := i == j.leaves-1
	var sum addends
	if from < to || last {
		if err := j.leaf(i, from, to, last, &sum); err != nil || last {
			return err
		}
	}
	j.whole = append(j.whole, sum)
	for n := i + 1; n%2 == 0; n /= 2 {
		k := len(j.whole) - 1
		j.whole = append(j.whole[:k-1], j.whole[k-1].sum(j.whole[k]))
	}
	if !j.eager {
		return nil
	}
	top := j.whole[len(j.whole)-1]
	for _, t := range slices.Concat(top.grads, []*millrace.Tensor{top.loss}, top.buffers) {
		if t == nil {
			continue
		}
		if err := t.Eval(); err != nil {
			return err
		}
	}
	return nil
}

// sum adds two sums and ends them.
func (a addends) sum(b addends) addends {
	return addends{addAll(a.grads, b.grads), add(a.loss, b.loss), addAll(a.buffers, b.buffers)}
}

func addAll(a, b []*millrace.Tensor) []*millrace.Tensor {
	if len(a) < len(b) {
		a = append(a, make([]*millrace.Tensor, len(b)-len(a))...)
	}
	for i, t := range b {
		a[i] = add(a[i], t)
	}
	return a
}

// add adds two tensors and ends them; nil is no tensor.
func add(a, b *millrace.Tensor) *millrace.Tensor {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	sum := a.Add(b)
	hostapi.Drop(a)
	hostapi.Drop(b)
	return sum
}

// leaf computes rows from and to of the rank's inputs.
func (j *joint) leaf(i, from, to int, last bool, sum *addends) error {
	defer func() { j.now = j.sc }()
	return j.sc.Scope(func(leaf *millrace.Scope) error {
		j.now = leaf
		own := make(map[*nn.Param]*millrace.Tensor, len(j.own)+1)
		for p, t := range j.own {
			own[p] = t.To(leaf)
		}
		j.key(own, j.w.Rank()*j.leaves+i)
		sum.grads = make([]*millrace.Tensor, len(j.s.o.params))
		p, err := j.s.pass(leaf, j.slice(from, to), own, j.s.finite && from < to, func(p *param, g *millrace.Tensor) {
			t := j.weighted(g, to-from, j.opt.wire(g.DType()))
			hostapi.Drop(g) // a cut of the stream need not store it
			if last {
				j.gradient(p, t)
			} else {
				sum.grads[p.index] = t
			}
		})
		if err != nil {
			return err
		}
		j.loss = p.loss.DType()
		sum.loss = j.weighted(autodiff.Detach(p.loss), to-from, computed(j.loss))
		j.note(p.c, sum, to-from)
		if last {
			j.rest(*sum)
		}
		return nil
	})
}

// keep makes a tensor of a leaf outlive it.
func (j *joint) keep(t *millrace.Tensor) *millrace.Tensor {
	if j.now != j.sc {
		j.now.Keep(t)
	}
	return t
}

// key gives leaf number l of the whole batch its own random numbers. Leaf 0 draws those of a step of
// one rank.
func (j *joint) key(own map[*nn.Param]*millrace.Tensor, l int) {
	if j.s.random == nil || l == 0 {
		return
	}
	key := j.s.random.Key
	now := own[key]
	if now == nil {
		now = key.Tensor().To(j.now)
	}
	own[key] = now.BitXorScalar(float64(scattered(uint32(l))))
}

// scattered is a one-to-one function that maps 0 to 0 and neighbours to unrelated numbers: the last
// step of MurmurHash3 (Appleby, 2011).
func scattered(x uint32) uint32 {
	x = (x ^ x>>16) * 0x85ebca6b
	x = (x ^ x>>13) * 0xc2b2ae35
	return x ^ x>>16
}

// slice returns the inputs of a leaf. A rank without rows gets two rows of zeros: the pass tells what
// the others send, and its numbers are not used. One row would not do for BatchNorm.
func (j *joint) slice(from, to int) []*millrace.Tensor {
	in := slices.Clone(j.in)
	for i, t := range in {
		switch {
		case t.Rank() == 0:
		case j.rows == 0:
			in[i] = millrace.ZerosOn(j.now, t.DType(), append([]int{2}, t.Shape()[1:]...)...)
		case to-from < j.rows:
			in[i] = t.To(j.now).Slice(millrace.R(from, to))
		}
	}
	return in
}

// weighted is t times the number of rows, in the dtype of its sum; without rows it is -0.
func (j *joint) weighted(t *millrace.Tensor, rows int, dt millrace.DType) *millrace.Tensor {
	if rows == 0 {
		return j.keep(millrace.FullOn(j.now, dt, math.Copysign(0, -1), t.Shape()...))
	}
	var temps temps
	defer temps.end()
	return j.keep(temps.keep(temps.of(t).cast(computed(t.DType())).times(float64(rows)).cast(dt)))
}

// note adds the new values of a pass's buffers, and what it used.
func (j *joint) note(c *nn.Ctx, sum *addends, rows int) {
	changed, values := c.Changed()
	sum.buffers = make([]*millrace.Tensor, len(j.buffers))
	for i, p := range changed {
		t := values[i]
		if !t.DType().IsFloat() {
			if !slices.ContainsFunc(j.others, func(s set) bool { return s.p == p }) {
				j.others = append(j.others, set{p, j.now.Keep(t)})
			}
			if !slices.Contains(j.counts, p) && (j.s.random == nil || p != j.s.random.Counter) {
				j.counts = append(j.counts, p)
			}
			continue
		}
		k := slices.Index(j.buffers, p)
		if k < 0 {
			k = len(j.buffers)
			j.buffers = append(j.buffers, p)
			sum.buffers = append(sum.buffers, nil)
		}
		j.floats[p] = t.DType()
		sum.buffers[k] = j.weighted(t, rows, computed(t.DType()))
	}
	for _, p := range c.Used() {
		if !slices.Contains(j.used, p) {
			j.used = append(j.used, p)
		}
	}
}

// collect takes the means out of the sums.
func (j *joint) collect(x *found) error {
	for _, b := range j.sent {
		b.split()
	}
	some := j.all.MaximumScalar(1) // without any rows sums are -0, and so are means
	by := map[millrace.DType]*millrace.Tensor{millrace.Float32: some}
	mean := func(t *millrace.Tensor) *millrace.Tensor {
		dt := computed(t.DType())
		if by[dt] == nil {
			by[dt] = some.Cast(dt)
		}
		return t.Cast(dt).Div(by[dt])
	}
	x.used, x.grads = j.used, j.total.grads
	for i, g := range x.grads {
		if g != nil {
			x.grads[i] = mean(g)
		}
	}
	x.loss = j.total.loss.Div(j.all.Cast(j.total.loss.DType())).Cast(j.loss)
	if j.s.o.scaling != nil {
		x.ok = j.s.o.finite(x.grads)
	}
	for _, s := range j.others {
		if j.s.random == nil || s.p != j.s.random.Counter { // it counts skipped updates, too
			s.to = j.unless(x.ok, s)
		}
		x.sets = append(x.sets, s)
	}
	for k, p := range j.buffers {
		if k < len(j.total.buffers) && j.total.buffers[k] != nil {
			ok := j.all.GtScalar(0)
			if x.ok != nil {
				ok = ok.And(x.ok)
			}
			x.sets = append(x.sets, set{p, j.unless(ok, set{p, mean(j.total.buffers[k]).Cast(j.floats[p])})})
		}
	}
	if j.s.finite {
		return j.finite(x)
	}
	return nil
}

// unless is a buffer's new value, or its old one if ok is false.
func (j *joint) unless(ok *millrace.Tensor, s set) *millrace.Tensor {
	if ok == nil {
		return s.to
	}
	old := j.own[s.p]
	if old == nil {
		old = s.p.Tensor().To(j.sc)
	}
	return millrace.Where(ok, s.to, old)
}

// finite reports a sum that is not finite although all leaves' parts were.
func (j *joint) finite(x *found) error {
	for i, g := range x.grads {
		if g == nil {
			continue
		}
		fine, err := millrace.Item[bool](finite([]*millrace.Tensor{g}))
		if err != nil {
			return err
		}
		if !fine {
			return failureOf("step", fmt.Errorf("the gradient of %q, added up over all ranks, is not finite", j.s.o.params[i].Name), g)
		}
	}
	return nil
}
