package main

import (
	"fmt"
	"math"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// graph is a computation on two scalars in float64 that is timed forward and backward.
type graph struct {
	about string
	a, b  float64
	// forward computes the graph by ops.
	forward func(a, b *millrace.Tensor) *millrace.Tensor
	// plain computes the result and its derivatives as a programmer would write it who needs only
	// this graph, from memory and into memory.
	plain func(at *point)
}

// point has a graph's inputs, its result and its derivatives.
type point struct{ a, b, g, da, db float64 }

// graphs are the graphs that BurTorch is timed with.
var graphs = map[string]graph{
	"tiny":  {"10 nodes", -41, 2, tinyGraph, tinyPlain},
	"small": {"micrograd's example, 32 nodes", -4, 2, smallGraph, smallPlain},
}

// tinyGraph is c = a+b, d = a*b + b^3, e = c-d, f = e^2, g = f/2.
func tinyGraph(a, b *millrace.Tensor) *millrace.Tensor {
	c := a.Add(b)
	d := a.Mul(b).Add(b.PowInt(3))
	return c.Sub(d).Square().DivScalar(2)
}

//go:noinline
func tinyPlain(at *point) {
	a, b := at.a, at.b
	b2 := b * b
	c := a + b
	d := float64(a*b) + float64(b2*b)
	e := c - d
	f := e * e
	at.g = f / 2
	de := e // derivative of f/2: 2e/2
	dd := -de
	at.da = de + float64(dd*b)
	at.db = de + float64(dd*a) + float64(dd*3*b2)
}

// smallGraph is the example in micrograd's README.
func smallGraph(a, b *millrace.Tensor) *millrace.Tensor {
	c := a.Add(b)
	d := a.Mul(b).Add(b.PowInt(3))
	c = c.Add(c.AddScalar(1))
	c = c.Add(c.AddScalar(1).Sub(a))
	d = d.Add(d.MulScalar(2).Add(b.Add(a).Relu()))
	d = d.Add(d.MulScalar(3).Add(b.Sub(a).Relu()))
	e := c.Sub(d)
	f := e.Square()
	return f.DivScalar(2).Add(f.ScalarDiv(10))
}

//go:noinline
func smallPlain(at *point) {
	a, b := at.a, at.b
	b2 := b * b
	c1 := a + b
	d1 := float64(a*b) + float64(b2*b)
	c2 := c1 + (c1 + 1)
	c3 := c2 + (1 + c2 - a)
	sum, diff := b+a, b-a
	d2 := d1 + (float64(d1*2) + max(sum, 0))
	d3 := d2 + (float64(3*d2) + max(diff, 0))
	e := c3 - d3
	f := e * e
	q := 10 / f
	at.g = f/2 + q
	df := 0.5 - q/f
	de := 2 * e * df
	dd := -de * 4 // derivative by d2
	da, db := -de, 0.0
	if diff > 0 {
		da, db = da+de, db-de
	}
	if sum > 0 {
		da, db = da+dd, db+dd
	}
	dd1 := dd * 3
	dc1 := de * 4
	at.da = da + dc1 + float64(dd1*b)
	at.db = db + dc1 + float64(dd1*a) + float64(dd1*3*b2)
}

// recording computes a graph's result and its derivatives.
func (g *graph) recording() *millrace.Recording {
	return millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return g.both(in[0], in[1])
	})
}

// both returns the result, and the derivatives with respect to a and b.
func (g *graph) both(a, b *millrace.Tensor) ([]*millrace.Tensor, error) {
	a, b = autodiff.Watch(a), autodiff.Watch(b)
	defer a.Release()
	defer b.Release()
	y := g.forward(a, b)
	d, err := autodiff.Grad(y, a, b)
	if err != nil {
		return nil, err
	}
	return append([]*millrace.Tensor{autodiff.Detach(y)}, d...), nil
}

// plainLoop is how many times the plain function runs in one sample loop.
const plainLoop = 64

// ways returns the ways to run the graph, after the plain one. All give the same results.
func (g *graph) ways(dev *millrace.Device, how list) (runs []*scalarRun, done func(), err error) {
	at := &point{a: g.a, b: g.b}
	g.plain(at)
	want := []float64{at.g, at.da, at.db}
	runs = append(runs, &scalarRun{many: plainLoop, row: Row{Mode: plain}, once: func() error {
		for range plainLoop { // a loop, so that the call of once is hardly timed
			g.plain(at)
		}
		return nil
	}})
	s := dev.NewStream()
	in := []*millrace.Tensor{millrace.ScalarOn(dev, g.a), millrace.ScalarOn(dev, g.b)}
	rec := g.recording()
	var closers []func() error
	done = func() {
		for _, f := range closers {
			_ = f()
		}
		rec.Release()
	}
	defer func() {
		if err != nil {
			done()
		}
	}()
	for _, mode := range how {
		r := &scalarRun{dev: dev, row: Row{Mode: mode}}
		var results []*millrace.Tensor
		switch mode {
		case eager:
			r.once = func() error {
				return s.Scope(func(sc *millrace.Scope) error {
					out, err := g.both(in[0].To(sc), in[1].To(sc))
					if err != nil {
						return err
					}
					return out[2].Eval()
				})
			}
		case recorded:
			r.once = func() error {
				out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, in...)
				for _, x := range out {
					x.Release()
				}
				return err
			}
			if results, err = rec.RunWith(nil, millrace.RunOptions{On: s}, in...); err != nil {
				return nil, nil, err
			}
		default:
			b, err := rec.BindWith(millrace.BindOptions{On: s}, in...)
			if err != nil {
				return nil, nil, err
			}
			closers = append(closers, b.Close)
			if r.once = b.Run; mode == looped {
				r.many, r.once = loopLength, func() error { return b.RunN(loopLength) }
			}
			if err := b.Run(); err != nil {
				return nil, nil, err
			}
			results = b.Results()
		}
		for i, x := range results {
			got, err := millrace.Item[float64](x)
			if err != nil {
				return nil, nil, err
			}
			if math.Abs(got-want[i]) > 1e-12*math.Abs(want[i]) {
				return nil, nil, fmt.Errorf("%s: result %d is %v, in plain Go %v", mode, i, got, want[i])
			}
		}
		runs = append(runs, r)
	}
	return runs, done, nil
}
