package stream

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// trial is a launch to be timed: on the sizes and strides that the program has,
// in memory of its own and on made-up values. Where operands of the program share
// memory, so do the trial's.
type trial struct {
	dev    *Device
	tuning *tuning
	list   []runtime.Choice
	l      runtime.Launch
	bufs   []trialBuffer
	where  []int // of its operands, the buffer; -1 for none
	tol    ir.Tolerance
	below  int64 // integers are from zero to below this

	dearest   time.Duration // step so far
	patience  time.Duration // waited for other streams: see pace
	disturbed bool          // one of them ran meanwhile

	held  bool     // it has its memory; under the tuner's turn
	ready bool     // which is filled
	want  [][]byte // what the default wrote, by buffer
}

// trial copies what it must know of a bound launch. The memory of the program is
// not held.
func (x *tuner) trial(u *unit, ent *entry, geo *geometry, bound *runtime.Launch) *trial {
	t := &trial{dev: x.dev, tuning: u.tuning, list: u.list, l: cloneLaunches([]runtime.Launch{*bound})[0], below: 100}
	at := map[runtime.Buffer]int{}
	step := &ent.plan.Steps[u.at]
	for _, n := range step.Nodes {
		t.tol = looser(t.tol, &geo.seg.Nodes[n])
	}
	for i := range t.l.Args {
		a, o := &t.l.Args[i], &step.Kernel.Operands[i]
		t.where = append(t.where, -1)
		if a.IndexSize > 0 {
			t.below = min(t.below, a.IndexSize)
		}
		if a.Buf == nil {
			continue
		}
		b, ok := at[a.Buf]
		if !ok {
			b = len(t.bufs)
			at[a.Buf] = b
			t.bufs = append(t.bufs, trialBuffer{bytes: a.Buf.Bytes(), dt: o.DT, seed: uint64(b)})
		}
		t.where[i] = b
		t.bufs[b].out = t.bufs[b].out || o.Kind == codegen.Output
		t.bufs[b].in = t.bufs[b].in || o.Kind == codegen.Input
		a.Buf = nil
	}
	return t
}

// measure runs a trial.
func (x *tuner) measure(t *trial) (table *autotune.Table, err error) {
	defer recoverBug("tune", &err)
	defer x.giveBack(t)
	s := autotune.Subject{
		Names: namesOf(t.list),
		Check: func(i int) (time.Duration, error) { return t.whole(i, t.check) },
		Run:   func(i int) (time.Duration, error) { return t.whole(i, t.run) },
		Told:  func(e autotune.Event) { x.told(t.tuning, e) },
		Spent: x.overBudget,
	}
	if x.dev.opts.Tune != TuneWait {
		s.Longest = tuneLongest
		if t.dearest = t.least(); t.dearest > s.Longest { // without touching any memory
			table = autotune.NewTable(s.Names)
			table.TooLong(t.dearest)
			return table, nil
		}
	}
	return autotune.Measure(s)
}

// least is how long a run takes at the least: what it moves, by the device's own
// bandwidth.
func (t *trial) least() time.Duration {
	if t.dev.caps.Bandwidth == 0 {
		return 0
	}
	points, moved := 1.0, 0.0
	for _, n := range t.l.Dims[:t.l.Rank] {
		points *= float64(n)
	}
	for _, b := range t.where {
		if b >= 0 {
			moved += min(float64(t.bufs[b].bytes), points*float64(t.dev.caps.ElemSize[t.bufs[b].dt]))
		}
	}
	return time.Duration(moved / t.dev.caps.Bandwidth * float64(time.Second))
}

// whole runs or checks a candidate, which needs the trial's memory, and does so
// again where the memory was given back meanwhile.
func (t *trial) whole(i int, f func(runtime.Tuner, int) (time.Duration, error)) (took time.Duration, err error) {
	for {
		if err = t.take(); err == nil {
			took, err = f(t.dev.tune.drv, i)
		}
		if !errors.Is(err, errYielded) {
			return took, err
		}
	}
}

// step does one thing on the device, when it is the tuner's turn: a run, or a
// piece of a transfer. f says how long the device took, where that is not all of the time.
// Between steps the trial may lose its memory.
func (t *trial) step(f func() (time.Duration, error)) error {
	x := &t.dev.tune
	rationed, err := x.pace(t)
	if err != nil {
		return err
	}
	x.turn.Lock()
	defer x.turn.Unlock()
	if !t.held {
		return errYielded
	}
	begin := time.Now()
	cost, err := f()
	if wall := time.Since(begin); cost == 0 || x.dev.opts.Tune == TuneWait { // whoever waits does so for compilers, too
		cost = wall
	}
	x.spent.Add(int64(cost))
	t.dearest = max(t.dearest, cost)
	if rationed {
		x.ration.saved -= cost
		x.taken.Add(int64(cost))
	}
	return err
}

// try runs a candidate once. What it waits for first, the program's own run,
// takes nothing from the program.
func (t *trial) try(drv runtime.Tuner, i int) (took time.Duration, err error) {
	err = t.step(func() (time.Duration, error) {
		t.l.Choice = t.list[i].Code
		took, err = drv.Try(&t.l)
		return took, err
	})
	return took, err
}

// run times one run of a candidate.
func (t *trial) run(drv runtime.Tuner, i int) (time.Duration, error) {
	if err := t.restore(false); err != nil {
		return 0, err
	}
	return t.try(drv, i)
}

var errOtherResults = errors.New("other results than the default's")

// check runs a candidate on memory that is as it was for the default, and
// compares all that was written.
func (t *trial) check(drv runtime.Tuner, i int) (took time.Duration, err error) {
	if err := t.restore(true); err != nil {
		return 0, err
	}
	if took, err = t.try(drv, i); err != nil {
		return 0, err
	}
	if i == 0 {
		t.want = make([][]byte, len(t.bufs))
	}
	for n := range t.bufs {
		b := &t.bufs[n]
		if !b.out {
			continue
		}
		if err := t.pieces(b, b.piece(), func(at int64, data []byte) error {
			if err := t.dev.drv.Read(data, b.dt, b.mem, at); err != nil {
				return err
			}
			if i == 0 {
				t.want[n] = append(t.want[n], data...)
				return nil
			}
			return t.compare(b.dt, at, data, t.want[n])
		}); err != nil {
			return 0, err
		}
	}
	return took, nil
}

func dense(dt ir.DType, data []byte) ir.Dense {
	return ir.Dense{TensorType: ir.TensorType{DT: dt, Shape: ir.Shape{len(data) / dt.Size()}}, Data: data}
}

// compare looks at the piece that begins at an element. NaNs are equal, whichever
// they are.
func (t *trial) compare(dt ir.DType, at int64, data, want []byte) error {
	piece := want[at*int64(dt.Size()):][:len(data)]
	if bytes.Equal(data, piece) {
		return nil
	}
	x, y := dense(dt, data), dense(dt, piece)
	for i := range x.Shape[0] {
		if g, w := x.At(i), y.At(i); !ir.SameValue(dt, g, w) && (t.dev.caps.Exact || !near(dt, g, w, t.tol)) {
			return fmt.Errorf("%w: element %d is %s, not %s", errOtherResults, at+int64(i), ir.FormatBits(dt, g), ir.FormatBits(dt, w))
		}
	}
	return nil
}
