package serve

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/millrace-go/millrace"
)

// Options are a Batcher's options. The zero value takes the defaults.
type Options struct {
	Rows    int              // a batch has at most so many rows, unless one request has more; 0: 32
	Workers int              // batches that are computed at the same time; 0: GOMAXPROCS on the device cpu, else 2
	Device  *millrace.Device // where they are computed; nil: the default device
}

// Stats counts what a Batcher has done.
type Stats struct {
	Requests int64 // answered requests, also those answered with an error
	GivenUp  int64 // requests whose context ended before the answer
	Batches  int64 // runs of the Recording
	Rows     int64 // rows of all runs
	Again    int64 // requests that ran alone because a batch with them failed
}

// Batcher answers requests with the rows of a Recording's results. It is safe for concurrent use.
// T is the type of the inputs' elements, U that of the results'.
type Batcher[T, U millrace.Element] struct {
	shapes [][]int // of a row of each input
	sizes  []int   // elements of such a row
	opt    Options
	run    *millrace.Recording

	asked   chan *request[T, U]
	closing chan struct{}
	close   sync.Once
	workers sync.WaitGroup

	mu    sync.Mutex
	stats Stats
}

// request is one call of Run.
type request[T, U millrace.Element] struct {
	rows   int
	answer chan answer[U] // has room for one

	mu   sync.Mutex
	in   [][]T
	gone bool // its context has ended: nothing reads in any more
}

// answer is what a request gets.
type answer[U millrace.Element] struct {
	out   [][]U
	err   error
	panic *panicked
}

// panicked is a panic of the function.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) String() string {
	return fmt.Sprintf("serve: computing a request: %v\n\n%s", p.value, p.stack)
}

// New makes a Batcher of f, which gets a scope and an input for each of the rows' shapes. An input
// has the batch as its first axis: the dims of input i are the number of rows, which varies, and
// then those of row[i]. Each result must have the batch as its first axis too, and its row i may
// depend on row i of the inputs and on tensors that f reads from elsewhere, such as weights, only.
// f is recorded as [millrace.NewRecording] says, and called again when no recording fits.
//
// An input without a row shape, a shape with a dim below 1, and options below 0 are
// [millrace.ErrShape].
func New[T, U millrace.Element](f func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error), o Options, row ...[]int) (*Batcher[T, U], error) {
	if o.Rows < 0 || o.Workers < 0 {
		return nil, fmt.Errorf("%w: a Batcher cannot have %d rows and %d workers", millrace.ErrShape, o.Rows, o.Workers)
	}
	if len(row) == 0 {
		return nil, fmt.Errorf("%w: a Batcher needs the shape of a row of each input, and got none", millrace.ErrShape)
	}
	if o.Rows == 0 {
		o.Rows = 32
	}
	if o.Device == nil {
		dev, err := millrace.Default()
		if err != nil {
			return nil, err
		}
		o.Device = dev
	}
	if o.Workers == 0 {
		o.Workers = 2
		if o.Device.Name() == "cpu" {
			o.Workers = runtime.GOMAXPROCS(0)
		}
	}
	b := &Batcher[T, U]{opt: o, asked: make(chan *request[T, U]), closing: make(chan struct{})}
	var axes []millrace.Axes
	for i, shape := range row {
		n := 1
		for _, d := range shape {
			if d < 1 || n > math.MaxInt/d {
				return nil, fmt.Errorf("%w: a row of input %d of a Batcher cannot have shape %v", millrace.ErrShape, i, shape)
			}
			n *= d
		}
		b.shapes, b.sizes = append(b.shapes, slices.Clone(shape)), append(b.sizes, n)
		axes = append(axes, append(millrace.Axes{"batch"}, make(millrace.Axes, len(shape))...))
	}
	b.run = millrace.NewRecording(f, axes...)
	for range o.Workers {
		b.workers.Add(1)
		w := &worker[T, U]{b: b, stream: o.Device.NewStream(), data: make([][]T, len(b.sizes))}
		go w.work()
	}
	return b, nil
}

// Run computes one request: in has a slice for each input, with one row or several, the same number
// in each. It returns a new slice for each result, with as many rows. Run copies what it needs of in
// before it returns.
//
// If ctx ends first, Run returns its error, and the answer is dropped. An error of a batch is
// nobody's answer: its requests are computed once more, each alone, and those that fail again
// get their own error. If f panics then, Run panics with that value. Slices of other lengths are
// [millrace.ErrShape], results whose elements are not of U [millrace.ErrDType], and after Close
// Run returns [millrace.ErrClosed].
func (b *Batcher[T, U]) Run(ctx context.Context, in ...[]T) ([][]U, error) {
	rows, err := b.rowsOf(in)
	if err != nil {
		return nil, err
	}
	r := &request[T, U]{rows: rows, in: in, answer: make(chan answer[U], 1)}
	select {
	case <-b.closing: // if both are ready
		return nil, errClosed
	default:
	}
	select {
	case b.asked <- r:
	case <-ctx.Done():
		b.count(func(s *Stats) { s.GivenUp++ })
		return nil, ctx.Err()
	case <-b.closing:
		return nil, errClosed
	}
	select {
	case a := <-r.answer:
		if a.panic != nil {
			panic(a.panic)
		}
		return a.out, a.err
	case <-ctx.Done():
		r.mu.Lock()
		r.gone = true
		r.mu.Unlock()
		b.count(func(s *Stats) { s.GivenUp++ })
		return nil, ctx.Err()
	}
}

var errClosed = fmt.Errorf("%w: the Batcher was closed", millrace.ErrClosed)

// rowsOf returns the number of rows, which all inputs must have.
func (b *Batcher[T, U]) rowsOf(in [][]T) (rows int, err error) {
	if len(in) != len(b.sizes) {
		return 0, fmt.Errorf("%w: %d inputs were given to a Batcher that has %d", millrace.ErrShape, len(in), len(b.sizes))
	}
	for i, x := range in {
		n := len(x) / b.sizes[i]
		if n == 0 || n*b.sizes[i] != len(x) {
			return 0, fmt.Errorf("%w: input %d has %d elements, which are not rows of shape %v", millrace.ErrShape, i, len(x), b.shapes[i])
		}
		if i > 0 && n != rows {
			return 0, fmt.Errorf("%w: input %d has %d rows, but input 0 has %d", millrace.ErrShape, i, n, rows)
		}
		rows = n
	}
	return rows, nil
}

func (b *Batcher[T, U]) count(f func(*Stats)) {
	b.mu.Lock()
	f(&b.stats)
	b.mu.Unlock()
}

// Stats returns the counts so far.
func (b *Batcher[T, U]) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stats
}

// Close answers the requests that were taken, refuses the others with [millrace.ErrClosed], and
// releases the recording. It waits until that is done.
func (b *Batcher[T, U]) Close() error {
	b.close.Do(func() { close(b.closing) })
	b.workers.Wait()
	b.run.Release()
	return nil
}
