package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/paired"
)

// waitSlice is the longest time that a reader should wait: one slice of the other streams' work.
const waitSlice = 10 * time.Millisecond

// patience is how long a reader waits before its neighbour is stopped. The figure of a starved
// reader is then a large number, instead of a run that never ends.
const patience = 2 * time.Second

// neighbours are the programs that run without end beside a reader, on a stream that is never
// read.
var neighbours = []struct {
	name string
	dims []int
	step func(x, w *millrace.Tensor) *millrace.Tensor
}{
	{"elementwise", []int{4096, 1024}, func(x, _ *millrace.Tensor) *millrace.Tensor {
		return x.MulScalar(1.0001).AddScalar(0.1).Tanh()
	}},
	{"products", []int{1024, 1024}, func(x, w *millrace.Tensor) *millrace.Tensor { return x.MatMul(w) }},
}

// A reader computes three numbers and reads them, again and again, beside such a neighbour.
type reader struct {
	bench      *bench
	row        Row
	slice      time.Duration
	dims       []int // of the neighbour's tensors
	step       func(x, w *millrace.Tensor) *millrace.Tensor
	costly     time.Duration // the time of a run that makes the contestant costly
	contestant *contestant
	hot        counts
	waits      []float64 // seconds
}

func newReader(c *config, b *bench, neighbour int, costly time.Duration) *reader {
	n := neighbours[neighbour]
	r := &reader{bench: b, dims: n.dims, step: n.step, costly: costly, row: c.newRow(serveSuite.name, b.dev.Name(), "reader/"+n.name, b.mode)}
	r.row.Shape = n.dims
	r.contestant = &contestant{name: "reader beside " + n.name, run: r.run}
	return r
}

// run reads for one slice and returns the mean wait.
func (r *reader) run() (time.Duration, error) {
	begin := time.Now()
	dev := r.bench.dev
	before := countsOf(dev.Stats())
	busy, s := dev.NewStream(), dev.NewStream()
	var stop atomic.Bool
	started, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- r.work(busy, started, &stop) }()
	<-started
	sum, n, err := time.Duration(0), 0, error(nil)
	for start := time.Now(); err == nil && (n == 0 || time.Since(start) < r.slice); n++ {
		var wait time.Duration
		impatient := time.AfterFunc(patience, func() { stop.Store(true) })
		wait, err = r.read(s)
		impatient.Stop()
		sum += wait
		if r.contestant.counting && err == nil {
			r.waits = append(r.waits, wait.Seconds())
		}
	}
	stop.Store(true)
	err = errors.Join(err, <-ended, busy.Close(), s.Close())
	if r.contestant.counting {
		r.hot = r.hot.plus(countsOf(dev.Stats()), before)
	}
	r.contestant.costly = time.Since(begin) > r.costly
	return sum / time.Duration(max(n, 1)), err
}

// ahead is how many steps the neighbour has recorded when the reader begins: more operations than
// a stream holds before it runs some by itself.
const ahead = 80

// work records steps until it is told to stop.
func (r *reader) work(s *millrace.Stream, started chan<- struct{}, stop *atomic.Bool) error {
	x := millrace.FullOn(s, millrace.Float32, 0.5, r.dims...)
	w := millrace.FullOn(s, millrace.Float32, 1/float64(r.dims[1]), r.dims[1], r.dims[1])
	for i := 0; i <= ahead || !stop.Load(); i++ {
		if i == ahead {
			close(started)
		}
		next := r.step(x, w)
		x.Release()
		x = next
	}
	err := s.Sync(context.Background())
	x.Release()
	w.Release()
	return err
}

func (r *reader) read(s *millrace.Stream) (time.Duration, error) {
	start := time.Now()
	err := s.Scope(func(sc *millrace.Scope) error {
		var out [3]float32
		if err := millrace.ReadInto(out[:], millrace.FromSliceOn(sc, []float32{1, 2, 3}).MulScalar(2).AddScalar(1)); err != nil {
			return err
		}
		if out != [3]float32{3, 5, 7} {
			return fmt.Errorf("%w: %v, want 3, 5, 7", errWrong, out)
		}
		return nil
	})
	return time.Since(start), err
}

func (r *reader) finish() Row {
	row := r.row
	if err := r.contestant.err; err != nil {
		row.Error = err.Error()
		return row
	}
	if len(r.waits) == 0 {
		return row
	}
	row.Runs, row.seconds = len(r.contestant.times), r.contestant.times
	row.MedianMS, row.MinMS = number(paired.Median(r.waits)*1e3), number(paired.Minimum(r.waits)*1e3)
	row.ExplorationsHot, row.CompilesHot, row.AllocsHot = r.hot.explorations, r.hot.compiles, r.hot.allocs
	row.Tier = tierName(row.Device, r.hot)
	over := int64(0)
	for _, w := range r.waits {
		if w > waitSlice.Seconds() {
			over++
		}
	}
	f := blank(&ServeFigures{Goroutines: 2, Answers: int64(len(r.waits)), OverSlice: &over})
	f.SliceMS, f.P99MS, f.MaxMS = number(milliseconds(waitSlice)), number(paired.Quantile(r.waits, 0.99)*1e3), number(slices.Max(r.waits)*1e3)
	row.Serve = f
	return row
}
