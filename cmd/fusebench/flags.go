package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace"
)

// A config has the values of the flags.
type config struct {
	devices  list
	shape    shape
	dtype    dtype
	variants list
	modes    list
	runs     int
	warmup   int
	budget   time.Duration
	threads  int
	tier     string
	cache    string
	plans    string
	wait     bool // for compilers, before the first run
	format   string
	out      string
	picture  string
	note     string
}

// The modes are the same engine with fusion, without it, and with the variants of kernels that
// tuning chose in place of the default ones.
const (
	fused   = "fused"
	unfused = "unfused"
	tuned   = "tuned"
)

// targetFlags say which devices run the suite, and how.
func (c *config) targetFlags() []cli.Flag {
	return []cli.Flag{
		&cli.GenericFlag{Name: "device", Value: &c.devices, Usage: "`devices` to use, such as cpu,webgpu (default: all that are present)"},
		&cli.GenericFlag{Name: "dtype", Value: &c.dtype, Usage: "`type` of the elements: float32, float64, float16 or bfloat16"},
		&cli.GenericFlag{Name: "modes", Value: &c.modes, Usage: "`modes` to run: some of fused, unfused, tuned"},
		&cli.IntFlag{Name: "threads", Destination: &c.threads, Config: decimal, Validator: from(1, maxThreads), DefaultText: "as GOMAXPROCS", Usage: "worker `threads` of the CPU device"},
		&cli.StringFlag{Name: "tier", Value: "auto", Destination: &c.tier, Validator: wordOf("0", "1", "auto"), Usage: "`tier` of the CPU device: 0 interprets, 1 compiles, auto interprets until code is ready"},
		&cli.StringFlag{Name: "cache", Value: "off", Destination: &c.cache, Validator: folder, Usage: "`directory` of a cache, in which a second run finds plans and kernels"},
		&cli.StringFlag{Name: "plans", Destination: &c.plans, Validator: readable, Usage: "bundle to use: a `file` that fusebench plans export wrote"},
		outFlag(&c.out),
	}
}

func outFlag(out *string) cli.Flag {
	return &cli.StringFlag{Name: "o", Destination: out, Validator: writable, Usage: "write the result to this `file` instead of standard output"}
}

// suiteFlags say what is computed.
func (c *config) suiteFlags(s *Suite) []cli.Flag {
	var flags []cli.Flag
	if len(s.shape) > 0 {
		c.shape = s.shape
		flags = append(flags, &cli.GenericFlag{Name: "shape", Value: &c.shape, Usage: "`sizes` " + s.sizes})
	}
	return append(flags, &cli.GenericFlag{Name: "variants", Value: &c.variants, Usage: "`variants` (default: " + strings.Join(s.variants(c.shape), ",") + ")"})
}

// timingFlags say how it is timed and reported.
func (c *config) timingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "runs", Value: 15, Destination: &c.runs, Config: decimal, Validator: from(1, maxRuns), Usage: "timed `runs` of each variant"},
		&cli.IntFlag{Name: "warmup", Value: 3, Destination: &c.warmup, Config: decimal, Validator: from(0, maxRuns), Usage: "`runs` before the timed ones"},
		&cli.DurationFlag{Name: "budget", Value: 60 * time.Second, Destination: &c.budget, Validator: lasting(true), Usage: "about the `time` to measure altogether: the number of runs is reduced to fit"},
		&cli.StringFlag{Name: "format", Value: "table", Destination: &c.format, Validator: wordOf(formats()...), Usage: "`format` of the result: " + strings.Join(formats(), ", ")},
		&cli.StringFlag{Name: "picture", Destination: &c.picture, Validator: pictured, Usage: "also draw the result into this `file`: a page (.html) or a picture (.svg)"},
		&cli.StringFlag{Name: "note", Destination: &c.note, Usage: "`text` in the report about how it was measured"},
	}
}

// check finds errors that the checks of single flags cannot find.
func (c *config) check() error {
	return among("-modes", c.modes, []string{fused, unfused, tuned})
}

// checkTiming is check for commands with timingFlags and without operands.
func (c *config) checkTiming(args []string) error {
	if len(args) > 0 {
		return usageError("unexpected %q", args[0])
	}
	return c.check()
}

// pictured checks the path of a picture.
func pictured(path string) error {
	if drawn[filepath.Ext(path)] == nil {
		return errors.New("want a name that ends in .html or .svg")
	}
	return writable(path)
}

func among(flag string, got, known []string) error {
	if len(got) == 0 {
		return usageError("%s is empty: want some of %s", flag, strings.Join(known, ", "))
	}
	for _, g := range got {
		if !slices.Contains(known, g) {
			return usageError("%s %q: want some of %s", flag, g, strings.Join(known, ", "))
		}
	}
	return nil
}

// options returns the options of a device for one mode.
func (c *config) options(device, mode string) (millrace.Options, error) {
	o, err := millrace.ParseOptions(device)
	if err != nil {
		return o, err
	}
	if o.Cache == "" {
		o.Cache = c.cache
	}
	if o.Device == "cpu" {
		if c.threads > 0 {
			o.Threads = c.threads
		}
		switch c.tier {
		case "0":
			o.Tier = millrace.TierInterpreter
		case "1":
			o.Tier = millrace.TierCompiled
		}
		switch {
		case !c.wait || o.Compile == millrace.CompileOff:
		case o.Compile == millrace.CompileBackground:
			o.Compile = millrace.CompileWait
		case o.Tier == millrace.TierAuto: // a tier was requested
			o.Tier = millrace.TierCompiled
		}
	}
	o.Explore = millrace.ExploreWait // timed runs use their best plan, and counters are the same every time
	o.Tune = millrace.TuneOff
	switch mode {
	case unfused:
		o.Fusion = millrace.FusionOff
	case tuned:
		o.Tune, o.TuneBudget = millrace.TuneWait, c.budget/4 // 0, as explain has it: no limit
	}
	return o, nil
}

// A list is a flag of one or more names, separated by commas.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }
func (l *list) Get() any       { return *l }

func (l *list) Set(s string) error {
	*l = nil
	for name := range strings.SplitSeq(s, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(*l, name) {
			*l = append(*l, name)
		}
	}
	if len(*l) == 0 {
		return errors.New("want names with commas between them")
	}
	return nil
}

// maxRank is the largest rank of tensors.
const maxRank = 8

// maxElements is the largest number of elements that fits an int of 32 bits.
const maxElements = 1<<31 - 1

// A shape is a flag of sizes, separated by commas.
type shape []int

func (s *shape) String() string { return shapeText(*s) }
func (s *shape) Get() any       { return *s }

func (s *shape) Set(text string) error {
	*s = nil
	total := 1
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a size: want whole numbers from 1, with commas between them", part)
		}
		if total > maxElements/n {
			return fmt.Errorf("more than %d elements", maxElements)
		}
		if len(*s) == maxRank {
			return fmt.Errorf("more than %d sizes", maxRank)
		}
		total *= n
		*s = append(*s, n)
	}
	return nil
}

func (s shape) len() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// A dtype is a flag of an element type.
type dtype struct{ millrace.DType }

func (d *dtype) Get() any { return *d }

func (d *dtype) String() string {
	if d.DType == millrace.Invalid {
		return ""
	}
	return d.DType.String()
}

func (d *dtype) Set(s string) error {
	for _, dt := range []millrace.DType{millrace.Float32, millrace.Float64, millrace.Float16, millrace.BFloat16} {
		if dt.String() == s {
			d.DType = dt
			return nil
		}
	}
	return fmt.Errorf("%q: want float32, float64, float16 or bfloat16", s)
}

func (d dtype) size() int { return d.Size() }

// computed is the size of the floats that are computed with: arithmetic on 16-bit floats is in
// float32.
func (d dtype) computed() int { return max(d.Size(), 4) }
