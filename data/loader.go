package data

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	goruntime "runtime"
	"sync"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hostmem"
	"github.com/millrace-go/millrace/internal/portion"
)

// Options say how a [Loader] makes batches.
type Options struct {
	// Batch is the number of records in a batch, at least 1. A number above the source's length
	// stands for all records. Two batches must fit in the machine's memory.
	Batch    int
	Shuffle  bool   // each epoch has its own order; else always the order of the source
	Seed     uint64 // seed of the orders
	DropLast bool   // skip the last batch of an epoch if it is smaller than the others

	// Part and Parts make a loader read one of Parts parts of each batch of n records. An odd number
	// of parts is cut at n·Part/Parts, rounded down. An even number is half as many parts, each cut
	// in halves; the second half has the odd record. So the halves of a part are parts of the batch.
	// Loaders of all parts, with the same source and options, read each record once, and return the
	// same number of batches; in an epoch's last batch a part may have no records. Positions count
	// whole batches, so a State fits any number of parts. Parts is at most the records of a batch;
	// 0: 1.
	Part, Parts int

	// Workers is the number of goroutines that read records, at most 1024; 0: GOMAXPROCS, but at
	// most 4. The batches do not depend on it.
	Workers int
	// Prefetch is the number of batches that are put on the device in advance, at most 1024; 0: 2.
	// Two more batches are in Go's memory, which the loader keeps.
	Prefetch int
	// On is the place of batches: a [*millrace.Device] or [*millrace.Stream]; nil: the default
	// device.
	On millrace.Place
}

// Loader makes batches from the records of a source, epoch by epoch; each epoch has every record
// once. While a program computes with a batch, workers read the next ones, and the loader copies
// them to the device on its own stream.
//
// A loader has a position in an epoch, at first the beginning of epoch 0: see [Loader.Batches] and
// [State]. Only one goroutine may use it at a time.
type Loader struct {
	src    Source
	fields []Field
	opt    Options
	n      int // number of records

	dev *millrace.Device
	on  millrace.Place // dev, or a stream of it

	mu      sync.Mutex
	running bool
	state   State
	order   []uint32 // order of the epoch that was shuffled last
	ordered int      // that epoch; -1: none
	slots   []*slot  // slots that are not in use
}

// State is the position of a loader. Together with the source and the options it determines all
// further batches. It can be written as JSON.
type State struct {
	Epoch    int    `json:"epoch"`    // from 0
	Position int    `json:"position"` // records of the epoch that were returned
	Records  int    `json:"records"`  // number of records in the source
	Shuffle  bool   `json:"shuffle"`
	Seed     uint64 `json:"seed"`
}

const (
	usualWorkers    = 4    // default, at most
	maxWorkers      = 1024 // each has a goroutine
	defaultPrefetch = 2
	maxPrefetch     = 1024 // each has a place in a queue, and a batch's memory on the device
)

// NewLoader makes a loader. Invalid options, fields whose dtype the device lacks, and a source that
// gives no batch are errors.
func NewLoader(src Source, opt Options) (*Loader, error) {
	l, err := newLoader(src, opt)
	if err != nil {
		return nil, fmt.Errorf("data: loader: %w", err)
	}
	return l, nil
}

func newLoader(src Source, opt Options) (*Loader, error) {
	if src == nil {
		return nil, errors.New("the source is nil")
	}
	if opt.Workers == 0 {
		opt.Workers = min(goruntime.GOMAXPROCS(0), usualWorkers)
	}
	if opt.Prefetch == 0 {
		opt.Prefetch = defaultPrefetch
	}
	if opt.Parts == 0 {
		opt.Parts = 1
	}
	l := &Loader{src: src, fields: src.Fields(), opt: opt, n: src.Len(), ordered: -1}
	switch {
	case opt.Batch < 1:
		return nil, fmt.Errorf("a batch cannot have %d records", opt.Batch)
	case opt.Workers < 0 || opt.Workers > maxWorkers:
		return nil, fmt.Errorf("Workers is %d, it must be 1 to %d, or 0 for the usual number", opt.Workers, maxWorkers)
	case opt.Prefetch < 0 || opt.Prefetch > maxPrefetch:
		return nil, fmt.Errorf("Prefetch is %d, it must be 1 to %d, or 0 for %d", opt.Prefetch, maxPrefetch, defaultPrefetch)
	case opt.Parts < 0 || opt.Part < 0 || opt.Part >= opt.Parts:
		return nil, fmt.Errorf("part %d of %d does not exist", opt.Part, opt.Parts)
	case l.n < 1:
		return nil, errors.New("the source has no records")
	case opt.Parts > min(opt.Batch, l.n):
		return nil, fmt.Errorf("%d parts are more than the %d records of a batch", opt.Parts, min(opt.Batch, l.n))
	case opt.DropLast && l.n < opt.Batch:
		return nil, fmt.Errorf("%d records are fewer than a batch of %d", l.n, opt.Batch)
	case opt.Shuffle && uint64(l.n) > math.MaxUint32:
		return nil, fmt.Errorf("%d records to shuffle are more than %d", l.n, uint32(math.MaxUint32))
	}
	if err := checkFields(l.fields, min(opt.Batch, l.n)); err != nil {
		return nil, err
	}
	if err := l.fits(hostmem.Limit(math.MaxInt64)); err != nil {
		return nil, err
	}
	if err := l.place(); err != nil {
		return nil, err
	}
	for _, f := range l.fields {
		if !l.dev.Supports(f.DType) {
			return nil, fmt.Errorf("field %q: %w: %s has no %v", f.Name, millrace.ErrUnsupported, l.dev.Name(), f.DType)
		}
	}
	l.state = State{Records: l.n, Shuffle: opt.Shuffle, Seed: opt.Seed}
	return l, nil
}

// fits returns an error if a machine with that much memory cannot hold the batches.
func (l *Loader) fits(memory int64) error {
	records := int64(l.most())
	size := int64(0) // bytes of a record: its elements and the slot's overhead
	for _, f := range l.fields {
		size += int64(f.elems()*f.DType.Size()) + rowOverhead
	}
	if size > memory/hostSlots/records {
		return fmt.Errorf("%d batches of %d records, each of %d bytes, are more than the %d bytes of memory", hostSlots, records, size, memory)
	}
	return nil
}

// most returns the records that a batch of the loader's part may have.
func (l *Loader) most() int { return (min(l.opt.Batch, l.n)-1)/l.opt.Parts + 1 }

// cut returns the part's records of a batch of n: from and to.
func (l *Loader) cut(n int) (from, to int) { return portion.Of(n, l.opt.Parts, l.opt.Part) }

// place finds the device.
func (l *Loader) place() (err error) {
	switch p := l.opt.On.(type) {
	case nil:
		l.dev, err = millrace.Default()
		l.on = l.dev
	case *millrace.Device:
		l.dev, l.on = p, p
	case *millrace.Stream:
		l.dev, l.on = p.Device(), p
	default:
		return errors.New("batches cannot be in a scope: give a device or a stream")
	}
	if err == nil && l.dev == nil {
		return errors.New("the device or stream is nil")
	}
	return err
}

// Len is the number of batches in an epoch.
func (l *Loader) Len() int {
	if l.opt.DropLast {
		return l.n / l.opt.Batch
	}
	return (l.n-1)/l.opt.Batch + 1
}

// State returns the loader's position: in the body of a loop over [Loader.Batches], the position
// after the current batch.
func (l *Loader) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Restore sets the loader to a saved position: the following batches are those that followed there.
// A state with another number of records, seed or kind of order is an error, and so is Restore
// within a loop over Batches.
func (l *Loader) Restore(s State) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	want := State{Epoch: s.Epoch, Position: s.Position, Records: l.n, Shuffle: l.opt.Shuffle, Seed: l.opt.Seed}
	switch {
	case l.running:
		return errors.New("data: restore: a loop over the batches is running")
	case s != want:
		return fmt.Errorf("data: restore: the state is %+v, for a loader of %d records with Shuffle %v and Seed %d",
			s, want.Records, want.Shuffle, want.Seed)
	case s.Epoch < 0 || s.Position < 0 || s.Position >= l.n:
		return fmt.Errorf("data: restore: epoch %d, position %d of %d does not exist", s.Epoch, s.Position, l.n)
	}
	l.state = s
	l.settle()
	return nil
}

// settle moves to the next epoch if this one has no more batches.
func (l *Loader) settle() {
	left := l.n - l.state.Position
	if left <= 0 || l.opt.DropLast && left < l.opt.Batch {
		l.state.Epoch, l.state.Position = l.state.Epoch+1, 0
	}
}

// Batches returns the batches of an epoch from the loader's position to the end; then the loader is
// at the beginning of the next epoch. After a break, the loader is after the last returned batch,
// and the next loop continues there. A nil ctx is never done.
//
// The program owns a batch: [Batch.Release] frees its memory, or the collector does. An error of
// reading or copying ends the sequence after the batches before it; it is a [*RecordError] if one
// record caused it. The end of ctx also ends the sequence, with ctx's cause. The loader is then at
// the batch that failed.
//
// When the loop ends for any reason, all its goroutines have ended. A panic of [Source.Read]
// continues in the loop's goroutine.
func (l *Loader) Batches(ctx context.Context) iter.Seq2[*Batch, error] {
	if ctx == nil {
		ctx = context.Background()
	}
	return func(yield func(*Batch, error) bool) {
		from, err := l.begin()
		if err != nil {
			yield(nil, err)
			return
		}
		defer l.end()
		p := l.start(ctx, from)
		defer p.stop()
		for at := from.Position; ; {
			b, err := p.next()
			if err != nil {
				yield(nil, err)
				return
			}
			at += b.Whole
			l.given(b.Whole)
			if !yield(b, nil) || l.last(at) {
				return
			}
		}
	}
}

// last reports whether no batch begins at a position.
func (l *Loader) last(at int) bool {
	return at >= l.n || l.opt.DropLast && l.n-at < l.opt.Batch
}

// begin reserves the loader, and the order of its epoch, for one loop.
func (l *Loader) begin() (State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running {
		return State{}, errors.New("data: loader: another loop over its batches is running")
	}
	l.running = true
	if l.opt.Shuffle && l.ordered != l.state.Epoch {
		if l.order == nil {
			l.order = make([]uint32, l.n)
		}
		shuffle(l.order, l.opt.Seed, uint64(l.state.Epoch))
		l.ordered = l.state.Epoch
	}
	return l.state, nil
}

func (l *Loader) end() {
	l.mu.Lock()
	l.running = false
	l.mu.Unlock()
}

// given advances the loader by a batch that the program is about to get.
func (l *Loader) given(records int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Position += records
	l.settle()
}

// record returns the source's index of the record at a position of the epoch.
func (l *Loader) record(at int) int {
	if l.opt.Shuffle {
		return int(l.order[at])
	}
	return at
}

// Batch is some records, stacked along the first dimension of each tensor.
type Batch struct {
	X, Y    *millrace.Tensor   // the first two fields; Y is nil if there is only one
	Fields  []*millrace.Tensor // all of them
	Records []int              // the records' indices in the source
	Whole   int                // the number of records of all parts (Options.Parts)
	Epoch   int
}

// Len is the number of records, which may be 0 if the loader reads a part.
func (b *Batch) Len() int { return len(b.Records) }

// Release releases the tensors. Tensors computed from them stay valid.
func (b *Batch) Release() {
	for _, t := range b.Fields {
		t.Release()
	}
}

func (b *Batch) set(fields []*millrace.Tensor) {
	b.Fields, b.X = fields, fields[0]
	if len(fields) > 1 {
		b.Y = fields[1]
	}
}
