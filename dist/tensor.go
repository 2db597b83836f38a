package dist

import (
	"errors"
	"fmt"
	"sync"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/distapi"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/millrace-go/millrace/internal/operror"
)

// AllReduce is the sum of all ranks' t, on all ranks. All have one shape and dtype, which is not
// bool. The parts are added in pairs of neighbours, in an order that depends on the number of ranks
// only: ((t0+t1)+(t2+t3))+t4. float16 and bfloat16 are added in float32 and rounded once.
//
// The derivative is the sum of all ranks' derivatives.
//
// Like the other collectives of tensors, it is recorded and does not wait: other work of the program
// goes on, and whatever reads the result waits for all ranks. A Recording repeats it in each run,
// bound or not. Each rank sends and receives about twice the bytes of t.
//
// The result carries t's error, which also ends the World, as other ranks cannot go on; ErrDType for
// bool; and a [*RankError] or ErrMismatch if the World failed. A call that is wrong on some ranks
// only ends the World with ErrMismatch; where all ranks make the same mistake, the World goes on.
func (w *World) AllReduce(t *millrace.Tensor) *millrace.Tensor {
	return custom(t, w.allReduce, w.AllReduce)
}

// ReduceScatter is this rank's part of the sum of all ranks' t, along axis 0: of n rows, rank r has
// rows r·n/Size to (r+1)·n/Size. n that is not a multiple of Size is ErrShape. The order and errors
// are those of [World.AllReduce], at half its bytes. The derivative is AllGather's.
func (w *World) ReduceScatter(t *millrace.Tensor) *millrace.Tensor {
	return custom(t, w.reduceScatter, w.AllGather)
}

// AllGather is all ranks' t, concatenated along axis 0 in the order of ranks. All have one shape,
// of at least one axis, and one dtype. Errors are those of [World.AllReduce]. The derivative is
// ReduceScatter's.
func (w *World) AllGather(t *millrace.Tensor) *millrace.Tensor {
	return custom(t, w.allGather, w.ReduceScatter)
}

// AllToAll divides t along axis 0 into a part for each rank, and is the parts that this rank
// receives, in the order of ranks. The number of rows is a multiple of Size, else it is ErrShape.
// Other errors are those of [World.AllReduce]. The derivative is AllToAll's.
func (w *World) AllToAll(t *millrace.Tensor) *millrace.Tensor {
	return custom(t, w.allToAll, w.AllToAll)
}

// Broadcast is rank root's t on all ranks. All have a t of one shape and dtype. Errors are those of
// [World.AllReduce], and ErrIndex for a root that is no rank. The derivative is the sum of all
// ranks' derivatives on root, and zeros on the others.
func (w *World) Broadcast(t *millrace.Tensor, root int) *millrace.Tensor {
	forward := func(t *millrace.Tensor) *millrace.Tensor { return w.broadcastTensor(t, root) }
	return custom(t, forward, func(d *millrace.Tensor) *millrace.Tensor {
		sum := w.AllReduce(d)
		if w.info.Rank == root || sum.Err() != nil {
			return sum
		}
		return millrace.ZerosOn(sum.Stream(), sum.DType(), sum.Shape()...)
	})
}

// custom is an op with a derivative.
func custom(t *millrace.Tensor, forward, backward func(*millrace.Tensor) *millrace.Tensor) *millrace.Tensor {
	return autodiff.Custom(
		func(in []*millrace.Tensor) []*millrace.Tensor { return []*millrace.Tensor{forward(in[0])} },
		func(_, _, d []*millrace.Tensor) []*millrace.Tensor { return []*millrace.Tensor{backward(d[0])} },
		t)[0]
}

func (w *World) allReduce(t *millrace.Tensor) *millrace.Tensor {
	dt := t.DType() // t may be released before the call runs
	return w.collective("allreduce", t, checkSum(dt), t.Shape(), func(dst, src []byte) error { return w.sum(summing{dt: dt}, dst, src) })
}

// hooked guards the functions of package distapi. A sync.OnceFunc would be linked to every program
// that imports package optim.
var hooked sync.Once

func hook() {
	distapi.AllReduce = func(world any, name string, lines []string, tensor any) any {
		w, t := world.(*World), tensor.(*millrace.Tensor)
		dt := t.DType()
		return w.planned(plan{name, lines}, t, checkSum(dt), t.Shape(), func(dst, src []byte) error { return w.sum(stepSum(dt), dst, src) })
	}
	distapi.ReduceScatter = func(world any, name string, lines []string, tensor any) any {
		w, t := world.(*World), tensor.(*millrace.Tensor)
		return w.scatter(plan{name, lines}, t, stepSum(t.DType()))
	}
	distapi.AllGather = func(world any, name string, lines []string, tensor any) any {
		return world.(*World).gathered(plan{name, lines}, tensor.(*millrace.Tensor))
	}
}

func (w *World) reduceScatter(t *millrace.Tensor) *millrace.Tensor {
	return w.scatter(plan{"reducescatter", []string{form(t)}}, t, summing{dt: t.DType()})
}

func (w *World) scatter(p plan, t *millrace.Tensor, add summing) *millrace.Tensor {
	bad := checkSum(t.DType())
	shape, err := w.part(t)
	if bad == nil {
		bad = err
	}
	return w.planned(p, t, bad, shape, func(dst, src []byte) error {
		if w.info.Size == 1 {
			copy(dst, src)
			return nil
		}
		return w.sumPart(add, dst, src, w.equal(len(dst)))
	})
}

func (w *World) allGather(t *millrace.Tensor) *millrace.Tensor {
	return w.gathered(plan{"allgather", []string{form(t)}}, t)
}

func (w *World) gathered(p plan, t *millrace.Tensor) *millrace.Tensor {
	shape, bad := append([]int(nil), t.Shape()...), error(nil)
	if len(shape) == 0 {
		bad = fmt.Errorf("%w: a 0-d tensor has no axis 0", millrace.ErrShape)
	} else {
		shape[0] *= w.info.Size
	}
	return w.planned(p, t, bad, shape, func(dst, src []byte) error { return w.gatherInto(dst, src, w.equal(len(src))) })
}

func (w *World) allToAll(t *millrace.Tensor) *millrace.Tensor {
	_, bad := w.part(t)
	return w.collective("alltoall", t, bad, t.Shape(), func(dst, src []byte) error {
		at, own := w.equal(len(src)/w.info.Size), w.info.Rank
		copy(dst[at[own]:at[own+1]], src[at[own]:at[own+1]])
		return w.exchange(dst, src, at, at).wait()
	})
}

func (w *World) broadcastTensor(t *millrace.Tensor, root int) *millrace.Tensor {
	var bad error
	if root < 0 || root >= w.info.Size {
		bad = fmt.Errorf("%w: rank %d of %d", millrace.ErrIndex, root, w.info.Size)
	}
	return w.collective(fmt.Sprintf("broadcast from rank %d", root), t, bad, t.Shape(), func(dst, src []byte) error {
		copy(dst, src)
		return w.broadcast(dst, root)
	})
}

// part is the shape of one rank's part of a tensor.
func (w *World) part(t *millrace.Tensor) ([]int, error) {
	shape := append([]int(nil), t.Shape()...)
	if len(shape) == 0 || shape[0]%w.info.Size != 0 {
		return shape, fmt.Errorf("%w: axis 0 of %v cannot be divided among %d ranks", millrace.ErrShape, shape, w.info.Size)
	}
	shape[0] /= w.info.Size
	return shape, nil
}

// equal is the offsets of parts of equal size.
func (w *World) equal(size int) []int {
	at := make([]int, w.info.Size+1)
	for r := range at {
		at[r] = r * size
	}
	return at
}

// collective is planned for a call on one tensor.
func (w *World) collective(op string, t *millrace.Tensor, bad error, shape []int, run func(dst, src []byte) error) *millrace.Tensor {
	return w.planned(plan{op, []string{form(t)}}, t, bad, shape, run)
}

// planned records a call on a tensor's bytes. bad is a mistake that this rank alone can see. Such a call
// only compares the plans, so that it takes its place in the order: the mistake is a line of the
// plan, and ranks that make the same one go on.
func (w *World) planned(p plan, t *millrace.Tensor, bad error, shape []int, run func(dst, src []byte) error) *millrace.Tensor {
	own := t.Err()
	if errors.Is(own, operror.ErrNoValue) {
		bad, own = operror.ErrNoValue, nil
	}
	switch {
	case own != nil:
		bad = nil                                        // the result has the operand's
		w.begin(&call{plan: plan{op: p.op}, fault: own}) // the other ranks must hear of it
	case bad != nil:
		w.begin(&call{plan: plan{p.op, append([]string{"a mistake: " + bad.Error()}, p.tensors...)}})
	default:
		bad = w.Err()
	}
	if bad != nil || own != nil {
		return hostapi.Fail(p.op, bad, []any{t}).(*millrace.Tensor)
	}
	begin := func() func(dst, src []byte, fault error) error {
		c := &call{plan: p}
		w.post(c)
		return func(dst, src []byte, fault error) error {
			c.fault, c.run = fault, func() error { return run(dst, src) }
			err := w.perform(c)
			if err != nil && !c.began {
				err = &operror.Untouched{Err: err}
			}
			return err
		}
	}
	return hostapi.HostOp(w.hostLane(t.Stream().Device()), p.op, t, t.DType(), shape, begin).(*millrace.Tensor)
}

// hostLane is the lane for the tensors of a device.
func (w *World) hostLane(d *millrace.Device) any {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hosts == nil {
		w.hosts = map[millrace.Device]any{}
	}
	if w.hosts[*d] == nil {
		w.hosts[*d] = hostapi.HostLane(d)
	}
	return w.hosts[*d]
}

// form is a tensor's line in a plan.
func form(t *millrace.Tensor) string { return fmt.Sprintf("%v %v", t.DType(), t.Shape()) }
