package replay

import (
	"errors"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// bytes is one element of the tests' operands.
const bytes = 64

// adder is a launch whose walk adds operand 0 to operand 1 by way of the thread's memory.
type adder struct {
	pool   *memory.Pool
	l      *runtime.Launch
	arena  memory.Arena
	faults bool // the walk notes an index out of range, and stops
	fault  operands.IndexFault
}

func newAdder(t *testing.T) *adder {
	a := &adder{pool: memory.New(1 << 20), l: &runtime.Launch{}}
	for range 2 {
		a.l.Args = append(a.l.Args, runtime.Access{Buf: a.allocate(t)})
	}
	t.Cleanup(func() {
		a.arena.Free()
		a.pool.Close()
	})
	return a
}

func (a *adder) allocate(t *testing.T) runtime.Buffer {
	b, err := a.pool.Alloc(bytes)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func element(p unsafe.Pointer) *int64 { return (*int64)(p) }

func (a *adder) buffer(i int) *memory.Buffer { return a.l.Args[i].Buf.(*memory.Buffer) }

// walk does the work and records it.
func (a *adder) walk(tape *Tape) error {
	own := a.arena.Reserve(bytes)
	load := func(p *operands.Pointers) { *element(p[0]) = *element(p[1]) }
	check := func(_ *operands.Pointers, f *operands.IndexFault) {
		if a.faults {
			f.Note(0, 7)
		}
	}
	add := func(p *operands.Pointers) { *element(p[1]) += *element(p[0]) }
	x, y := a.buffer(0).P, a.buffer(1).P
	load(&operands.Pointers{own, x})
	check(nil, &a.fault)
	if !a.fault.Set {
		add(&operands.Pointers{own, y})
	}
	if tape != nil {
		mine := operands.Pointer{P: own, Operand: operands.NoOperand}
		tape.Region(own, bytes)
		tape.Do(load, mine, operands.Pointer{P: x})
		tape.Check(check)
		tape.Stop()
		tape.Do(add, mine, operands.Pointer{P: y, Operand: 1})
	}
	return nil
}

// TestReplay checks that a recorded launch repeats its work on other buffers and in other memory of
// the thread, and that it stops at an index out of range.
func TestReplay(t *testing.T) {
	a, rng := newAdder(t), rand.New(rand.NewPCG(3, 1))
	k, b := New(a.l), &Budget{Most: 1 << 20}
	if err := k.Record(b, a.walk); err != nil || !k.Recorded() || b.Bytes.Load() == 0 {
		t.Fatalf("the launch is not recorded: %v", err)
	}
	for run := range 6 {
		for i := range a.l.Args {
			if rng.IntN(2) == 0 {
				a.l.Args[i].Buf = a.allocate(t)
				k.Set(i, a.buffer(i))
			}
		}
		if run == 3 {
			a.arena.Free()
			a.arena.Reserve(1 << 20)
		}
		x, y := rng.Int64N(1000), rng.Int64N(1000)
		*element(a.buffer(0).P), *element(a.buffer(1).P) = x, y
		want := x + y
		a.fault.Reset()
		if a.faults = run == 4; a.faults {
			want = y
		}
		if !k.Run(&a.arena, &a.fault) || a.fault.Set != a.faults || *element(a.buffer(1).P) != want {
			t.Fatalf("run %d: %d and %d gave %d, a fault: %v", run, x, y, *element(a.buffer(1).P), a.fault.Set)
		}
	}
	if k.Runs() != 6 {
		t.Errorf("%d runs, not 6", k.Runs())
	}
	if k.Close(b); k.Recorded() || b.Bytes.Load() != 0 {
		t.Errorf("%d bytes are counted of a closed recording", b.Bytes.Load())
	}
}

// TestNotRecorded checks which walks are not recorded, and that only a failed one is tried again.
func TestNotRecorded(t *testing.T) {
	failure := errors.New("a failure")
	foreign := make([]int64, 16)
	for name, c := range map[string]struct {
		more func(tape *Tape, own unsafe.Pointer) // done after the walk
		err  error
		most int64
	}{
		"lost":           {func(tape *Tape, own unsafe.Pointer) { tape.Lose() }, nil, 1 << 20},
		"unknown memory": {func(tape *Tape, own unsafe.Pointer) { tape.Do(nil, operands.Pointer{P: unsafe.Pointer(&foreign[0])}) }, nil, 1 << 20},
		"another operand": {func(tape *Tape, own unsafe.Pointer) {
			tape.Do(nil, operands.Pointer{P: own, Operand: 9}, operands.Pointer{P: unsafe.Pointer(&foreign[0]), Operand: 9})
		}, nil, 1 << 20},
		"regions overlap":  {func(tape *Tape, own unsafe.Pointer) { tape.Region(own, 2*bytes) }, nil, 1 << 20},
		"unaligned region": {func(tape *Tape, own unsafe.Pointer) { tape.Region(unsafe.Add(own, 2*bytes+8), 8) }, nil, 1 << 20},
		"much memory":      {func(tape *Tape, own unsafe.Pointer) { tape.Region(unsafe.Add(own, bytes), tapeRoom) }, nil, 1 << 20},
		"a long frame":     {func(tape *Tape, own unsafe.Pointer) { tape.Call(1, 0, make([]uint64, tapeBytes/8), nil) }, nil, 1 << 20},
		"over budget":      {func(tape *Tape, own unsafe.Pointer) {}, nil, 1},
		"a failed walk":    {func(tape *Tape, own unsafe.Pointer) {}, failure, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAdder(t)
			k, b := New(a.l), &Budget{Most: c.most}
			err := k.Record(b, func(tape *Tape) error {
				a.walk(tape)
				c.more(tape, a.arena.Reserve(bytes))
				return c.err
			})
			if err != c.err || k.Recorded() || b.Bytes.Load() != 0 {
				t.Fatalf("recorded: %v, %d bytes, error %v", k.Recorded(), b.Bytes.Load(), err)
			}
			again := false
			if err := k.Record(b, func(tape *Tape) error { again = tape != nil; return a.walk(tape) }); err != nil || again != (c.err != nil) || k.Recorded() != again {
				t.Errorf("the next run has a tape: %v, is recorded: %v, error %v", again, k.Recorded(), err)
			}
		})
	}
}
