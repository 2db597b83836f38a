package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/paired"
)

// A load is a number of goroutines that use one service. Each has a stream and sends its next
// request when it has the response to the last.
type load struct {
	service    *service
	clients    []*client
	cancel     float64       // share of requests that are cancelled
	slice      time.Duration // duration of a round
	contestant *contestant   // its times are seconds per response

	hot     counts
	answers int64
	peak    int64 // bytes
}

// A client is one of those goroutines.
type client struct {
	stream  *millrace.Stream
	rng     *rand.Rand
	out     []float32
	usual   time.Duration // about the time of a response
	took    []float64     // seconds of each response
	late    []float64     // seconds from a context's end until the client knew of it
	answers int64         // in the last slice
	err     error
}

func newLoad(v *service, n int, cancel float64) *load {
	l := &load{service: v, cancel: cancel, contestant: &contestant{name: fmt.Sprintf("%s from %d", v.variant, n)}}
	for i := range n {
		l.clients = append(l.clients, &client{
			stream: v.bench.dev.NewStream(), rng: rand.New(rand.NewPCG(uint64(n), uint64(i))),
			out: make([]float32, len(v.alone[0])),
		})
	}
	l.contestant.run = l.run
	return l
}

// run lets all clients send requests for one slice, and returns the time per response.
func (l *load) run() (time.Duration, error) {
	dev := l.service.bench.dev
	dev.ResetPeak()
	before := countsOf(dev.Stats())
	var wg sync.WaitGroup
	start := time.Now()
	for _, c := range l.clients {
		wg.Go(func() { c.err = c.ask(l, start.Add(l.slice)) })
	}
	wg.Wait()
	took := time.Since(start)
	answers := int64(0)
	for _, c := range l.clients {
		if c.err != nil {
			return 0, c.err
		}
		answers += c.answers
	}
	if l.contestant.counting {
		after := dev.Stats()
		l.hot = l.hot.plus(countsOf(after), before)
		l.peak = max(l.peak, after.Runtime.PeakBytes)
		l.answers += answers
	}
	return took / time.Duration(max(answers, 1)), nil
}

// ask sends requests until the time is up, at least one that is answered.
func (c *client) ask(l *load, until time.Time) error {
	v := l.service
	c.answers = 0
	for c.answers == 0 || time.Now().Before(until) {
		ask := c.rng.IntN(len(v.asks))
		var ctx context.Context
		var stop context.CancelFunc
		var deadline time.Time
		start := time.Now()
		if c.rng.Float64() < l.cancel {
			// The deadline is anywhere in the request, and sometimes after the response.
			deadline = start.Add(time.Duration(1.5 * c.rng.Float64() * float64(c.usual)))
			ctx, stop = context.WithDeadline(context.Background(), deadline)
		}
		err := answers[v.way](v, ctx, c.stream, v.asks[ask], c.out)
		took := time.Since(start)
		if stop != nil {
			stop()
		}
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			if l.contestant.counting {
				c.late = append(c.late, max(time.Since(deadline), 0).Seconds())
			}
			continue
		case err != nil:
			return err
		}
		if err := v.wrong(ask, c.out); err != nil {
			return err
		}
		c.answers++
		if ctx == nil {
			c.usual = took
			if l.contestant.counting {
				c.took = append(c.took, took.Seconds())
			}
		}
	}
	return nil
}

// finish makes the load's row; one is the load of a single goroutine.
func (l *load) finish(one *load) Row {
	r := l.service.row
	r.Variant = fmt.Sprintf("%s/%d", l.service.variant, len(l.clients))
	if err := l.contestant.err; err != nil {
		r.Error = err.Error()
		return r
	}
	var took, late, worst []float64
	for _, c := range l.clients {
		took, late = append(took, c.took...), append(late, c.late...)
		if len(c.took) > 0 {
			worst = append(worst, paired.Quantile(c.took, 0.99))
		}
	}
	if l.answers == 0 || len(took) == 0 {
		return r
	}
	r.Runs, r.seconds = len(l.contestant.times), l.contestant.times
	r.MedianMS, r.MinMS = number(paired.Median(took)*1e3), number(paired.Minimum(took)*1e3)
	asked := l.answers + int64(len(late))
	r.count(r.Device, l.hot, asked)
	r.PeakBytes = l.peak
	f := blank(&ServeFigures{Goroutines: len(l.clients), Answers: l.answers, GivenUp: int64(len(late))})
	f.SliceMS = 0 // which readers have
	f.PerSecond, f.P99MS = number(1/paired.Median(l.contestant.times)), number(paired.Quantile(took, 0.99)*1e3)
	f.WorstP99MS, f.MaxMS = number(slices.Max(worst)*1e3), number(slices.Max(took)*1e3)
	if len(late) > 0 {
		f.LateP99MS, f.LateMaxMS = number(paired.Quantile(late, 0.99)*1e3), number(slices.Max(late)*1e3)
	}
	if one != nil {
		e := paired.Ratio(pairs(one.contestant, l.contestant))
		f.VsOne, f.VsOneLo, f.VsOneHi = number(e.Mid), number(e.Lo), number(e.Hi)
	}
	r.Serve = f
	return r
}
