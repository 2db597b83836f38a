// Command shiprun runs random programs and compares their results with the oracle, or times a chain
// of operations. A test makes it export its plans, generates a package of them in place of package
// plans, builds it again and runs it with that package.
//
// Engine part: no compatibility promise; use package millrace.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/apitest"
	"github.com/millrace-go/millrace/internal/progen"
	_ "github.com/millrace-go/millrace/internal/shiprun/plans" // for its side effect, once it is generated
	"github.com/millrace-go/millrace/ir"
)

// report is the output of a run.
type report struct {
	Open, First, Hot time.Duration // of the device, and of the chain
	Values           []float32     // of the chain
	Stats            millrace.Stats
}

func main() {
	record := flag.String("record", "", "write the plans to a `file`")
	device := flag.String("device", "cpu", "`device` and options")
	programs := flag.Int("programs", 5, "how many programs; 0 for the chain")
	flag.Parse()
	r, err := run(*device, *record, *programs)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shiprun:", err)
		os.Exit(1)
	}
}

func run(device, record string, programs int) (r report, err error) {
	begin := time.Now()
	dev, err := millrace.Open(device)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	r.Open = time.Since(begin)
	if programs == 0 {
		err = timeChain(dev, &r)
	}
	for seed := uint64(0); programs > 0 && err == nil; seed++ {
		prog := random(seed)
		if hasEmpty(prog) {
			continue // plans of such segments are not stored
		}
		if err = twice(dev, prog, seed); err != nil {
			err = fmt.Errorf("program %d: %w", seed, err)
		}
		programs--
	}
	if err != nil {
		return r, err
	}
	r.Stats = dev.Stats()
	if record == "" {
		return r, nil
	}
	f, err := os.Create(record)
	if err != nil {
		return r, err
	}
	return r, errors.Join(millrace.ExportPlans(f, millrace.PlanFilter{}), f.Close())
}

func random(seed uint64) *ir.Graph {
	c := progen.Config{MaxElems: 1000}
	if seed%2 == 1 {
		c.Groups = progen.AllGroups
	}
	return progen.New(6<<32+seed, c)
}

// hasEmpty reports whether a program has a tensor without elements.
func hasEmpty(prog *ir.Graph) bool {
	return slices.ContainsFunc(prog.Types(), func(t ir.TensorType) bool { return t.Shape.Elems() == 0 })
}

// twice runs a program two times, and compares the results.
func twice(dev *millrace.Device, prog *ir.Graph, seed uint64) error {
	inputs := progen.Inputs(prog, seed)
	want, err := ir.EvalGraph(prog, inputs)
	if err != nil {
		return err
	}
	for range 2 {
		tensors := apitest.Run(dev, prog, inputs)
		got := make([][]byte, len(prog.Outputs))
		for i, id := range prog.Outputs {
			if got[i], err = apitest.Bytes(tensors[id]); err != nil {
				return fmt.Errorf("%w\n%s", err, prog)
			}
		}
		if err := progen.Diff(prog, want, got); err != nil {
			return fmt.Errorf("%w\n%s", err, prog)
		}
		for _, t := range tensors {
			t.Release()
		}
	}
	return nil
}
