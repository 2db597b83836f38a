package optim

import (
	"fmt"
	"slices"
	"sync"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/millrace-go/millrace/nn"
)

// progress is the host's copy of the counts of updates; a tensor holds them in files. Only the
// caller with the turn changes progress; the lock is for readers without the turn.
type progress struct {
	tensor *nn.Param // updates, steps, and for each parameter 1 if sums is set

	mu      sync.Mutex // held without calling functions of the program
	told    any        // the tensor's value when it last agreed with this copy
	updates int
	steps   int    // steps since the last update, of steps that accumulate
	of      int    // how many steps make an update; 0: unknown, after a load
	sums    []bool // by parameter: it has had a gradient since the last update
}

func (x *progress) begin(at millrace.Place, params int) {
	x.tensor = nn.NewBuffer(zeros(at, millrace.Int32, 2+params))
	x.sums = make([]bool, params)
	x.told = hostapi.Value(x.tensor.Tensor())
}

// loaded reports whether the tensor got another value since it was written or read.
func (x *progress) loaded() bool { return hostapi.Value(x.tensor.Tensor()) != x.told }

// read takes over loaded values.
func (x *progress) read() error {
	if !x.loaded() { // only the caller with the turn changes the compared values
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	told := hostapi.Value(x.tensor.Tensor())
	v, err := millrace.Values[int32](x.tensor.Tensor())
	if err != nil {
		return err
	}
	x.updates, x.steps, x.of = int(v[0]), int(v[1]), 0
	for i := range x.sums {
		x.sums[i] = v[2+i] != 0
	}
	x.told = told
	return nil
}

// count returns the number of updates, for callers without the turn.
func (x *progress) count() (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.loaded() {
		return x.updates, nil
	}
	v, err := millrace.Values[int32](x.tensor.Tensor())
	if err != nil {
		return 0, err
	}
	return int(v[0]), nil
}

// ending says how the next run of a step uses its gradients; steps is the number of runs for each
// update.
func (x *progress) ending(steps int) (ending, error) {
	of := x.of
	if of == 0 {
		of = max(steps, x.steps+1)
	}
	if steps > 1 && x.steps > 0 && steps != of {
		return ending{}, failure("step", fmt.Errorf("Accumulate(%d), but another step has done %d of %d parts of an update: finish the update with that step", steps, x.steps, of))
	}
	return ending{last: steps == 1 || x.steps >= steps-1, steps: steps}, nil
}

// summed lists the parameters with gradient sums that such an ending reads or adds to.
func (x *progress) summed(e ending) []bool {
	if e.steps > 1 {
		return slices.Clone(x.sums)
	}
	return make([]bool, len(x.sums))
}

// after notes an update, or an addition to the gradient sums.
func (x *progress) after(e ending, has []bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e.last {
		x.updates++
	}
	switch {
	case e.steps <= 1: // the sums belong to other steps
		return
	case e.last:
		x.steps = 0
		clear(x.sums)
		return
	}
	x.steps++
	x.of = e.steps
	for i, is := range has {
		x.sums[i] = x.sums[i] || is
	}
}

// updated notes an update by gradients that the caller computed.
func (x *progress) updated() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.updates++
}

// write writes the counts to the tensor.
func (x *progress) write() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	v := make([]int32, 2+len(x.sums))
	v[0], v[1] = int32(x.updates), int32(x.steps)
	for i, set := range x.sums {
		if set {
			v[2+i] = 1
		}
	}
	t := x.tensor.Tensor()
	now := millrace.FromSliceOn(t.Stream(), v)
	t.Set(now)
	now.Release()
	x.told = hostapi.Value(t)
	// A Recording around this call must not replay it. Reading a value makes that impossible.
	return t.Eval()
}

// State names the tensors of the optimiser, for [nn.Save] and [nn.Load]. A run that continues from
// a file has the bits of an uninterrupted run. A name consists of the optimiser's name, the kind of
// state and the parameter's name, as in "optim.exp_avg.0.weight". The list is valid for this moment
// only: call State for each file. Before loading, make any [Step] that accumulates, and freeze the
// same parameters as in the saved run. After a step with [Ranks].Sharded, state is this rank's part,
// which only dist.World.Save can save. State waits for a running step. In a [Step]'s function it is
// an error, and so are nn.Save and nn.Load with the optimiser.
func (o *Optimizer) State() []nn.Named {
	list, err := o.state()
	if err != nil { // the caller that saves or loads finds the error
		name := "optim"
		if o != nil && o.name != "" {
			name = o.name
		}
		return []nn.Named{{Name: name, Param: nn.NewBuffer(hostapi.Fail("state", err, nil).(*millrace.Tensor))}}
	}
	return list
}

func (o *Optimizer) state() ([]nn.Named, error) {
	if err := o.check("state"); err != nil {
		return nil, err
	}
	if err := o.turn.take(nil, "state"); err != nil {
		return nil, err
	}
	defer o.turn.give()
	if err := o.begin(); err != nil {
		return nil, err
	}
	return o.tensors()
}

// tensors is State for the caller with the turn.
func (o *Optimizer) tensors() ([]nn.Named, error) {
	if err := o.progress.write(); err != nil {
		return nil, err
	}
	list := []nn.Named{{Name: o.name + ".progress", Param: o.progress.tensor}}
	if o.counts != nil {
		list = append(list, nn.Named{Name: o.name + ".step", Param: o.counts})
	}
	if x := o.scaling; x != nil {
		list = append(list, nn.Named{Name: o.name + ".scale", Param: x.scale}, nn.Named{Name: o.name + ".good_steps", Param: x.good})
	}
	for _, p := range o.params {
		for i, s := range p.state {
			list = append(list, nn.Named{Name: o.name + "." + p.names[i] + "." + p.Name, Param: s})
		}
		if p.sum != nil {
			list = append(list, nn.Named{Name: o.name + ".grad." + p.Name, Param: p.sum})
		}
	}
	return list, nil
}

// held is the turn that nn.Save and nn.Load hold.
type held struct{ o *Optimizer }

func (h held) Order() uint64 { return h.o.number }

// Hold stops the optimiser between two updates and brings its tensors up to date.
func (h held) Hold() error {
	if err := h.o.turn.take(nil, "state"); err != nil {
		return err
	}
	err := h.o.progress.write()
	if err != nil {
		h.o.turn.give()
	}
	return err
}

func (h held) Free() { h.o.turn.give() }
