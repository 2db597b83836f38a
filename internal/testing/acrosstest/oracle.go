package acrosstest

import (
	"errors"
	"fmt"
	"math"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/nn"
)

// leaf is what the pass of a leaf computes.
type leaf struct {
	rows   int
	loss   vector
	grads  map[*nn.Param]vector
	floats map[*nn.Param]vector           // new values of buffers
	others map[*nn.Param]*millrace.Tensor // of buffers that are no floats
	ctx    *nn.Ctx
}

// Oracle trains the model on one process as a number of ranks would, with a pass for each leaf, sums
// in Go, and the optimiser's Update.
func (m Model) Oracle(at millrace.Place, ranks int) (Result, error) {
	t := m.New(at)
	x := &oracle{m: m, t: t, at: at, sums: map[*nn.Param]vector{}}
	var losses []*millrace.Tensor
	for step := range m.Steps {
		if m.Before != nil {
			m.Before(t, step)
		}
		loss, err := x.step(step, ranks)
		if err != nil {
			return Result{}, fmt.Errorf("oracle: step %d: %w", step, err)
		}
		losses = append(losses, loss)
	}
	return t.result(losses)
}

// oracle is a training of the oracle.
type oracle struct {
	m    Model
	t    *Training
	at   millrace.Place
	runs int // since the last update
	sums map[*nn.Param]vector
}

func (x *oracle) step(step, ranks int) (loss *millrace.Tensor, err error) {
	x.t.Optimizer.State() // each run makes the state of parameters that are not frozen
	batch := x.m.Batch(step)
	var leaves [][]*leaf // of each rank
	var some *leaf       // one with rows
	at := x.m.bounds(step, batch.Rows, ranks)
	for r := range ranks {
		var own []*leaf
		parts := Bounds(at[r+1]-at[r], x.m.Leaves/ranks)
		for i := range len(parts) - 1 {
			l := &leaf{rows: parts[i+1] - parts[i]}
			own = append(own, l)
			if l.rows == 0 {
				continue
			}
			in := batch.Tensors(x.at, at[r]+parts[i], at[r]+parts[i+1])
			if err := x.pass(l, in, len(own)-1+r*x.m.Leaves/ranks); err != nil {
				return nil, err
			}
			if some == nil {
				some = l
			} else {
				defer l.ctx.Release()
			}
		}
		leaves = append(leaves, own)
	}
	if some == nil {
		return nil, errors.New("a batch without rows")
	}
	mean := func(of func(*leaf) vector, wire millrace.DType) vector {
		dt := of(some).dt
		if wire == millrace.Invalid || dt == millrace.Float64 {
			wire = dt
		}
		none := of(some).as(wire).each(func(int, float64) float64 { return math.Copysign(0, -1) }) // adds nothing
		var all []vector
		for _, own := range leaves {
			var list []vector
			for _, l := range own {
				if l.rows == 0 {
					list = append(list, none)
				} else {
					list = append(list, of(l).times(float64(l.rows)).as(wire))
				}
			}
			all = append(all, tree(list))
		}
		return tree(all).as(dt).over(float64(batch.Rows))
	}
	finite := true
	grads := map[*nn.Param]vector{}
	for p := range some.grads {
		grads[p] = mean(func(l *leaf) vector { return l.grads[p] }, x.m.Wire)
		finite = finite && grads[p].finite()
	}
	floats := map[*nn.Param]vector{}
	for p := range some.floats {
		floats[p] = mean(func(l *leaf) vector { return l.floats[p] }, millrace.Invalid)
	}
	if err := x.commit(some, floats, finite || x.t.Optimizer.Scale() == nil); err != nil {
		return nil, err
	}
	loss = mean(func(l *leaf) vector { return l.loss }, millrace.Invalid).tensor(x.at)
	return loss, x.update(grads)
}

// key is the key of a leaf's random numbers.
func (x *oracle) key(l int) (*millrace.Tensor, error) {
	k, err := millrace.Item[uint32](x.t.Random.Key.Tensor())
	return millrace.ScalarOn(x.at, leafKey(k, l)), err
}

// pass computes a leaf.
func (x *oracle) pass(l *leaf, in []*millrace.Tensor, number int) error {
	opt := nn.CtxOptions{Train: true, Watch: true, Random: x.t.Random, DType: x.m.Compute}
	if x.t.Random != nil {
		key, err := x.key(number)
		if err != nil {
			return err
		}
		opt.As = map[*nn.Param]*millrace.Tensor{x.t.Random.Key: key}
	}
	l.ctx = nn.NewCtx(opt)
	made := x.t.Loss(l.ctx, in)
	scaled := made
	if scale := x.t.Optimizer.Scale(); scale != nil {
		scaled = made.Cast(millrace.Float32).Mul(scale)
	}
	params, handles := l.ctx.Watched()
	derivatives, err := autodiff.Grad(scaled, handles...)
	if err != nil {
		return err
	}
	l.grads = map[*nn.Param]vector{}
	for i, p := range params {
		if l.grads[p], err = read(derivatives[i]); err != nil {
			return err
		}
	}
	if l.loss, err = read(autodiff.Detach(made)); err != nil {
		return err
	}
	return x.buffers(l)
}

// buffers reads the new values of buffers.
func (x *oracle) buffers(l *leaf) error {
	l.floats, l.others = map[*nn.Param]vector{}, map[*nn.Param]*millrace.Tensor{}
	now := map[*nn.Param]*millrace.Tensor{}
	for _, n := range x.t.Params {
		if n.Buffer() {
			now[n.Param] = n.In(l.ctx)
		}
	}
	for _, p := range l.ctx.Used() { // without those that have a new value
		delete(now, p)
	}
	for p, v := range now {
		if !v.DType().IsFloat() {
			l.others[p] = v
			continue
		}
		var err error
		if l.floats[p], err = read(v); err != nil {
			return err
		}
	}
	return nil
}

// commit sets buffers and advances the random numbers. The pass of one leaf ends as any pass does;
// then buffers get the leaves' means, or their old values if nothing is updated.
func (x *oracle) commit(some *leaf, floats map[*nn.Param]vector, ok bool) error {
	old := map[*nn.Param]*millrace.Tensor{}
	for _, n := range x.t.Params {
		if n.Buffer() {
			old[n.Param] = n.Tensor().To(n.Tensor().Stream())
		}
	}
	if err := some.ctx.Commit(); err != nil {
		return err
	}
	for p, v := range old {
		if mean, is := floats[p]; is && ok {
			p.Tensor().Set(mean.tensor(x.at).Cast(p.Tensor().DType()))
		} else if !ok {
			p.Tensor().Set(v)
		}
	}
	return nil
}

// update adds the gradients to those of earlier runs, and updates by their mean.
func (x *oracle) update(grads map[*nn.Param]vector) error {
	for p, g := range grads {
		if sum, is := x.sums[p]; is {
			g = sum.plus(g)
		}
		x.sums[p] = g
	}
	if x.runs++; x.runs < max(x.m.Parts, 1) {
		return nil
	}
	var list []*millrace.Tensor
	for _, p := range x.t.Optimizer.Params() {
		var t *millrace.Tensor
		if g, is := x.sums[p.Param]; is {
			if x.runs > 1 {
				g = g.over(float64(x.runs))
			}
			t = g.tensor(x.at)
		}
		list = append(list, t)
	}
	x.runs = 0
	clear(x.sums)
	return x.t.Optimizer.Update(list)
}
