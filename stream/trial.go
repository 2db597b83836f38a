package stream

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// trial is a unit of launches to be timed: on the sizes and strides that the
// program has, in memory of its own and on made-up values. Where operands of
// the program share memory, so do the trial's.
type trial struct {
	dev    *Device
	tuning *tuning
	list   []runtime.Choice // the tuning's, and a combination of them
	ls     []runtime.Launch
	bufs   []trialBuffer
	where  [][]int // of each launch's operands, the buffer; -1 for none
	tol    ir.Tolerance
	below  int64 // integers are from zero to below this

	dearest   time.Duration // step so far
	patience  time.Duration // waited for other streams: see pace
	disturbed bool          // one of them ran meanwhile

	held  bool     // it has its memory; under the tuner's turn
	ready bool     // which is filled
	want  []wanted // what the default wrote, by output
}

// trial copies what it must know of a bound unit. The memory of the program is
// not held.
func (x *tuner) trial(u *unit, ent *entry, geo *geometry, bound []runtime.Launch) *trial {
	t := &trial{dev: x.dev, tuning: u.tuning, list: u.list, ls: cloneLaunches(bound[u.first : u.first+u.n]), below: 100}
	at := map[runtime.Buffer]int{}
	for k := range t.ls {
		step := &ent.plan.Steps[u.first+k]
		for _, n := range step.Nodes {
			t.tol = looser(t.tol, &geo.seg.Nodes[n])
		}
		t.ls[k].Choice = 0
		where := make([]int, len(t.ls[k].Args))
		for i := range t.ls[k].Args {
			a, o := &t.ls[k].Args[i], &step.Kernel.Operands[i]
			where[i] = -1
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
			where[i] = b
			t.bufs[b].out = t.bufs[b].out || o.Kind == codegen.Output
			t.bufs[b].in = t.bufs[b].in || o.Kind == codegen.Input
			a.Buf = nil
		}
		t.where = append(t.where, where)
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
		Combine: func(won []int) (string, bool) {
			c, ok := x.combine(t.list, won)
			if ok {
				t.list = append(t.list[:len(t.list):len(t.list)], c)
			}
			return c.Name, ok
		},
		Told:   func(e autotune.Event) { x.told(t.tuning, e) },
		Budget: x.budget(),
		Spent:  func() time.Duration { return time.Duration(x.spent.Load()) },
	}
	if x.dev.opts.Tune != TuneWait {
		s.Longest = tuneLongest
		if t.dearest = t.least(); t.dearest > s.Longest { // without touching any memory
			return nil, autotune.TooLong(t.dearest)
		}
	}
	return autotune.Measure(s)
}

// least is how long a run takes at the least: what it moves, by the device's own
// bandwidth. The launches of a chain find each other's results in caches.
func (t *trial) least() time.Duration {
	if len(t.ls) > 1 || t.dev.caps.Bandwidth == 0 {
		return 0
	}
	l, points, moved := &t.ls[0], 1.0, 0.0
	for _, n := range l.Dims[:l.Rank] {
		points *= float64(n)
	}
	for _, b := range t.where[0] {
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

// try runs a candidate once. What it waits for first, the program's own run or a
// compiler, which is niced, takes nothing from the program.
func (t *trial) try(drv runtime.Tuner, i int) (took time.Duration, err error) {
	err = t.step(func() (time.Duration, error) {
		t.ls[0].Choice = t.list[i].Code
		if took, err = drv.Try(t.ls); errors.Is(err, runtime.ErrLacking) {
			err = fmt.Errorf("%w: %w", autotune.ErrLacking, err)
		}
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
		t.want = make([]wanted, len(t.bufs))
	}
	for n := range t.bufs {
		b := &t.bufs[n]
		if !b.out {
			continue
		}
		w := &t.want[n]
		if err := t.pieces(b, b.piece(), func(at int64, data []byte) error {
			if err := t.dev.drv.Read(data, b.dt, b.mem, at); err != nil {
				return err
			}
			if i == 0 {
				w.keep(t, b.dt, data)
				return nil
			}
			return w.compare(t, b.dt, at, data)
		}); err != nil {
			return 0, err
		}
	}
	return took, nil
}

// wanted is what the default wrote to a buffer: a hash per piece where results
// are exact, else the values.
type wanted struct {
	sums []sums
	data []byte
}

// sums are hashes of the bytes as they are, and with one NaN for all: most
// candidates give the same bytes.
type sums struct{ plain, canonical uint64 }

func (w *wanted) keep(t *trial, dt ir.DType, data []byte) {
	if t.dev.caps.Exact {
		plain := xxhash.Sum64(data)
		w.sums = append(w.sums, sums{plain, canonicalSum(dt, data)})
	} else {
		w.data = append(w.data, data...)
	}
}

// canonicalSum is the hash of elements whose NaNs are made equal, in place.
func canonicalSum(dt ir.DType, data []byte) uint64 {
	if dt.IsFloat() {
		nan := ir.FloatBits(dt, math.NaN())
		x := dense(dt, data)
		for i := range x.Shape[0] {
			if ir.SameValue(dt, x.At(i), nan) {
				x.Set(i, nan)
			}
		}
	}
	return xxhash.Sum64(data)
}

func dense(dt ir.DType, data []byte) ir.Dense {
	return ir.Dense{TensorType: ir.TensorType{DT: dt, Shape: ir.Shape{len(data) / dt.Size()}}, Data: data}
}

// compare looks at the piece that begins at an element.
func (w *wanted) compare(t *trial, dt ir.DType, at int64, data []byte) error {
	if t.dev.caps.Exact {
		want := w.sums[at/pieceElements]
		if xxhash.Sum64(data) == want.plain || canonicalSum(dt, data) == want.canonical {
			return nil
		}
		return fmt.Errorf("%w: among the %d elements from %d on", errOtherResults, len(data)/dt.Size(), at)
	}
	piece := w.data[at*int64(dt.Size()):][:len(data)]
	if bytes.Equal(data, piece) {
		return nil
	}
	x, y := dense(dt, data), dense(dt, piece)
	for i := range x.Shape[0] {
		if g, w := x.At(i), y.At(i); !ir.SameValue(dt, g, w) && !near(dt, g, w, t.tol) {
			return fmt.Errorf("%w: element %d is %s, not %s", errOtherResults, at+int64(i), ir.FormatBits(dt, g), ir.FormatBits(dt, w))
		}
	}
	return nil
}
