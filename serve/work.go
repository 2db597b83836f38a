package serve

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/millrace-go/millrace"
)

// worker computes batches, on a stream of its own.
type worker[T, U millrace.Element] struct {
	b      *Batcher[T, U]
	stream *millrace.Stream
	batch  []*request[T, U] // what is to be answered
	rows   int              // of the batch
	next   *request[T, U]   // it did not fit into the batch
	data   [][]T            // the batch's inputs
}

// work answers requests until the Batcher is closed.
func (w *worker[T, U]) work() {
	ended := true // by the function, with runtime.Goexit
	defer func() {
		if ended {
			go w.work()
			return
		}
		w.b.workers.Done()
	}()
	if len(w.batch) > 0 { // the function ended the goroutine in it
		w.alone()
	}
	for w.take() {
		w.answer()
	}
	_ = w.stream.Close() // the streams' errors were those of requests
	ended = false
}

var errEnded = errors.New("the function of a Batcher ended its goroutine")

// take waits for a request, and takes those that wait with it. It returns false after Close.
func (w *worker[T, U]) take() bool {
	w.empty()
	if r := w.next; r != nil {
		w.next = nil
		w.add(r)
	}
	for len(w.batch) == 0 {
		select {
		case r := <-w.b.asked:
			w.add(r)
		case <-w.b.closing:
			return false
		}
	}
	for w.rows < w.b.opt.Rows {
		select {
		case r := <-w.b.asked:
			if w.rows+r.rows > w.b.opt.Rows {
				w.next = r
				return true
			}
			w.add(r)
		default:
			return true
		}
	}
	return true
}

func (w *worker[T, U]) empty() {
	clear(w.batch)
	w.batch, w.rows = w.batch[:0], 0
	for i := range w.data {
		w.data[i] = w.data[i][:0]
	}
}

// add copies a request's rows into the batch, unless its context has ended.
func (w *worker[T, U]) add(r *request[T, U]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return
	}
	for i, x := range r.in {
		w.data[i] = append(w.data[i], x...)
	}
	w.batch, w.rows = append(w.batch, r), w.rows+r.rows
}

// answer computes the batch. If that fails, it computes each request alone, so that only those that
// cause it get an error.
func (w *worker[T, U]) answer() {
	returned := false
	defer func() {
		if !returned && len(w.batch) == 1 { // the function ended the goroutine
			w.failed(errEnded, nil)
			w.empty()
		}
	}()
	out, err, p := w.compute()
	returned = true
	if err != nil || p != nil {
		if len(w.batch) == 1 {
			w.failed(err, p)
			return
		}
		w.alone()
		return
	}
	at := 0
	for _, r := range w.batch {
		part := make([][]U, len(out))
		for i, v := range out {
			n := len(v) / w.rows
			part[i] = v[at*n : (at+r.rows)*n : (at+r.rows)*n]
		}
		at += r.rows
		r.answer <- answer[U]{out: part}
	}
	w.b.count(func(s *Stats) { s.Requests += int64(len(w.batch)) })
}

// alone answers the requests of the batch one by one.
func (w *worker[T, U]) alone() {
	all := append([]*request[T, U](nil), w.batch...)
	w.b.count(func(s *Stats) { s.Again += int64(len(all)) })
	left := all
	defer func() { w.batch = left }() // for work, if the function ends the goroutine
	for i, r := range all {
		w.empty()
		left = all[i+1:]
		if w.add(r); len(w.batch) == 1 {
			w.answer()
		}
	}
	left = nil
}

// failed answers the whole batch with an error or a panic.
func (w *worker[T, U]) failed(err error, p *panicked) {
	for _, r := range w.batch {
		r.answer <- answer[U]{err: err, panic: p}
	}
	w.b.count(func(s *Stats) { s.Requests += int64(len(w.batch)) })
}

// compute runs the batch, and returns the elements of the results.
func (w *worker[T, U]) compute() (out [][]U, err error, p *panicked) {
	w.b.count(func(s *Stats) { s.Batches, s.Rows = s.Batches+1, s.Rows+int64(w.rows) })
	defer func() {
		if v := recover(); v != nil {
			p = &panicked{v, debug.Stack()}
		}
	}()
	in := make([]*millrace.Tensor, len(w.data))
	for i, x := range w.data {
		in[i] = millrace.FromSliceOn(w.stream, x, append([]int{w.rows}, w.b.shapes[i]...)...)
		defer in[i].Release()
	}
	results, err := w.b.run.RunWith(context.Background(), millrace.RunOptions{On: w.stream}, in...)
	if err != nil {
		return nil, err, nil
	}
	for _, y := range results {
		defer y.Release()
	}
	for i, y := range results {
		if y.Rank() == 0 || y.Dim(0) != w.rows {
			return nil, fmt.Errorf("%w: result %d of the function of a Batcher has shape %v for a batch of %d rows", millrace.ErrShape, i, y.Shape(), w.rows), nil
		}
		v, err := millrace.Values[U](y)
		if err != nil {
			return nil, err, nil
		}
		out = append(out, v)
	}
	return out, nil, nil
}
