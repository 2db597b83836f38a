package apitest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/ir"
)

// Numbers of random programs in tests. Interpreted ones take milliseconds. One in C has more than a
// dozen kernels, each a run of the compiler for a second: two of them, one of each kind of ops, show
// that the tests work. CI runs six (in_c of scripts/test.sh), and make test-long the others.
var programs, compiledPrograms = func() (int, int) {
	if os.Getenv("MILLRACE_LONG") != "" {
		return 1000, 24
	}
	return 250, 2
}()

// count is a number from the environment: the amount of a long test.
func count(t *testing.T, name string, otherwise int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(name, ": ", err)
	}
	return n
}

// specs are the options under which a program must give the same bits.
var specs = []string{
	"cpu:compile=off",
	"cpu:compile=off,fusion=off",
	"cpu:compile=off,fusion=greedy",
	"cpu:compile=off,queue=1",
	"cpu:compile=off,queue=3,threads=1",
	"cpu:threads=1,tier=0,lines",
	"cpu:threads=2,tier=0",
	"cpu:compile=background,threads=2",
	"cpu:compile=c,threads=2",
	"cpu:compile=off,pinned=1",
	"cpu:compile=off,check",
	"cpu:compile=off,explore=wait",
	"cpu:compile=off,explore=background,check",
	"cpu:compile=off,tune=wait,threads=2",
	"cpu:compile=off,tune=off,threads=2",
}

// TestRandomPrograms: random programs give the oracle's bits under random options, in both passes
// over the same code, with reads in between in any order, and with inputs on any streams.
func TestRandomPrograms(t *testing.T) {
	devices := make([]*millrace.Device, len(specs))
	for i, s := range specs {
		devices[i] = openSpec(t, s)
	}
	n := count(t, "PROGRAMS", programs)
	for seed := range uint64(n) {
		c := progen.Config{}
		if seed%8 == 7 {
			c.Ops = 80 // long enough for a background search
		}
		randomProgram(t, seed, c, func(rng *rand.Rand) (*millrace.Device, string) {
			i := rng.IntN(len(devices))
			return devices[i], specs[i]
		})
	}
}

// rowGroups are the ops beyond the basic ones that devices can run.
const rowGroups = progen.AllGroups

// TestRandomRowPrograms is the same with reductions, contractions, scans, sorts and moves, on the
// reference device too.
func TestRandomRowPrograms(t *testing.T) {
	specs := append([]string{"ref", "ref:fusion=off", "ref:queue=3", "ref:fusion=greedy"}, specs...)
	devices := make([]*millrace.Device, len(specs))
	for i, s := range specs {
		devices[i] = openSpec(t, s)
	}
	n := count(t, "PROGRAMS", programs)
	for seed := range uint64(n) {
		c := progen.Config{MaxElems: 1000, Groups: rowGroups}
		i := int(seed) % len(specs)
		if seed%3 == 2 {
			c.DTypes = ir.SetOf(tensorDTypes...)
		}
		if seed%8 == 7 {
			c.Ops = 60
		}
		randomProgram(t, 2<<32+seed, c, func(*rand.Rand) (*millrace.Device, string) { return devices[i], specs[i] })
	}
}

// TestRandomProgramsCompiled is the same with code of all kernels: machine code, and C, where each
// kernel costs a run of the compiler.
func TestRandomProgramsCompiled(t *testing.T) {
	for spec, n := range map[string]int{"cpu:tier=1,threads=2": programs, inC: compiledPrograms} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			dev := openSpec(t, spec)
			for seed := range uint64(count(t, "COMPILED_PROGRAMS", n)) {
				c := progen.Config{}
				if seed%2 == 1 {
					c = progen.Config{MaxElems: 1000, Groups: rowGroups}
				}
				randomProgram(t, 1<<32+seed, c, func(*rand.Rand) (*millrace.Device, string) { return dev, spec })
			}
		})
	}
}

// inC are devices that wait for a C compiler, if there is one.
const inC = "cpu:compile=c,tier=1,threads=2"

// TestRandomProgramsForced is the same with every kernel run by another choice of its device each
// time, however small the kernel is.
func TestRandomProgramsForced(t *testing.T) {
	defer testhook.SetChoice(-1)
	defer testhook.SetPieces(false)
	specs := []string{"cpu:compile=off,threads=2", "cpu:compile=off,threads=3,fusion=off", "cpu:compile=off,threads=2,queue=3"}
	devices := make([]*millrace.Device, len(specs))
	for i, s := range specs {
		devices[i] = openSpec(t, s)
	}
	n := count(t, "PROGRAMS", programs)
	for seed := range uint64(n) {
		testhook.SetChoice(int(seed))
		testhook.SetPieces(seed%4 > 1)
		c := progen.Config{MaxElems: 1000, Groups: []progen.Group{0, rowGroups}[seed%2]}
		i := int(seed) % len(specs)
		randomProgram(t, 7<<32+seed, c, func(*rand.Rand) (*millrace.Device, string) { return devices[i], specs[i] })
	}
	for _, spec := range []string{"cpu:tier=1,threads=2", inC} {
		dev := openSpec(t, spec)
		for seed := range uint64(count(t, "COMPILED_PROGRAMS", compiledPrograms)) {
			testhook.SetChoice(int(seed) + 1)
			c := progen.Config{MaxElems: 1000, Groups: []progen.Group{0, rowGroups}[seed%2]}
			randomProgram(t, 8<<32+seed, c, func(*rand.Rand) (*millrace.Device, string) { return dev, spec })
		}
	}
}

// flushSeeds are programs that run with flushed denormals, on numbers that are denormal or produce
// some.
const flushSeeds = 9

// TestRandomProgramsFlush is the same on such devices.
func TestRandomProgramsFlush(t *testing.T) {
	specs := []string{"cpu:compile=off,threads=2,denormals=flush", "cpu:compile=off,threads=3,fusion=off,denormals=flush", "cpu:compile=off,threads=2,queue=3,denormals=flush"}
	specs = append(specs, "cpu:tier=1,threads=2,denormals=flush", inC+",denormals=flush")
	devices := make([]*millrace.Device, len(specs))
	for i, s := range specs {
		devices[i] = openSpec(t, s)
	}
	n, compiled := uint64(count(t, "PROGRAMS", programs)), 2*uint64(count(t, "COMPILED_PROGRAMS", compiledPrograms))
	for seed := range n {
		i := int(seed % 3)
		if seed < compiled {
			i = 3 + int(seed/2%2)
		}
		c := progen.Config{MaxElems: 1000, Groups: []progen.Group{0, rowGroups}[seed%2]}
		randomProgram(t, flushSeeds<<32+seed, c, func(*rand.Rand) (*millrace.Device, string) { return devices[i], specs[i] })
	}
}

func openSpec(t *testing.T, spec string) *millrace.Device {
	t.Helper()
	o, err := millrace.ParseOptions(spec)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, o)
}

func randomProgram(t *testing.T, seed uint64, c progen.Config, device func(*rand.Rand) (*millrace.Device, string)) {
	prog := progen.New(seed, c)
	dev, spec := device(rand.New(rand.NewPCG(seed, 1)))
	err := twice(dev, prog, seed)
	if err == nil {
		return
	}
	small := progen.Shrink(prog, func(p *ir.Graph) bool {
		d, err := millrace.Open(spec)
		if err != nil {
			return false
		}
		defer d.Close()
		return twice(d, p, seed) != nil
	})
	fresh, openErr := millrace.Open(spec)
	if openErr != nil {
		t.Fatal(openErr)
	}
	defer fresh.Close()
	t.Errorf("seed %d on %s: %v\nshrunk, on a fresh device: %v\n%v", seed, spec, err, twice(fresh, small, seed), small)
}

// twice runs a program two times on one device: new plans, then known ones. The seed determines
// everything around it.
func twice(dev *millrace.Device, prog *ir.Graph, seed uint64) error {
	inputs, denormals := progen.Inputs(prog, seed), ir.KeepDenormals
	if seed>>32 == flushSeeds {
		inputs, denormals = progen.TinyInputs(prog, seed), ir.FlushDenormals
	}
	want, err := denormals.EvalTensors(prog, inputs)
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	for pass := range 2 {
		rng := rand.New(rand.NewPCG(seed, 2))
		run := outOfScope
		if rng.IntN(2) == 0 {
			run = inScope
		}
		if err := run(dev, prog, inputs, want, rng); err != nil {
			return fmt.Errorf("pass %d: %w", pass+1, err)
		}
	}
	return nil
}

// inScope runs the program in a scope: everything is released at its end.
func inScope(dev *millrace.Device, prog *ir.Graph, inputs [][]byte, want []ir.Dense, rng *rand.Rand) error {
	kept := []*millrace.Tensor(nil)
	err := dev.NewStream().Scope(func(sc *millrace.Scope) error {
		r := NewRunner(sc, prog, inputs)
		for i := range prog.Nodes {
			r.Step(i)
		}
		for _, id := range prog.Outputs {
			if rng.IntN(2) == 0 {
				if err := compare(r.Tensors[id], want[id]); err != nil {
					return fmt.Errorf("tensor %%%d: %w", id, err)
				}
			}
			kept = append(kept, sc.Keep(r.Tensors[id]))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, id := range prog.Outputs {
		if err := compare(kept[i], want[id]); err != nil {
			return fmt.Errorf("kept tensor %%%d: %w", id, err)
		}
		kept[i].Release()
	}
	return nil
}

// outOfScope runs the program with its inputs on several streams. It reads some tensors in between
// and all that are not released at the end.
func outOfScope(dev *millrace.Device, prog *ir.Graph, inputs [][]byte, want []ir.Dense, rng *rand.Rand) error {
	streams := []*millrace.Stream{dev.DefaultStream(), dev.NewStream(), dev.NewStream()}
	if rng.IntN(2) == 0 {
		streams = streams[:1]
	}
	r := NewRunner(streams[0], prog, nil)
	for i, in := range inputs {
		r.Tensors = append(r.Tensors, FromBytes(streams[rng.IntN(len(streams))], prog.Inputs[i], in))
	}
	dead := make([]bool, len(want))
	read := func(id int) error {
		if dead[id] {
			return nil
		}
		if err := compare(r.Tensors[id], want[id]); err != nil {
			return fmt.Errorf("tensor %%%d: %w", id, err)
		}
		return nil
	}
	for i := range prog.Nodes {
		r.Step(i)
		if n := &prog.Nodes[i]; n.Op == ir.Release {
			dead[n.Args[0].ID] = true
		}
		switch rng.IntN(24) {
		case 0:
			if err := read(rng.IntN(len(r.Tensors))); err != nil {
				return err
			}
		case 1:
			if err := streams[rng.IntN(len(streams))].Sync(context.Background()); err != nil {
				return err
			}
		case 2: // another handle takes the value over; both stay usable
			if id := rng.IntN(len(r.Tensors)); !dead[id] {
				h := millrace.ScalarOn(streams[rng.IntN(len(streams))], float32(rng.IntN(9)))
				h.Set(r.Tensors[id])
				if rng.IntN(2) == 0 {
					r.Tensors[id] = h
				}
			}
		case 3: // the value moves to another stream
			if id := rng.IntN(len(r.Tensors)); !dead[id] {
				r.Tensors[id] = r.Tensors[id].To(streams[rng.IntN(len(streams))])
			}
		}
	}
	order := rng.Perm(len(want))
	if rng.IntN(2) == 0 {
		order = prog.Outputs
	}
	for _, id := range order {
		if err := read(id); err != nil {
			return err
		}
		if rng.IntN(8) == 0 && !dead[id] {
			r.Tensors[id].Release()
			dead[id] = true
		}
	}
	return nil
}
