// Command programs times small programs of the kind that people run with GoMLX, training
// steps and a search, on GoMLX's Go backend, on the same with SIMD, and on Millrace, in turns:
//
//	GOEXPERIMENT=simd go run .            everything, some minutes
//	GOEXPERIMENT=simd go run . -run lstm  a part
//
// Three times are taken of each: of the first step of a process, of steps of one size once
// nothing is made in the background any more, and of steps each of which has another size
// for the first time, for which GoMLX builds a graph. Its tests compare the numbers.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

type config struct {
	backends []string
	run      *regexp.Regexp
	rounds   int
	batch    time.Duration
	warm     time.Duration
	plain    bool
}

func main() {
	c := config{}
	backends := flag.String("backends", "go,millrace:cache=off", "backends to compare, of which options are separated by + instead of commas")
	pattern := flag.String("run", "", "programs: those whose name this regular expression matches")
	flag.IntVar(&c.rounds, "rounds", 11, "measurements of each program on each backend, in turns, and new sizes")
	flag.DurationVar(&c.batch, "batch", 20*time.Millisecond, "length of one measurement at a known size; never less than one step")
	flag.DurationVar(&c.warm, "warm", 20*time.Second, "limit of the steps before known sizes are measured")
	flag.BoolVar(&c.plain, "plain", true, "where this is built with GOEXPERIMENT=simd, build it without, too, and compare with the Go backend in there")
	served := flag.String("serve", "", "backend on which steps are run as standard input asks for them; for the program itself")
	flag.Parse()
	var err error
	switch c.run, err = regexp.Compile(*pattern); {
	case err != nil:
	case *served != "":
		err = serve(*served, os.Stdin, os.Stdout)
	case c.rounds < 1:
		err = fmt.Errorf("-rounds %d: at least one is needed", c.rounds)
	default:
		for _, b := range strings.Split(*backends, ",") {
			c.backends = append(c.backends, strings.ReplaceAll(b, "+", ","))
		}
		err = bench(c, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "programs:", err)
		os.Exit(1)
	}
}
