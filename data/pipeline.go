package data

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace"
)

// A pipeline makes the batches of one loop. The feeder takes a slot, which is memory for a batch in
// Go, and divides its rows among the workers, which read records into it. The mover waits for the
// slots in their order and makes tensors of them. All queues are bounded: at most hostSlots batches
// are in Go's memory.
//
// Each goroutine ends when ctx is done, or when its input channel is closed.
type pipeline struct {
	l      *Loader
	ctx    context.Context
	cancel context.CancelFunc
	parent context.Context
	stream *millrace.Stream // for making the tensors
	free   chan *slot
	order  chan *slot // slots in the order of the batches
	tasks  chan task
	out    chan result
	all    sync.WaitGroup
}

// hostSlots is 2: one slot is copied to the device while another is filled.
const hostSlots = 2

// rowOverhead is the memory of a slot for each field of a row besides the elements: a slice header
// in an interface.
const rowOverhead = 48

// slot is a batch in Go's memory.
type slot struct {
	fields  []any   // by field: the elements of all rows
	rows    [][]any // by row, then by field: parts of fields
	records []int
	whole   int // records of all parts
	epoch   int
	left    atomic.Int32  // workers' tasks that are not finished
	done    chan struct{} // gets a value when left becomes 0
	mu      sync.Mutex
	row     int   // the first row that failed, and the error
	err     error // nil: no failure
	panic   *panicked
}

// task is a range of a slot's rows.
type task struct {
	s        *slot
	from, to int
}

// result is a batch on the device, or the error instead.
type result struct {
	b     *Batch
	err   error
	panic *panicked
}

// panicked is a panic of Source.Read.
type panicked struct {
	record int
	value  any
	stack  []byte
}

func (p *panicked) String() string {
	return fmt.Sprintf("data: reading record %d: %v\n\n%s", p.record, p.value, p.stack)
}

func (l *Loader) newSlot() *slot {
	n := l.most()
	s := &slot{rows: make([][]any, n), done: make(chan struct{}, 1)}
	for _, f := range l.fields {
		s.fields = append(s.fields, hostTypes[f.DType].make(n*f.elems()))
	}
	for r := range s.rows {
		s.rows[r] = make([]any, len(l.fields))
		for k, f := range l.fields {
			size := f.elems()
			s.rows[r][k] = hostTypes[f.DType].part(s.fields[k], r*size, (r+1)*size)
		}
	}
	return s
}

// start starts the goroutines that make the batches from a state to the end of its epoch.
func (l *Loader) start(ctx context.Context, from State) *pipeline {
	p := &pipeline{
		l: l, parent: ctx, stream: l.dev.NewStream(),
		free: make(chan *slot, hostSlots), order: make(chan *slot, hostSlots),
		tasks: make(chan task, l.opt.Workers), out: make(chan result, l.opt.Prefetch-1),
	}
	p.ctx, p.cancel = context.WithCancel(ctx)
	for len(l.slots) < hostSlots {
		l.slots = append(l.slots, l.newSlot())
	}
	for _, s := range l.slots {
		s.err, s.panic = nil, nil
		select { // of a loop that ended early
		case <-s.done:
		default:
		}
		p.free <- s
	}
	p.all.Go(func() { p.feed(from) })
	p.all.Go(p.move)
	for range l.opt.Workers {
		p.all.Go(p.work)
	}
	return p
}

// feed hands out the rows of slots to the workers, in the order of the batches.
func (p *pipeline) feed(from State) {
	defer close(p.order)
	defer close(p.tasks)
	l := p.l
	for at := from.Position; !l.last(at); {
		var s *slot
		select {
		case s = <-p.free:
		case <-p.ctx.Done():
			return
		}
		n := min(l.opt.Batch, l.n-at)
		first, end := l.cut(n)
		s.records, s.whole, s.epoch = make([]int, end-first), n, from.Epoch
		for r := range s.records {
			s.records[r] = l.record(at + first + r)
		}
		at += n
		if n = end - first; n == 0 {
			s.done <- struct{}{}
			p.order <- s
			continue
		}
		size := (n-1)/l.opt.Workers + 1
		s.left.Store(int32((n-1)/size + 1))
		p.order <- s // has room for all slots
		for r := 0; r < n; r += size {
			select {
			case p.tasks <- task{s, r, min(r+size, n)}:
			case <-p.ctx.Done():
				return
			}
		}
	}
}

// work reads records.
func (p *pipeline) work() {
	for t := range p.tasks {
		p.read(t)
	}
}

// read fills a range of a slot's rows, up to the first that fails. If Read panics, or ends its
// goroutine, the slot is still completed.
func (p *pipeline) read(t task) {
	r, ended := t.from, false
	defer func() {
		if !ended {
			// recover returns nil if runtime.Goexit ends the goroutine.
			t.s.fail(r, fmt.Errorf("its Read ended the goroutine"), &panicked{t.s.records[r], recover(), debug.Stack()})
		}
		if t.s.left.Add(-1) == 0 {
			t.s.done <- struct{}{}
		}
	}()
	for ; r < t.to; r++ {
		if p.ctx.Err() != nil {
			t.s.fail(r, context.Cause(p.ctx), nil)
			break
		}
		if err := p.l.src.Read(t.s.records[r], t.s.rows[r]); err != nil {
			t.s.fail(r, inRecord(t.s.records[r], err), nil)
			break
		}
	}
	ended = true
}

// fail keeps the failure of the first row, in whatever order the workers report.
func (s *slot) fail(row int, err error, p *panicked) {
	if p != nil && p.value == nil {
		err, p = inRecord(p.record, err), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil || row < s.row {
		s.row, s.err, s.panic = row, err, p
	}
}

// move makes tensors of filled slots.
func (p *pipeline) move() {
	for s := range p.order {
		select {
		case <-s.done:
		case <-p.ctx.Done():
			return
		}
		r := p.upload(s)
		if r.err == nil {
			p.free <- s // has room for all slots
		}
		select {
		case p.out <- r:
		case <-p.ctx.Done():
			r.release()
			return
		}
		if r.err != nil {
			return
		}
	}
}

// upload makes a batch of a slot. It returns after the elements are copied.
func (p *pipeline) upload(s *slot) result {
	if s.err != nil {
		return result{err: s.err, panic: s.panic}
	}
	n := len(s.records)
	ts := make([]*millrace.Tensor, len(p.l.fields))
	b := &Batch{Records: s.records, Whole: s.whole, Epoch: s.epoch}
	for k, f := range p.l.fields {
		h := hostTypes[f.DType]
		ts[k] = h.upload(p.stream, h.part(s.fields[k], 0, n*f.elems()), append([]int{n}, f.Shape...))
	}
	b.set(ts)
	for k, t := range ts {
		if err := t.Err(); err != nil {
			b.Release()
			return result{err: fmt.Errorf("data: field %q of a batch: %w", p.l.fields[k].Name, err)}
		}
	}
	return result{b: b}
}

func (r result) release() {
	if r.b != nil {
		r.b.Release()
	}
}

// next returns the next batch as handles in the requested place. It makes the handles in the
// program's goroutine, which keeps the order of recorded ops there deterministic.
func (p *pipeline) next() (*Batch, error) {
	if p.parent.Err() != nil {
		return nil, context.Cause(p.parent)
	}
	var r result
	select {
	case r = <-p.out:
	case <-p.parent.Done():
		return nil, context.Cause(p.parent)
	}
	switch {
	case r.panic != nil:
		panic(r.panic.String())
	case r.err != nil:
		return nil, r.err
	}
	defer r.release()
	b := &Batch{Records: r.b.Records, Whole: r.b.Whole, Epoch: r.b.Epoch}
	ts := make([]*millrace.Tensor, len(r.b.Fields))
	for k, t := range r.b.Fields {
		ts[k] = t.To(p.l.on)
	}
	b.set(ts)
	for k, t := range ts {
		if err := t.Err(); err != nil {
			b.Release()
			return nil, fmt.Errorf("data: field %q of a batch: %w", p.l.fields[k].Name, err)
		}
	}
	return b, nil
}

// stop ends the goroutines and releases the batches that the program did not get.
func (p *pipeline) stop() {
	p.cancel()
	p.all.Wait()
	for {
		select {
		case r := <-p.out:
			r.release()
			continue
		default:
		}
		break
	}
	p.stream.Close()
}
