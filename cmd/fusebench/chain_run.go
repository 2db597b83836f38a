package main

import (
	"fmt"
	goruntime "runtime"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/paired"
)

// timeChain times whole steps: recording, running and reading the result.
func timeChain(c *config, ops int, io streams) error {
	devices, err := targets(c, io)
	if err != nil {
		return err
	}
	problems, err := c.problems(chainSuite(ops))
	if err != nil {
		return err
	}
	p := problems[c.variants[0]]
	_, err = c.report(io, len(devices), func(i int, share time.Duration, show *progress) ([]Row, error) {
		show.say("%s: chain of %d", devices[i], ops)
		rows, err := chainOn(c, ops, p, devices[i], share, show)
		return rows, on(devices[i], err)
	})
	return err
}

// batchTime is how long one sample should take. A single step is too short for the clock.
const batchTime = 2 * time.Millisecond

func chainOn(c *config, ops int, p *problem, device string, budget time.Duration, show *progress) ([]Row, error) {
	start := time.Now()
	var benches []*bench
	var steppers []*stepper
	defer func() {
		for _, b := range benches {
			b.close()
		}
	}()
	for _, mode := range c.modes {
		b, err := openBench(c, device, mode)
		if err != nil {
			return nil, err
		}
		benches = append(benches, b)
		s, err := newStepper(c, ops, device, b, p)
		if err != nil {
			return nil, err
		}
		steppers = append(steppers, s)
	}
	loops := goLoops(p.inputs[0].f32, ops)
	contestants := []*contestant{loops}
	for _, s := range steppers {
		contestants = append(contestants, s.contestant)
	}
	if err := warm(c.warmup, start.Add(budget/3), contestants, benches, func(*contestant) {}); err != nil {
		return nil, err
	}
	interleave(time.Now, budget-time.Since(start), c.runs, contestants, func(round int, k *contestant) {
		show.part(round, c.runs, "%s: %s, run %d of %d", device, k.name, round+1, c.runs)
	})
	return chainRows(c, ops, device, steppers, loops)
}

func goLoops(x []float32, ops int) *contestant {
	dst := make([]float32, len(x))
	steps, step := 1, 0
	return &contestant{name: "go", base: true, run: func() (time.Duration, error) {
		for {
			start := time.Now()
			for range steps {
				goChain(dst, x, ops, step)
				step++
			}
			if took := time.Since(start); took >= batchTime || steps > 1<<20 {
				return took / time.Duration(steps), nil
			}
			steps *= 2
		}
	}}
}

// A stepper runs steps of a chain on one device in one mode.
type stepper struct {
	bench      *bench
	x          *millrace.Tensor
	contestant *contestant
	row        Row
	ops        int
	out        []float32
	steps      int // per sample
	step       int // counts all

	hot     counts
	ran     int
	record  []float64 // ns per op, one per sample
	alloc64 []float64 // ns of one 64-byte allocation, same rounds
}

func newStepper(c *config, ops int, device string, b *bench, p *problem) (*stepper, error) {
	xs, err := b.inputs(p)
	if err != nil {
		return nil, err
	}
	s := &stepper{bench: b, x: xs[0], ops: ops, out: make([]float32, c.shape.len()), steps: 1, row: c.newRow("chain", device, c.variants[0], b.mode)}
	s.row.Shape, s.row.IOBytes = c.shape, int64(p.bytes(c.dtype))
	start := time.Now()
	if _, err := s.one(); err != nil {
		return nil, err
	}
	s.row.ColdMS = number(time.Since(start).Seconds() * 1e3)
	s.row.MaxAbsErr = number(worst(p.oracle, s.out))
	s.contestant = &contestant{name: "chain " + b.mode, run: s.sample}
	return s, b.dev.Wait()
}

// one runs a step and returns how long its recording took.
func (s *stepper) one() (recording time.Duration, err error) { return s.oneOf(s.ops) }

func (s *stepper) oneOf(ops int) (recording time.Duration, err error) {
	err = s.bench.dev.Scope(func(sc *millrace.Scope) error {
		x := s.x.To(sc)
		start := time.Now()
		y := chain(x, ops, s.step)
		recording = time.Since(start)
		return millrace.ReadInto(s.out, y)
	})
	s.step++
	return recording, err
}

// sample runs steps for about batchTime and returns the time of one.
func (s *stepper) sample() (time.Duration, error) {
	for {
		var recording time.Duration
		s.bench.dev.ResetPeak()
		before := countsOf(s.bench.dev.Stats())
		start := time.Now()
		for range s.steps {
			d, err := s.one()
			if err != nil {
				return 0, err
			}
			recording += d
		}
		took := time.Since(start)
		if took < batchTime && s.steps < 1<<20 {
			s.steps *= 2
			continue
		}
		if s.contestant.counting {
			after := s.bench.dev.Stats()
			s.hot = s.hot.plus(countsOf(after), before)
			s.row.PeakBytes = max(s.row.PeakBytes, after.Runtime.PeakBytes)
			s.ran += s.steps
			s.record = append(s.record, float64(recording.Nanoseconds())/float64(s.steps*s.ops))
			s.alloc64 = append(s.alloc64, heapAllocation())
		}
		return took / time.Duration(s.steps), nil
	}
}

// allocsPerOp returns the number of Go heap allocations that one more operation adds to a hot
// step: the difference between steps of twice the length and of the length.
func (s *stepper) allocsPerOp() (float64, error) {
	const steps = 200
	var count [2]float64
	for i, ops := range []int{s.ops, 2 * s.ops} {
		var before, after goruntime.MemStats
		for k := range 2 * steps {
			if k == steps { // the step is hot by now
				goruntime.ReadMemStats(&before)
			}
			if _, err := s.oneOf(ops); err != nil {
				return 0, err
			}
		}
		goruntime.ReadMemStats(&after)
		count[i] = float64(after.Mallocs-before.Mallocs) / steps
	}
	return (count[1] - count[0]) / float64(s.ops), nil
}

// block keeps allocations from being optimised away.
var block *[64]byte

// heapAllocation times a 64-byte allocation, in ns. It returns a mean, because recording is a
// mean too: both include the collector's share.
func heapAllocation() float64 {
	const n = 50000
	start := time.Now()
	for range n {
		block = new([64]byte)
	}
	return float64(time.Since(start).Nanoseconds()) / n
}

// oneCompile returns the mean time of a compile, or absent if there was none.
func oneCompile(s millrace.Stats) number {
	if s.Runtime.Compiles == 0 {
		return absent
	}
	return number(float64(s.Runtime.CompileNanos) / float64(s.Runtime.Compiles) / 1e6)
}

func chainRows(c *config, ops int, device string, steppers []*stepper, loops *contestant) ([]Row, error) {
	copied := newHostMemory(4*c.shape.len(), c.threads)
	copies := &contestant{name: "memcpy"}
	for _, round := range loops.rounds {
		copies.rounds = append(copies.rounds, round)
		copies.times = append(copies.times, copied.copy(4*c.shape.len()).Seconds())
	}
	var plain *contestant
	for _, s := range steppers {
		if s.bench.mode == unfused {
			plain = s.contestant
		}
	}
	var rows []Row
	for _, s := range steppers {
		if err := s.contestant.err; err != nil {
			return nil, err
		}
		allocs, err := s.allocsPerOp()
		if err != nil {
			return nil, err
		}
		r := &s.row
		r.count(s.bench.dev.Name(), s.hot, int64(max(s.ran, 1)))
		r.time(s.contestant, copies)
		r.compare(s.contestant, plain)
		r.Chain = &ChainFigures{
			Ops: ops, RecordNSPerOp: number(paired.Median(s.record)), AllocsPerOp: number(allocs),
			Alloc64NS: number(paired.Median(s.alloc64)), RecordPerAlloc: number(paired.Ratio(s.record, s.alloc64).Mid),
			SpeedupVsGo: number(paired.Ratio(pairs(loops, s.contestant)).Mid),
			CompileMS:   oneCompile(s.bench.dev.Stats()),
		}
		rows = append(rows, *r)
	}
	r := emptyRow()
	r.Suite, r.Device, r.Variant, r.Mode, r.Shape, r.DType = "chain", device, fmt.Sprint(ops), "go", c.shape, c.dtype.String()
	r.time(loops, copies)
	return append(rows, r), nil
}
