package autotune

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Trial is a launch to be timed. It has the sizes and strides of the program's launch, but its own
// memory and made-up values. Where operands of the program share memory, those of the trial do,
// too.
type Trial struct {
	X      *Tuner
	tuning *Tuning
	list   []runtime.Choice
	l      runtime.Launch
	bufs   []trialBuffer
	where  []int // by operand: its buffer, -1 for none
	Tol    ir.Tolerance
	below  int64 // integer values are from 0 to below-1

	longest   time.Duration // cost of the longest step so far
	patience  time.Duration // time spent waiting for other streams: see pace
	disturbed bool          // another stream ran meanwhile

	held  bool     // the trial has its memory; guarded by the tuner's Turn
	ready bool     // the memory is filled
	want  [][]byte // by buffer: the results of the default
}

// trial copies what a Trial needs from a bound launch. It does not keep the program's memory
// alive.
func (x *Tuner) trial(u *Unit, of Plan, bound *runtime.Launch) *Trial {
	t := &Trial{X: x, tuning: u.Tuning, list: u.list, l: cloneLaunch(bound), below: 100}
	at := map[runtime.Buffer]int{}
	step := &of.Steps[u.at]
	for _, n := range step.Nodes {
		t.Tol = t.Tol.Plus(&of.Nodes[n])
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
func (x *Tuner) measure(t *Trial) (table *Table, err error) {
	defer operror.Recover("tune", &err)
	defer x.giveBack(t)
	s := Subject{
		Names: namesOf(t.list),
		Check: func(i int) (time.Duration, error) { return t.whole(i, t.check) },
		Run:   func(i int) (time.Duration, error) { return t.whole(i, t.run) },
		Told:  func(e Event) { x.told(t.tuning, e) },
		Spent: x.overBudget,
	}
	if x.Opts.Tune != device.TuneWait {
		s.Longest = Longest
		if t.longest = t.least(); t.longest > s.Longest { // known too long before any memory is allocated
			table = NewTable(s.Names)
			table.TooLong(t.longest)
			return table, nil
		}
	}
	return Measure(s)
}

// least is the shortest possible time of a run: the bytes it moves at the device's bandwidth.
func (t *Trial) least() time.Duration {
	if t.X.Caps.Bandwidth == 0 {
		return 0
	}
	points, moved := 1.0, 0.0
	for _, n := range t.l.Dims[:t.l.Rank] {
		points *= float64(n)
	}
	for _, b := range t.where {
		if b >= 0 {
			moved += min(float64(t.bufs[b].bytes), points*float64(t.X.Caps.ElemSize[t.bufs[b].dt]))
		}
	}
	return time.Duration(moved / t.X.Caps.Bandwidth * float64(time.Second))
}

// whole runs or checks a candidate. It gives the trial its memory first, and starts again if the
// memory was given back meanwhile.
func (t *Trial) whole(i int, f func(runtime.Tuner, int) (time.Duration, error)) (took time.Duration, err error) {
	for {
		if err = t.take(); err == nil {
			took, err = f(t.X.ways, i)
		}
		if !errors.Is(err, errYielded) {
			return took, err
		}
	}
}

// step does one thing on the device when it is the tuner's turn: a run, or one piece of a
// transfer. f returns the device's time, or 0 for all of the time. Between steps the trial may
// lose its memory.
func (t *Trial) step(f func() (time.Duration, error)) error {
	x := t.X
	rationed, err := x.pace(t)
	if err != nil {
		return err
	}
	x.Turn.Lock()
	defer x.Turn.Unlock()
	if !t.held {
		return errYielded
	}
	begin := time.Now()
	cost, err := f()
	if wall := time.Since(begin); cost == 0 || x.Opts.Tune == device.TuneWait { // a waiting program also waits for compilers
		cost = wall
	}
	x.Spent.Add(int64(cost))
	t.longest = max(t.longest, cost)
	if rationed {
		x.ration.Saved -= cost
		x.Taken.Add(int64(cost))
	}
	return err
}

// try runs a candidate once. The time until the program's own run ends, for which try waits first,
// is not counted as taken from the program.
func (t *Trial) try(drv runtime.Tuner, i int) (took time.Duration, err error) {
	err = t.step(func() (time.Duration, error) {
		t.l.Choice = t.list[i].Code
		took, err = drv.Try(&t.l)
		return took, err
	})
	return took, err
}

// run times one run of a candidate.
func (t *Trial) run(drv runtime.Tuner, i int) (time.Duration, error) {
	if err := t.restore(false); err != nil {
		return 0, err
	}
	return t.try(drv, i)
}

// ErrOtherResults refuses a candidate whose results differ from the default's.
var ErrOtherResults = errors.New("the results differ from the default's")

// check runs a candidate on memory in the same state as for the default, and compares all results.
func (t *Trial) check(drv runtime.Tuner, i int) (took time.Duration, err error) {
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
			if err := t.X.Driver.Read(data, b.dt, b.mem, at); err != nil {
				return err
			}
			if i == 0 {
				t.want[n] = append(t.want[n], data...)
				return nil
			}
			return t.Compare(b.dt, at, data, t.want[n])
		}); err != nil {
			return 0, err
		}
	}
	return took, nil
}

func dense(dt ir.DType, data []byte) ir.Dense {
	return ir.Dense{TensorType: ir.TensorType{DT: dt, Shape: ir.Shape{len(data) / dt.Size()}}, Data: data}
}

// Compare compares a piece that begins at element at with the same piece of want. All NaNs are
// equal.
func (t *Trial) Compare(dt ir.DType, at int64, data, want []byte) error {
	piece := want[at*int64(dt.Size()):][:len(data)]
	if bytes.Equal(data, piece) {
		return nil
	}
	x, y := dense(dt, data), dense(dt, piece)
	for i := range x.Shape[0] {
		if g, w := x.At(i), y.At(i); !ir.SameValue(dt, g, w) && (t.X.Caps.Exact || !t.Tol.Near(dt, g, w)) {
			return fmt.Errorf("%w: element %d is %s, not %s", ErrOtherResults, at+int64(i), ir.FormatBits(dt, g), ir.FormatBits(dt, w))
		}
	}
	return nil
}

func cloneLaunch(l *runtime.Launch) runtime.Launch {
	out := *l
	out.Args, out.Scalars = slices.Clone(l.Args), slices.Clone(l.Scalars)
	return out
}
