// Ours is Millrace as a contestant of bench/peers: default options, the API that
// everybody has, two ways to build it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/bench/peers/internal/talk"
	"github.com/millrace-go/millrace/internal/hostinfo"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) == 2 && os.Args[1] == "-versions" {
		m := hostinfo.This()
		return json.NewEncoder(os.Stdout).Encode(map[string]string{"go": m.Go, "millrace": m.Millrace})
	}
	return talk.Serve(os.Stdin, os.Stdout, prepare)
}

// now is the program that was made last.
var now program

// prepare loads a workload's inputs, and gives up those before.
func prepare(w talk.Work) (*talk.Program, error) {
	for _, x := range append(now.xs, now.last) {
		if x != nil {
			x.Release()
		}
	}
	now = program{}
	f, ok := programs[w.Workload]
	if !ok {
		return nil, talk.Unsupported("not written")
	}
	p := &now
	p.f = f
	for _, in := range w.Inputs {
		data, err := talk.ReadFloats(in.File)
		if err != nil {
			return nil, err
		}
		x := millrace.FromSlice(data, in.Shape...)
		if err := x.Eval(); err != nil {
			return nil, err
		}
		p.xs = append(p.xs, x)
	}
	if reads(w.Workload) {
		p.host = make([]float32, p.xs[0].Len())
	}
	return &talk.Program{Run: p.run, Write: p.write}, nil
}

// program runs one of the table again and again. The last result is kept until the
// next run is over, as a program does that has one variable for it.
type program struct {
	xs   []*millrace.Tensor
	f    func(x []*millrace.Tensor, step int) *millrace.Tensor
	last *millrace.Tensor
	host []float32 // where a run ends with reading its result
}

func (p *program) run(n int) (float64, error) {
	start := time.Now()
	for step := range n {
		y := p.f(p.xs, step)
		var err error
		if p.host != nil {
			err = millrace.ReadInto(p.host, y)
		} else {
			err = y.Eval()
		}
		if err != nil {
			return 0, err
		}
		if p.last != nil {
			p.last.Release()
		}
		p.last = y
	}
	return time.Since(start).Seconds() / float64(n), nil
}

func (p *program) write(file string) (int, error) {
	v, err := millrace.Values[float32](p.last)
	if err != nil {
		return 0, err
	}
	return len(v), talk.WriteFloats(file, v)
}
