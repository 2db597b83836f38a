// Command gomlx trains a small network of GoMLX, with Adam, first on GoMLX's own Go
// backend and then on Millrace: the same program, of which only the backend's name
// differs. It prints losses and the time of a step. Images are made up; the transformer
// reads a text, and then writes one, with the keys and values of its attention kept.
//
//	go run .                              a perceptron with two hidden layers
//	go run . -model cnn                   two convolutions and a layer behind them
//	go run . -model transformer -text input.txt -batch 16 -steps 300
//	go run . -backends millrace -steps 10000 -report 1000
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	_ "github.com/gomlx/compute/gobackend"
	_ "github.com/millrace-go/millrace/gomlxbackend"
)

func main() {
	c := config{}
	backends := flag.String("backends", "", "backends to train on, one after another, of which options are separated by + instead of commas (default go,millrace,"+
		"\nand of transformer go:ops_sequential,millrace: compute 0.1.3's Go backend with parallel ops never ends it on two cores)")
	flag.StringVar(&c.model, "model", "mlp", "network: "+strings.Join(names(), ", "))
	flag.IntVar(&c.batch, "batch", 128, "examples in a step")
	flag.IntVar(&c.hidden, "hidden", 512, "width of the first hidden layer of mlp, eight times the channels of cnn's first convolution, four times the length of transformer's vectors")
	flag.IntVar(&c.layers, "layers", 4, "layers of transformer")
	flag.IntVar(&c.context, "context", 64, "characters that transformer sees at once")
	flag.StringVar(&c.text, "text", "", "file that transformer learns from; some scenes of Shakespeare's where there is none")
	flag.IntVar(&c.generate, "generate", 60, "characters that transformer writes in the end")
	flag.IntVar(&c.steps, "steps", 100, "steps of training")
	flag.IntVar(&c.report, "report", 20, "steps between two lines of output")
	flag.Parse()
	if *backends == "" {
		*backends = "go,millrace"
		if c.model == "transformer" {
			*backends = "go:ops_sequential,millrace"
		}
	}
	if err := run(c, strings.Split(*backends, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "gomlx:", err)
		os.Exit(1)
	}
}

// run trains on each backend and compares with the first.
func run(c config, backends []string) error {
	var first *history
	for _, b := range backends {
		h, err := fit(c, strings.ReplaceAll(b, "+", ","), os.Stdout, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", b, err)
		}
		fmt.Printf("%s: loss %.4f, then %.4f; a step takes %v, the first %v\n", b, h.losses[0], h.losses[len(h.losses)-1], h.step(), h.times[0])
		if first == nil {
			first = h
			continue
		}
		fmt.Printf("%s: a step is %.1f times faster than on %s; losses differ by %.1e at most\n", b, first.step().Seconds()/h.step().Seconds(), backends[0], first.differ(h))
	}
	return nil
}
