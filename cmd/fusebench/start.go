package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/paired"
	"github.com/millrace-go/millrace/plancache"
)

// start times how long a program waits for its first result. It starts new processes with an
// empty cache, with one that an earlier process filled, and with a bundle instead of a cache.
type start struct {
	devices string // with their options, and spaces between them
	program string
	ops, n  int
	runs    int
	idle    time.Duration
	cache   string // where caches are made; in a child the cache itself
	bundle  string // in a child
	format  string
	out     string
	child   bool
}

// startPrograms are the chains that can be run, by name.
var startPrograms = map[string]func(x *millrace.Tensor, ops int) *millrace.Tensor{
	"scalars": func(x *millrace.Tensor, ops int) *millrace.Tensor { return chain(x, ops, 0) },
	"tanh":    tanhChain,
}

// tanhChain alternates arithmetic, a function, and the input.
func tanhChain(x *millrace.Tensor, ops int) *millrace.Tensor {
	y := x
	steps := []func(){
		func() { y = y.MulScalar(0.9) },
		func() { y = y.AddScalar(0.1) },
		func() { y = y.Tanh() },
		func() { y = y.Mul(x) },
		func() { y = y.Abs() },
	}
	for i := range ops {
		steps[i%len(steps)]()
	}
	return y
}

func setupStart() ([]cli.Flag, action) {
	s := &start{}
	flags := []cli.Flag{
		&cli.StringFlag{Name: "device", Value: "cpu cpu:compile=wait cpu:compile=off", Destination: &s.devices, Usage: "`devices` with their options, separated by spaces"},
		&cli.StringFlag{Name: "program", Value: "tanh", Destination: &s.program, Validator: wordOf(slices.Sorted(maps.Keys(startPrograms))...), Usage: "`chain` to run: scalars (multiply, add), or tanh (five operations in turn)"},
		&cli.IntFlag{Name: "ops", Value: 40, Destination: &s.ops, Config: decimal, Validator: from(1, maxOps), Usage: "`operations` in the chain"},
		&cli.IntFlag{Name: "n", Value: 1000, Destination: &s.n, Config: decimal, Validator: from(1, maxSize), Usage: "`elements` of the tensor"},
		&cli.IntFlag{Name: "runs", Value: 15, Destination: &s.runs, Config: decimal, Validator: from(1, maxRuns), Usage: "`processes` that are timed for each row"},
		&cli.DurationFlag{Name: "idle", Destination: &s.idle, Validator: lasting(true), Usage: "`time` between opening the device and the first operation, as in a program that reads its weights"},
		&cli.StringFlag{Name: "bundle", Destination: &s.bundle, Validator: readable, Usage: "with -child: a `file` of plans to use"},
		&cli.StringFlag{Name: "cache", Destination: &s.cache, Validator: folder, Usage: "`directory` to make caches in (default: a temporary one)"},
		&cli.StringFlag{Name: "format", Value: "table", Destination: &s.format, Validator: wordOf(slices.Sorted(maps.Keys(startWriters))...), Usage: "`format` of the result: table or json"},
		outFlag(&s.out),
		&cli.BoolFlag{Name: startChild, Destination: &s.child, Usage: "run as one of the timed processes and print the figures"},
	}
	return flags, func(io streams, args []string) error {
		if err := s.check(args); err != nil {
			return err
		}
		if s.child {
			return s.once(io)
		}
		return s.run(io)
	}
}

// startChild is the flag of a process that is timed.
const startChild = "child"

func (s *start) check(args []string) error {
	switch {
	case len(args) > 0:
		return usageError("unexpected %q", args[0])
	case len(strings.Fields(s.devices)) == 0:
		return usageError("-device is empty")
	}
	for _, d := range strings.Fields(s.devices) {
		o, err := millrace.ParseOptions(d)
		if err != nil {
			return usageError("-device %s: %v", d, err)
		}
		if !slices.Contains(millrace.Drivers(), o.Device) {
			return usageError("-device %s: want some of %s", d, strings.Join(millrace.Drivers(), ", "))
		}
	}
	return nil
}

// startFigures are the figures that one process reports about itself.
type startFigures struct {
	OpenMS  float64 // of the device and its cache
	FirstMS float64 // recording the chain, running it and reading the result for the first time
	NextMS  float64 // the same, the second time
	HotMS   float64 // the same, median of later times
	NewMS   float64 // the first run of chains never seen before, in a process that ran others: median
	EndNS   int64   // the time of the clock at the first result

	Explorations, Compiles, Misses int64
	Sum                            float64 // of the result; all processes should agree
}

// hotTimes is how often a process runs the chain, each time on a new stream.
const hotTimes = 200

// once is the work of a timed process. It does the same as a program that runs this code for the
// first time, and then again.
func (s *start) once(io streams) error {
	begin := time.Now()
	o, err := millrace.ParseOptions(s.devices)
	if err != nil {
		return err
	}
	o.Cache = s.cache
	if s.bundle != "" {
		plans, err := os.ReadFile(s.bundle)
		if err != nil {
			return err
		}
		if err := millrace.UsePlans(plans); err != nil {
			return err
		}
	}
	dev, err := millrace.OpenOptions(o)
	if err != nil {
		return err
	}
	defer dev.Close()
	f := startFigures{OpenMS: milliseconds(time.Since(begin))}
	data := make([]float32, s.n)
	for i := range data {
		data[i] = float32(i%1000)/500 - 1
	}
	time.Sleep(s.idle)
	var times []float64
	for i := range hotTimes {
		result, took, err := s.timeOnce(dev, data, s.ops)
		if err != nil {
			return err
		}
		times = append(times, took)
		if i == 0 {
			f.EndNS = time.Now().UnixNano()
			for _, v := range result {
				f.Sum += float64(v)
			}
		}
	}
	f.FirstMS, f.NextMS, f.HotMS = times[0], times[1], paired.Median(times[2:])
	if err := dev.Wait(); err != nil {
		return err
	}
	st := dev.Stats()
	f.Explorations, f.Compiles, f.Misses = st.Explorations, st.Runtime.Compiles, st.Cache.Misses
	if f.NewMS, err = s.timeNew(o, data); err != nil {
		return err
	}
	return writeStartFigures(io.out, &f)
}

// timeOnce runs a chain on a new stream and returns the milliseconds until its result was read.
func (s *start) timeOnce(dev *millrace.Device, data []float32, ops int) (result []float32, ms float64, err error) {
	begin := time.Now()
	err = dev.NewStream().Scope(func(sc *millrace.Scope) (err error) {
		x := millrace.FromSliceOn(sc, data, s.n)
		result, err = millrace.Values[float32](startPrograms[s.program](x, ops))
		return err
	})
	return result, milliseconds(time.Since(begin)), err
}

// newChains is how many chains are timed that the process has never seen.
const newChains = 10

// timeNew times longer chains, each once, on another device of the process, without a cache. One
// chain has run there before.
func (s *start) timeNew(o millrace.Options, data []float32) (float64, error) {
	o.Cache = plancache.Off
	dev, err := millrace.OpenOptions(o)
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	var times []float64
	for i := range newChains + 1 {
		_, took, err := s.timeOnce(dev, data, s.ops+1+i)
		if err != nil {
			return 0, err
		}
		times = append(times, took)
		if err := dev.Wait(); err != nil { // no compiler runs while the next chain is timed
			return 0, err
		}
	}
	return paired.Median(times[1:]), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// startCaches are the ways processes begin, in the order in which they are timed. They are timed
// apart, because processes with an empty cache start compilers.
var startCaches = []string{"empty", "warm", "bundle"}

// run times processes for every device; devices take turns.
func (s *start) run(io streams) error {
	root := s.cache
	if root == "" {
		tmp, err := os.MkdirTemp("", "fusebench-start-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		root = tmp
	}
	show := newProgress(io.err)
	defer show.clear()
	report := &startReport{Machine: thisMachine(), Program: s.program, Ops: s.ops, N: s.n, IdleMS: number(milliseconds(s.idle))}
	rows := s.rows(root)
	for _, cache := range startCaches {
		for run := range s.runs {
			for _, r := range rows {
				if r.Cache != cache {
					continue
				}
				show.part(run, s.runs, "%s, %s: process %d of %d", r.Device, r.Cache, run+1, s.runs)
				if err := r.time(s, run); err != nil {
					return fmt.Errorf("%s, %s: %w", r.Device, r.Cache, err)
				}
			}
		}
	}
	for _, r := range rows {
		if r.sum != rows[0].sum {
			return errors.New("results differ between processes")
		}
		r.sumUp()
		report.Rows = append(report.Rows, r)
	}
	show.clear()
	return deliverStart(io.out, report, s.format, s.out)
}

// rows returns what is timed.
func (s *start) rows(root string) []*startRow {
	var rows []*startRow
	for i, d := range strings.Fields(s.devices) {
		for _, cache := range startCaches {
			rows = append(rows, &startRow{Device: d, Cache: cache, dir: fmt.Sprintf("%s/%d-%s", root, i, cache)})
		}
	}
	return rows
}
