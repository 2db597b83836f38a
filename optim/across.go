package optim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/nn"
)

// Ranks say how a step works with the other ranks of a World: see [Across]. The zero value suits
// most programs.
type Ranks struct {
	// Leaves is the number of parts of the whole batch, each of which has a pass of its own; 0: one
	// for each rank. It is a multiple of the number of ranks. Results depend on Leaves and not on the
	// number of ranks, bit by bit, if each rank has 1, 2, 4, 8 and so on of them. More leaves are
	// smaller passes, which take longer. At most 65536. A layer that needs two rows in training, such as
	// BatchNorm, needs two in each leaf, also at the end of an epoch: see data.Options.DropLast.
	Leaves int
	// Bucket is how many bytes of gradients are sent at once while the rest of the backward pass
	// runs; 0: 4 MiB, and 1 MiB for the first and for parameters of Sharded. Results do not depend on it.
	Bucket int
	// Wire is the dtype in which gradients are sent and added; Invalid: their own. BFloat16 halves
	// their bytes; gradients of Float64 stay as they are. Each leaf's gradient and each sum of two is
	// rounded, so results depend on Leaves and not on the number of ranks here, too. The error is at
	// most (1+⌈log2 Leaves⌉)/256 of the mean of the absolute values of the leaves' gradients, apart
	// from products of such errors.
	Wire millrace.DType
	// Sharded divides the optimiser's state among the ranks, so that each has a part of about 1/Size
	// (ZeRO 1). A rank updates its part of each parameter, and all gather the results; bits are those
	// without Sharded. Then only sharded steps of this World can update with the optimiser, and
	// [dist.World.Save] writes its state. A rule that computes norms of parameters, LAMB, is
	// millrace.ErrUnsupported. With [ClipNorm], which needs whole gradients, half as many bytes more
	// are sent.
	Sharded bool
	// SameEvery is the number of updates between comparisons of parameters, state and buffers among
	// the ranks, as by [dist.World.Same]. The first one is before the first run. They wait for the
	// updates so far. 0: 100; below 0: never.
	SameEvery int
}

// Across makes each run a step of all ranks of w: its inputs are this rank's rows of the batch, and
// the loss and the update are those of the whole batch. Axis 0 of the inputs counts rows, and all
// have the same number; a 0-d input is the same for all rows. The whole batch consists of
// the ranks' rows in order, divided as data.Options says, so that a [data.Loader] with Part and
// Parts gives the inputs. The function's loss is the mean over its rows.
//
// Each rank computes the gradients of its leaves (see [Ranks]), and all ranks add them up, weighted
// by rows, in one order: the leaves as neighbours in pairs, again and again. Clipping, the loss
// scale and CheckFinite see the sum. Buffers of floats that a pass changes, such as running means,
// get the mean of the leaves' values, weighted by rows; others must be equal on all ranks. Leaf l
// draws its random numbers with a key of its own. A rank may have no rows. If none has any, the
// loss is NaN, gradients are 0, and buffers of floats keep their values. The function makes no calls
// of w: its passes are those of leaves, whose number differs among ranks.
//
// All ranks make the optimiser's steps in one order and with the same options, and run them in the
// same order, also among other calls of w. Parameters, buffers and state are equal at first. The
// first comparison has those buffers that were given to the optimiser, as [nn.Params] does. The
// World's errors are those of the run or of the results. An error of one rank's run ends the World,
// because other ranks wait for this one: it is an error of all.
func Across(w *dist.World, r Ranks) StepOption {
	return func(s *Step) error {
		if w == nil || w.Size() == 0 {
			return errors.New("Across: the World was not made by dist.Open")
		}
		s.ranks = &across{w: w} // the other ranks must hear of bad options
		switch {
		case r.Leaves < 0 || r.Leaves > mostLeaves || r.Leaves%w.Size() != 0:
			return fmt.Errorf("Across: %d leaves cannot be divided among %d ranks", r.Leaves, w.Size())
		case r.Bucket < 0:
			return fmt.Errorf("Across: a bucket cannot have %d bytes", r.Bucket)
		case r.Wire != millrace.Invalid && r.Wire != millrace.BFloat16:
			return fmt.Errorf("%w: Across: gradients cannot be sent in %v, only in their own dtype or bfloat16", millrace.ErrDType, r.Wire)
		}
		r.Leaves = cmp.Or(r.Leaves, w.Size())
		r.SameEvery = cmp.Or(r.SameEvery, usualSame)
		s.ranks = &across{w: w, opt: r, leaves: r.Leaves / w.Size()}
		s.shard = nil
		if r.Sharded {
			s.shard = &shard{world: w, rank: w.Rank(), size: w.Size(), bucket: cmp.Or(r.Bucket, firstBucket)}
		}
		return nil
	}
}

// wire is the dtype in which a gradient of dtype dt is sent.
func (r Ranks) wire(dt millrace.DType) millrace.DType {
	if own := computed(dt); own != millrace.Float32 || r.Wire == millrace.Invalid {
		return own
	}
	return r.Wire
}

const (
	mostLeaves = 1 << 16
	usualSame  = 100 // updates between comparisons
)

// across is the work of a step with other ranks. The caller has the optimiser's turn.
type across struct {
	w      *dist.World
	opt    Ranks
	leaves int // of this rank

	checked int         // updates at the last comparison plus 1; 0: there was none
	buffers []*nn.Param // of floats that passes have changed
	counts  []*nn.Param // other buffers that passes have changed
}

// begin prepares a run: it checks the inputs, and compares the ranks when that is due.
func (a *across) begin(ctx context.Context, s *Step, in []*millrace.Tensor) error {
	if err := a.w.Err(); err != nil {
		return failure("step", err)
	}
	if err := a.check(in); err != nil {
		return err
	}
	n := s.o.progress.updates
	if a.opt.SameEvery < 0 || a.checked == n+1 || a.checked > 0 && n%a.opt.SameEvery != 0 {
		return nil
	}
	list := s.o.Params()
	state, err := s.o.tensors()
	if err != nil {
		return failure("step", err)
	}
	list = append(list, state...)
	if s.random != nil {
		list = append(list, s.random.State()...)
	}
	list = append(list, s.o.buffers...)
	for i, b := range slices.Concat(a.buffers, a.counts) {
		if !slices.ContainsFunc(s.o.buffers, func(n nn.Named) bool { return n.Param == b }) {
			list = append(list, nn.Named{Name: bufferName(i), Param: b})
		}
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if err := a.w.Same(ctx, list...); err != nil {
		return failure("step", err)
	}
	a.checked = n + 1
	return nil
}

// check reports inputs that have no rows to divide.
func (a *across) check(in []*millrace.Tensor) error {
	switch most := 1 << 24 / a.w.Size(); {
	case len(in) == 0:
		return failure("step", fmt.Errorf("%w: a step with Across needs an input, whose axis 0 counts the rows of this rank", millrace.ErrShape))
	case in[0].Rank() == 0:
		return failureOf("step", fmt.Errorf("%w: the first input of a step with Across has no axis 0, which would count the rows of this rank", millrace.ErrShape), in...)
	case in[0].Dim(0) > most: // a float32 holds the sum of all ranks' rows exactly
		return failureOf("step", fmt.Errorf("%w: a step with Across of %d ranks takes at most %d rows of each", millrace.ErrShape, a.w.Size(), most), in...)
	}
	for i, t := range in {
		if t.Rank() > 0 && t.Dim(0) != in[0].Dim(0) {
			return failureOf("step", fmt.Errorf("%w: input %d of a step with Across has %d rows, and input 0 has %d; an input for all rows is 0-d", millrace.ErrShape, i, t.Dim(0), in[0].Dim(0)), in...)
		}
	}
	return nil
}

// fail tells the other ranks of an error, unless all have it.
func (a *across) fail(err error) {
	if !errors.Is(err, dist.ErrMismatch) {
		a.w.Fail(err)
	}
}
