package optim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// tape is a step as it was recorded for some inputs.
type tape struct {
	key string
	rec *millrace.Recording
	has []bool // which parameters had gradients

	// args are what the step uses and does not set, such as frozen weights, those of another
	// optimiser, and all weights where gradients are only added up: a Recording would keep
	// what they were when it was made.
	args []*nn.Param
	more []*nn.Param // of those, what it turned out to use when it was recorded
}

// mostTapes is how many are kept.
const mostTapes = 32

// replay is a run that is recorded, or was before.
func (s *Step) replay(e ending, in []*millrace.Tensor) (loss *millrace.Tensor, has []bool, err error) {
	args, err := s.o.rates()
	if err != nil {
		return nil, nil, err
	}
	t := s.tape(s.key(e, in), e)
	for _, p := range t.args {
		args = append(args, p.Tensor())
	}
	out, err := t.rec.Run(s.on, append(args, in...), nil)
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

// key is what a recorded step depends on.
func (s *Step) key(e ending, in []*millrace.Tensor) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v %s ", e, bits(s.o.progress.sums))
	for _, p := range s.o.params {
		if p.Frozen() {
			b.WriteByte('f')
		} else {
			b.WriteByte('.')
		}
	}
	for _, t := range in {
		fmt.Fprintf(&b, " %v%v", t.DType(), t.Shape())
	}
	return b.String()
}

// tape finds a recorded step, or makes one that is recorded by its first run.
func (s *Step) tape(key string, e ending) *tape {
	for i, t := range s.tapes {
		if t.key == key {
			copy(s.tapes[i:], s.tapes[i+1:])
			s.tapes[len(s.tapes)-1] = t
			return t
		}
	}
	o := s.o
	t := &tape{key: key, args: slices.Clone(s.others)}
	sums := slices.Clone(o.progress.sums)
	for i, p := range o.params {
		if sums[i] && e.last {
			t.args = append(t.args, p.sum)
		}
		if p.Frozen() || !e.last {
			t.args = append(t.args, p.Param)
		}
	}
	if o.scaling != nil && !e.last {
		t.args = append(t.args, o.scaling.scale)
	}
	t.rec = millrace.NewRecording(func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return s.recorded(t, e, sums, sc, in)
	})
	s.tapes = append(s.tapes, t)
	if len(s.tapes) > mostTapes {
		s.tapes[0].rec.Release()
		s.tapes = slices.Delete(s.tapes, 0, 1)
	}
	return t
}

// recorded is the function of a recorded step.
func (s *Step) recorded(t *tape, e ending, sums []bool, sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
	o := s.o
	rates, in := in[:len(o.groups)], in[len(o.groups):]
	as := map[*nn.Param]*millrace.Tensor{}
	for i, p := range t.args {
		as[p] = in[i]
	}
	f, err := s.backward(sc, in[len(t.args):], as, false)
	if err != nil {
		return nil, err
	}
	t.has = which(f.grads)
	x := &pass{o: o, sc: sc, rates: rates, grads: f.grads, ok: f.ok, as: as}
	if err := x.finish(e, sums); err != nil {
		return nil, err
	}
	t.more = x.unset(f.used, t.args)
	if s.random != nil {
		t.more = slices.DeleteFunc(t.more, func(p *nn.Param) bool { return p == s.random.Counter })
	}
	return []*millrace.Tensor{f.loss}, nil
}

// unset are those that were used, are no arguments and are not set.
func (x *pass) unset(used, args []*nn.Param) []*nn.Param {
	var list []*nn.Param
	for _, p := range used {
		if !slices.Contains(args, p) && !slices.ContainsFunc(x.sets, func(s set) bool { return s.p == p }) {
			list = append(list, p)
		}
	}
	return list
}
