package optim

import (
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/handle"
	"github.com/millrace-go/millrace/nn"
)

// progress is what Go knows of the updates so far. A tensor has it in files.
type progress struct {
	tensor *nn.Param // updates, steps, and for each parameter 1 where sums is set
	stale  bool      // the tensor may have been loaded since

	updates int
	steps   int    // since the last update, of steps that accumulate
	sums    []bool // by parameter: it has had a gradient since the last update
}

// read takes what was loaded.
func (x *progress) read() error {
	if !x.stale {
		return nil
	}
	v, err := millrace.Values[int32](x.tensor.Tensor())
	if err != nil {
		return err
	}
	x.updates, x.steps = int(v[0]), int(v[1])
	x.sums = make([]bool, len(v)-2)
	for i := range x.sums {
		x.sums[i] = v[2+i] != 0
	}
	x.stale = false
	return nil
}

// write has the tensor tell.
func (x *progress) write() {
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
}

// State names the tensors that the optimiser keeps, for [nn.Save] and [nn.Load]: a run
// that goes on from a file has the same bits as one that was never interrupted. Names are
// the optimiser's, what is kept, and the parameter's, as in "optim.exp_avg.0.weight". The
// list is of this moment: ask again for each file. Where there is a [Step] that
// accumulates it is made before State is asked, and parameters are frozen as they were.
func (o *Optimizer) State() []nn.Named {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.begin(); err != nil { // who saves or loads finds it
		return []nn.Named{{Name: o.name, Param: nn.NewBuffer(handle.Fail("state", err, nil).(*millrace.Tensor))}}
	}
	o.progress.write()
	o.progress.stale = true
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
	return list
}
