package autotune

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// trialBuffer is the memory of operands that share it.
type trialBuffer struct {
	bytes    int64
	dt       ir.DType // of the first of them
	seed     uint64   // differs between buffers, so that exchanged operands give other results
	in, out  bool
	mem      runtime.Buffer
	elements int64
	values   []byte // the values of one piece; nil until they are made up
}

// maxTrialBytes limits the memory of a trial in the background, maxWaitedBytes that of a trial
// for which the program waits.
const (
	maxTrialBytes  = 256 << 20
	maxWaitedBytes = 2 << 30
)

var (
	ErrTrialSize = errors.New("its operands take too much memory")
	errYielded   = errors.New("the trial released its memory")
)

// bytes returns the memory that a trial needs, on the device and for copies of results.
func (t *Trial) bytes() (device, host int64) {
	for i := range t.bufs {
		device += t.bufs[i].bytes
		if t.bufs[i].out {
			host += t.bufs[i].bytes
		}
	}
	return device, host
}

// room says why a trial may not have its memory. A trial must fit beside the program's live memory
// under the memory limit: for a trial, nothing is collected or freed.
func (t *Trial) room() error {
	own, copies := t.bytes()
	most, limit := int64(maxTrialBytes), t.X.Opts.MemoryLimit
	if t.X.Opts.Tune == device.TuneWait {
		most = maxWaitedBytes
	}
	if limit > 0 {
		most = min(most, limit/4)
	}
	if own+copies > most {
		return fmt.Errorf("%w: they take %d bytes, the limit is %d", ErrTrialSize, own+copies, most)
	}
	if live := t.X.Driver.Stats().AllocBytes; limit > 0 && live+own > limit {
		return fmt.Errorf("%w: they take %d bytes, and %d of %d are in use", ErrTrialSize, own, live, limit)
	}
	return nil
}

// take gives the trial its memory, unless it has it, and fills it.
func (t *Trial) take() error {
	x := t.X
	if _, err := x.pace(t); err != nil {
		return err
	}
	if err := t.hold(x); err != nil || t.ready {
		return err
	}
	for i := range t.bufs {
		if err := t.fill(&t.bufs[i]); err != nil {
			return err
		}
	}
	t.ready = true
	return nil
}

func (t *Trial) hold(x *Tuner) error {
	x.Turn.Lock()
	defer x.Turn.Unlock()
	if t.held {
		return nil
	}
	if x.Opts.Tune != device.TuneWait && x.waiting.Load() == 0 && !x.calm() {
		return errYielded // the program lacked memory meanwhile and may not have enough yet
	}
	t.ready = false
	if err := t.room(); err != nil {
		return err
	}
	t.held = true
	x.Holders[t] = true
	for i := range t.bufs {
		b := &t.bufs[i]
		var err error
		if b.mem, err = t.X.Driver.Alloc(b.bytes); err != nil {
			x.drop(t)
			return err
		}
		b.elements = b.bytes / int64(t.X.Caps.ElemSize[b.dt])
	}
	for i, b := range t.where {
		if b >= 0 {
			t.l.Args[i].Buf = t.bufs[b].mem
		}
	}
	return nil
}

// drop frees a trial's memory. The caller holds Turn.
func (x *Tuner) drop(t *Trial) {
	for i := range t.bufs {
		if m := t.bufs[i].mem; m != nil {
			t.X.Driver.Free(m)
			t.bufs[i].mem = nil
		}
	}
	t.held = false
	delete(x.Holders, t)
}

func (x *Tuner) giveBack(t *Trial) {
	x.Turn.Lock()
	defer x.Turn.Unlock()
	x.drop(t)
}

// Yield frees the memory of all trials for a program that lacks memory, and reports whether there
// was any. It waits for the end of a run that is being timed.
func (x *Tuner) Yield() bool {
	x.Turn.Lock()
	defer x.Turn.Unlock()
	some := len(x.Holders) > 0
	for t := range x.Holders {
		x.drop(t)
	}
	if some {
		x.yielded.Store(time.Now().UnixNano())
	}
	return some
}

// calm reports that the program has not lacked memory for tuneHold.
func (x *Tuner) calm() bool { return time.Since(time.Unix(0, x.yielded.Load())) > tuneHold }

// PieceElements are written or read at a time. The number is odd: an element that is a power of
// two elements away from its place then has a wrong value.
const PieceElements = 1<<18 - 5

// fill writes made-up values, the same ones each time: floats between 0 and 1, a few of them
// negative, and small integers. If the launch has indices, the integers are indices in range.
func (t *Trial) fill(b *trialBuffer) error {
	if b.values == nil {
		if err := t.step(func() (time.Duration, error) { b.values = t.madeUp(b); return 0, nil }); err != nil {
			return err
		}
	}
	return t.pieces(b, b.values, func(at int64, data []byte) error {
		return t.X.Driver.Write(b.mem, b.dt, at, data)
	})
}

func (t *Trial) madeUp(b *trialBuffer) []byte {
	rng := rand.New(rand.NewPCG(1+b.seed, uint64(b.dt)))
	n := min(b.elements, PieceElements)
	values := ir.NewDense(ir.TensorType{DT: b.dt, Shape: ir.Shape{int(n)}})
	for i := range int(n) {
		x := rng.Float64()
		if int64(i) < n/16 {
			x -= 0.5
		}
		switch {
		case b.dt == ir.Bool:
			values.Set(i, uint64(rng.IntN(2)))
		case b.dt.IsFloat():
			values.Set(i, ir.FloatBits(b.dt, x))
		default:
			values.Set(i, uint64(rng.Int64N(t.below)))
		}
	}
	return values.Data
}

// piece returns host memory for one piece of a buffer.
func (b *trialBuffer) piece() []byte {
	return make([]byte, min(PieceElements, b.elements)*int64(b.dt.Size()))
}

// pieces calls f for each piece of a buffer, as one step each.
func (t *Trial) pieces(b *trialBuffer, data []byte, f func(at int64, data []byte) error) error {
	for at := int64(0); at < b.elements; at += PieceElements {
		n := min(PieceElements, b.elements-at)
		if err := t.step(func() (time.Duration, error) { return 0, f(at, data[:n*int64(b.dt.Size())]) }); err != nil {
			return err
		}
	}
	return nil
}

// restore rewrites the memory that a run both reads and writes; with outputs also memory that it
// only writes.
func (t *Trial) restore(outputs bool) error {
	for i := range t.bufs {
		if b := &t.bufs[i]; b.out && (b.in || outputs) {
			if err := t.fill(b); err != nil {
				return err
			}
		}
	}
	return nil
}
