// Command bench runs the benchmarks that github.com/gomlx/compute has for
// backends (backendtest.RunAllBenchmarks) on Millrace and on that module's own
// Go backend, in one process and in turns, and prints how they compare:
//
//	go run ./internal/bench                      everything, some minutes
//	go run ./internal/bench -run 'Softmax|Gelu'  a part
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/support/backendtest"
	"github.com/millrace-go/millrace/gomlxbackend"
)

type config struct {
	backends [2]string // what is compared with, and Millrace
	run      *regexp.Regexp
	rounds   int
	batch    time.Duration // how long one measurement lasts at least
	warm     time.Duration // how long a case is run before it is measured, at most
}

func main() {
	c := config{}
	flag.StringVar(&c.backends[0], "reference", "go", "backend to compare with")
	flag.StringVar(&c.backends[1], "backend", "millrace:cache=off", "backend to measure")
	pattern := flag.String("run", "", "cases: those whose name this regular expression matches")
	flag.IntVar(&c.rounds, "rounds", 11, "measurements of each case on each backend, in turns")
	flag.DurationVar(&c.batch, "batch", time.Millisecond, "length of one measurement; never less than one run")
	flag.DurationVar(&c.warm, "warm", 2*time.Second, "limit of the runs of a case before it is measured")
	flag.Parse()
	var err error
	if c.run, err = regexp.Compile(*pattern); err == nil && c.rounds < 1 {
		err = fmt.Errorf("-rounds %d: at least one is needed", c.rounds)
	}
	if err == nil {
		err = bench(c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(c config) error {
	var lists [2][]workload
	var devices [2]settler
	for i, name := range c.backends {
		b, err := compute.NewWithConfig(name)
		if err != nil {
			return err
		}
		defer b.Finalize()
		if m, ok := b.(*gomlxbackend.Backend); ok {
			devices[i] = m.Device()
		}
		if lists[i], err = collect(b, backendtest.RunAllBenchmarks); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	groups, err := group(lists, c.run)
	if err != nil {
		return err
	}
	fmt.Printf("| case | %s, µs | %s, µs | times faster | first run |\n|---|---|---|---|---|\n", c.backends[0], c.backends[1])
	var all []result
	for _, g := range groups {
		rs, err := measure(c, devices, g)
		if err != nil {
			return err
		}
		for _, r := range rs {
			fmt.Println(r.row())
		}
		all = append(all, rs...)
	}
	summary(os.Stdout, all)
	return nil
}
