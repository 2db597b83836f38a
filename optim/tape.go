package optim

import (
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// tape is a step recorded for one kind of inputs.
type tape struct {
	rec *millrace.Recording
	has []bool // parameters with gradients

	// The kind of run that it fits.
	in     []kind
	e      ending
	sums   []bool // parameters with gradients from earlier steps
	frozen []bool

	// args are parameters that the step uses and does not set: frozen weights, those of another
	// optimiser, and all weights if gradients are only added up. They must be arguments, because a
	// Recording would keep the values that they had when it was made.
	args []*nn.Param
	more []*nn.Param // further ones, found while recording
}

// kind is the dtype and shape of an input.
type kind struct {
	dt    millrace.DType
	shape []int
}

func (k *kind) fits(t *millrace.Tensor) bool {
	if t.DType() != k.dt || t.Rank() != len(k.shape) {
		return false
	}
	for i, d := range k.shape {
		if t.Dim(i) != d {
			return false
		}
	}
	return true
}

// fits reports whether the tape is for such a run.
func (t *tape) fits(o *Optimizer, e ending, in []*millrace.Tensor) bool {
	if t.e != e || len(in) != len(t.in) || e.steps > 1 && !slices.Equal(t.sums, o.progress.sums) {
		return false
	}
	for i := range in {
		if !t.in[i].fits(in[i]) {
			return false
		}
	}
	for i, p := range o.params {
		if p.Frozen() != t.frozen[i] {
			return false
		}
	}
	return true
}

// mostTapes is the number of tapes that a step keeps.
const mostTapes = 32

// replay runs a step from its recording, and makes the recording at the first run.
func (s *Step) replay(e ending, in []*millrace.Tensor) (loss *millrace.Tensor, has []bool, err error) {
	t := s.tape(e, in)
	args := make([]*millrace.Tensor, 0, len(s.o.groups)+len(t.args)+len(in))
	if args, err = s.o.rates(args); err != nil {
		return nil, nil, err
	}
	for _, p := range t.args {
		args = append(args, p.Tensor())
	}
	out, err := t.rec.RunWith(nil, millrace.RunOptions{On: s.on, NoWait: true}, append(args, in...)...)
	if len(t.more) > 0 {
		s.others = append(s.others, t.more...)
		t.args, t.more = append(t.args, t.more...), nil
		t.rec.Release()
	}
	if err != nil {
		return nil, nil, err
	}
	return out[0], t.has, nil
}

// tape finds a recorded step, or makes one that its first run records.
func (s *Step) tape(e ending, in []*millrace.Tensor) *tape {
	o := s.o
	for i := len(s.tapes) - 1; i >= 0; i-- {
		if t := s.tapes[i]; t.fits(o, e, in) {
			copy(s.tapes[i:], s.tapes[i+1:])
			s.tapes[len(s.tapes)-1] = t
			return t
		}
	}
	return s.newTape(e, in)
}

// newTape makes a recorded step.
func (s *Step) newTape(e ending, in []*millrace.Tensor) *tape {
	o := s.o
	t := &tape{args: slices.Clone(s.others), e: e, sums: o.progress.summed(e)}
	for _, x := range in {
		t.in = append(t.in, kind{x.DType(), x.Shape()})
	}
	for i, p := range o.params {
		t.frozen = append(t.frozen, p.Frozen())
		if t.sums[i] && e.last {
			t.args = append(t.args, p.sum)
		}
		if t.frozen[i] || !e.last {
			t.args = append(t.args, p.Param)
		}
	}
	if o.scaling != nil && !e.last {
		t.args = append(t.args, o.scaling.scale)
	}
	t.rec = millrace.NewRecording(func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return s.recorded(t, sc, in)
	})
	s.tapes = append(s.tapes, t)
	if len(s.tapes) > mostTapes {
		s.tapes[0].rec.Release()
		s.tapes = slices.Delete(s.tapes, 0, 1)
	}
	return t
}

// recorded is the function of a recorded step.
func (s *Step) recorded(t *tape, sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
	o := s.o
	rates, in := in[:len(o.groups)], in[len(o.groups):]
	as := map[*nn.Param]*millrace.Tensor{}
	for i, p := range t.args {
		as[p] = in[i]
	}
	f, err := s.backward(sc, in[len(t.args):], as)
	if err != nil {
		return nil, err
	}
	t.has = which(f.grads)
	x := &pass{o: o, sc: sc, rates: rates, grads: f.grads, ok: f.ok, as: as, held: f.held, sets: f.sets}
	if err := x.finish(t.e, t.sums); err != nil {
		return nil, err
	}
	t.more = x.unset(f.used, t.args)
	if s.random != nil {
		t.more = slices.DeleteFunc(t.more, func(p *nn.Param) bool { return p == s.random.Counter })
	}
	return []*millrace.Tensor{f.loss}, nil
}

// unset lists the parameters that were used, are no arguments and are not set.
func (x *pass) unset(used, args []*nn.Param) []*nn.Param {
	var list []*nn.Param
	for _, p := range used {
		if !slices.Contains(args, p) && !slices.ContainsFunc(x.sets, func(s set) bool { return s.p == p }) {
			list = append(list, p)
		}
	}
	return list
}
