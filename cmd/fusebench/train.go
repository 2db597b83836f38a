package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace"
)

// drill has the values of train's own flags.
type drill struct {
	how   list // eager, recorded, bound
	steps int  // their losses are compared with those in float64
	small bool
}

func setupTrain() ([]cli.Flag, action) {
	c := &config{dtype: dtype{millrace.Float32}, modes: list{fused, unfused}, variants: lessonNames}
	d := &drill{how: hows[:2]}
	flags := slices.Concat(c.targetFlags(), c.timingFlags(), []cli.Flag{
		&cli.GenericFlag{Name: "variants", Value: &c.variants, Usage: "`steps` to time; makemore-HIDDENxBATCH and gpt-BATCH of any sizes, gruhand"},
		&cli.GenericFlag{Name: "how", Value: &d.how, Usage: "`ways` to run a step: some of " + strings.Join(hows, ", ")},
		&cli.IntFlag{Name: "steps", Value: 5, Destination: &d.steps, Config: decimal, Validator: from(0, maxSteps), Usage: "`steps` after which the loss is compared with float64's; 0: none"},
		&cli.BoolFlag{Name: "small", Destination: &d.small, Usage: "tiny models, to see that it works"},
	})
	return flags, func(io streams, args []string) error {
		if err := c.checkTiming(args); err != nil {
			return err
		}
		if c.dtype.size() < 4 {
			return usageError("train runs float32 and float64 only")
		}
		if err := checkLessons(c.variants); err != nil {
			return err
		}
		if err := among("-how", d.how, hows); err != nil {
			return err
		}
		return timeTrain(c, d, io)
	}
}

// timeTrain times every step on every device, one after another, because each needs much memory.
func timeTrain(c *config, d *drill, io streams) error {
	devices, err := targets(c, io)
	if err != nil {
		return err
	}
	var exact []float64
	report, err := c.report(io, len(devices)*len(c.variants), func(i int, share time.Duration, show *progress) (rows []Row, err error) {
		variant, k := c.variants[i/len(devices)], i%len(devices)
		if k == 0 {
			if exact, err = exactLosses(c, d, variant, show); err != nil {
				return nil, fmt.Errorf("%s in float64: %w", variant, err)
			}
		}
		return trainOn(c, d, devices[k], variant, exact, share, show), nil
	})
	return cmp.Or(err, report.failed())
}

// exactLosses returns the losses of the first steps in float64, on the CPU.
func exactLosses(c *config, d *drill, variant string, show *progress) ([]float64, error) {
	if d.steps == 0 {
		return nil, nil
	}
	show.say("%s: %d steps in float64", variant, d.steps)
	o, err := c.options("cpu", fused)
	if err != nil {
		return nil, err
	}
	dev, err := millrace.OpenOptions(o)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	l, err := newLearner(variant, dev, millrace.Float64, eager, d.small)
	if err != nil {
		return nil, err
	}
	defer l.close()
	return lossesOf(l, d.steps)
}

// trained is one way to run a step, while it is timed.
type trained struct {
	bench      *bench
	learner    *learner
	row        Row
	contestant *contestant
	steps      int // per sample
	soaks      bool
	hot        counts
	ops        int64
	ran        int64
}

func trainOn(c *config, d *drill, device, variant string, exact []float64, budget time.Duration, show *progress) []Row {
	start := time.Now()
	var all []*trained
	defer func() {
		for _, t := range all {
			if t.learner != nil {
				t.learner.close()
			}
			if t.bench != nil {
				t.bench.close()
			}
		}
	}()
	var cs []*contestant
	var benches []*bench
	for _, mode := range c.modes {
		for _, how := range d.how {
			show.say("%s: %s, %s and %s: first steps", device, variant, mode, how)
			t := newTrained(c, d, device, variant, mode, how, exact)
			all = append(all, t)
			if t.row.Error == "" {
				cs = append(cs, t.contestant)
				benches = append(benches, t.bench)
			}
		}
	}
	if err := warm(c.warmup, start.Add(budget/2), cs, benches, func(*contestant) {}); err != nil {
		return failedRows(all, err)
	}
	interleave(time.Now, budget-time.Since(start), c.runs, cs, func(round int, k *contestant) {
		show.part(round, c.runs, "%s: %s, run %d of %d", device, k.name, round+1, c.runs)
	})
	var rows []Row
	for _, t := range all {
		t.finish(all)
		rows = append(rows, t.row)
	}
	return rows
}

func failedRows(all []*trained, err error) (rows []Row) {
	for _, t := range all {
		if t.row.Error == "" {
			t.row.Error = err.Error()
		}
		rows = append(rows, t.row)
	}
	return rows
}

func newTrained(c *config, d *drill, device, variant, mode, how string, exact []float64) *trained {
	t := &trained{row: c.newRow("train", device, variant, mode), steps: 1, soaks: c.tier != "0"}
	t.row.Train = &TrainFigures{How: how, Loss: absent, Exact: absent}
	t.contestant = &contestant{name: fmt.Sprintf("%s %s %s", variant, mode, how)}
	fail := func(err error) *trained {
		t.row.Error = err.Error()
		return t
	}
	var err error
	if t.bench, err = openBench(c, device, mode); err != nil {
		return fail(err)
	}
	start := time.Now()
	if t.learner, err = newLearner(variant, t.bench.dev, c.dtype.DType, how, d.small); err != nil {
		return fail(err)
	}
	losses, err := lossesOf(t.learner, max(1, len(exact)))
	if err != nil {
		return fail(err)
	}
	t.row.ColdMS = number(time.Since(start).Seconds() * 1e3)
	t.row.Train.Loss = number(losses[len(losses)-1])
	if len(exact) > 0 {
		last := exact[len(exact)-1]
		t.row.Train.Exact = number(last)
		t.row.MaxAbsErr = number(math.Abs(losses[len(losses)-1] - last))
	}
	t.contestant.run = t.sample
	return t
}

// A kernel of a few elements is compiled only after some hundred runs. A sample therefore runs so
// many steps, or for so long, before it is timed; otherwise the compile would happen while it is
// timed.
const (
	soakSteps = 600
	soakTime  = 300 * time.Millisecond
)

// sample runs steps for about batchTime, waits for the last one, and returns the time of one.
func (t *trained) sample() (time.Duration, error) {
	dev := t.bench.dev
	for start, n := time.Now(), 0; t.soaks && !t.contestant.counting && n < soakSteps && time.Since(start) < soakTime; n++ {
		if err := t.step(); err != nil {
			return 0, err
		}
	}
	for {
		dev.ResetPeak()
		before := dev.Stats()
		start := time.Now()
		for range t.steps {
			if err := t.step(); err != nil {
				return 0, err
			}
		}
		took := time.Since(start)
		if took < batchTime && t.steps < 1<<16 {
			t.steps *= 2
			continue
		}
		if t.contestant.counting {
			after := dev.Stats()
			t.hot = t.hot.plus(countsOf(after), countsOf(before))
			t.ops += after.Ops - before.Ops
			t.row.PeakBytes = max(t.row.PeakBytes, after.Runtime.PeakBytes)
			t.ran += int64(t.steps)
		}
		return took / time.Duration(t.steps), nil
	}
}

// step runs one step and waits for its loss.
func (t *trained) step() error {
	loss, err := t.learner.one()
	if err == nil {
		err = loss.Eval()
	}
	if err == nil {
		t.learner.done(loss)
	}
	return err
}

func (t *trained) finish(all []*trained) {
	r := &t.row
	if err := t.contestant.err; err != nil && r.Error == "" {
		r.Error = err.Error()
	}
	if r.Error != "" || t.ran == 0 {
		return
	}
	r.count(t.bench.dev.Name(), t.hot, t.ran)
	r.Train.Ops = t.ops / t.ran
	r.time(t.contestant, nil)
	for _, o := range all {
		if o.row.Mode == unfused && o.row.Train.How == r.Train.How && r.Mode == fused {
			r.compare(t.contestant, o.contestant)
		}
	}
}
