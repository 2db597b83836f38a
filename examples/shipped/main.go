// Command shipped is a program that starts at full speed. It sharpens and grades a photograph,
// prepares the input of a classifier from it, and ends in the probabilities of a softmax head:
// some sixty operations, a few kernels.
//
//	go run ./examples/shipped                       as any program starts
//	go run ./examples/shipped -record plans.bundle  and write down its plans
//	make shipped                                    record, generate, build, run
//
// `make shipped` records the program's plans, turns them into a Go package with `fusebench plans
// gen`, and builds the program with it. The built program needs neither a C compiler nor a cache
// where it runs. Its first call explores and tunes nothing: it only makes machine code.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/examples/shipped/plans" // for its side effect, after it was generated
)

func main() {
	record := flag.String("record", "", "write the plans of this run to a `file`")
	asJSON := flag.Bool("json", false, "print the result as JSON")
	device := flag.String("device", "cpu", "`device` and options, as MILLRACE_DEVICE has them")
	flag.Parse()
	if err := run(os.Stdout, *device, *record, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "shipped:", err)
		os.Exit(1)
	}
}

// A report is how a run went.
type report struct {
	First, Hot    time.Duration // of the whole call, from pixels to probabilities
	Probabilities []float32
	Start, Stats  millrace.Stats // after the first call, and at the end
}

// hotCalls is how many calls follow the first one.
const hotCalls = 50

func run(w io.Writer, device, record string, asJSON bool) (err error) {
	o, err := millrace.ParseOptions(device)
	if err != nil {
		return err
	}
	if record != "" {
		o.Explore = millrace.ExploreWait // what is shipped is what was searched for
	}
	dev, err := millrace.OpenOptions(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	r, err := measure(dev)
	if err != nil {
		return err
	}
	if record != "" {
		if err := export(record); err != nil {
			return err
		}
		if !asJSON { // which is all that is printed then
			fmt.Fprintln(w, "wrote", record)
		}
	}
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	s := r.Start
	fmt.Fprintf(w, "first call %v, then %v\n", r.First.Round(time.Microsecond), r.Hot.Round(time.Microsecond))
	fmt.Fprintf(w, "in the first call: %d explorations, %d tunings, %d kernels made into machine code; of %d launches %d were interpreted\n",
		s.Explorations, s.Tunings, s.Runtime.NativeKernels, s.Runtime.Launches, s.Runtime.Tier0)
	return nil
}

// export writes down what the process used.
func export(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(millrace.ExportPlans(f, millrace.PlanFilter{}), f.Close())
}

// measure times the first call and those after it.
func measure(dev *millrace.Device) (r report, err error) {
	picture := photograph()
	m := newModel(dev)
	var times []time.Duration
	for call := range 1 + hotCalls {
		begin := time.Now()
		err := dev.Scope(func(*millrace.Scope) error {
			x := millrace.FromSliceOn(dev, picture, height, width, 3)
			r.Probabilities, err = millrace.Values[float32](m.classify(filter(x)))
			return err
		})
		if err != nil {
			return r, err
		}
		times = append(times, time.Since(begin))
		if call == 0 {
			r.Start = dev.Stats()
		}
	}
	r.First, times = times[0], times[1:]
	slices.Sort(times)
	r.Hot, r.Stats = times[len(times)/2], dev.Stats()
	return r, nil
}
