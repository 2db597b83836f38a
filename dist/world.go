package dist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace"
)

// Options say how a World is opened. The zero value suits most programs.
type Options struct {
	// Driver is the name of a registered driver; "" is the one that a launcher started this process
	// for.
	Driver string
	// Opener, if not nil, is used in place of a registered driver.
	Opener *Opener
	// Deadline is how long a call waits for other ranks before the World fails; 0 is 5 minutes.
	Deadline time.Duration
	// Warn is how long a call waits before Log gets a line with the ranks that have not come; 0 is
	// 10 seconds.
	Warn time.Duration
	// Log gets that line, and the error of a World that is closed after it failed. nil writes to
	// standard error.
	Log func(line string)
	// AnyProgram allows ranks that run other executables, or on other processors.
	AnyProgram bool

	program string // in tests, in place of the executable's hash
}

func (o Options) withDefaults() Options {
	if o.Deadline <= 0 {
		o.Deadline = 5 * time.Minute
	}
	if o.Warn <= 0 {
		o.Warn = 10 * time.Second
	}
	if o.Log == nil {
		o.Log = func(line string) { fmt.Fprintln(os.Stderr, line) }
	}
	return o
}

// World is this process among the ranks of its job. Its methods may be called by several
// goroutines, but all ranks must call the collective ones in the same order.
type World struct {
	o        Options
	info     Info
	names    []string // of all ranks' machines
	loop     *loop
	lane     lane
	asked    atomic.Bool // this process was asked to stop
	stopping atomic.Bool // all ranks know that one was
	unnotify func()
	closing  sync.Once
	slow     sync.Once // a sum ran without machine code
	closed   error

	mu     sync.Mutex
	err    error
	failed chan struct{} // closed when err is set
	at     place
	heard  map[int]bool            // ranks whose Worlds have failed
	all    chan struct{}           // closed when all others have
	hosts  map[millrace.Device]any // lanes of host ops
}

// opClose is the last call of a World.
const opClose = "close"

// Open joins the job that this process belongs to, and waits until all ranks have opened their
// Worlds. Without a launcher, the job is this process alone.
//
// Errors are those of the driver; ctx's; ErrMismatch if the ranks run different executables; a
// [*RankError] if a rank does not come before the Deadline; and a launcher that started several
// ranks if no driver is registered.
func Open(ctx context.Context, o Options) (*World, error) {
	w := &World{o: o.withDefaults(), failed: make(chan struct{}), heard: map[int]bool{}, all: make(chan struct{})}
	w.at.since = time.Now() // before the first call
	open, err := w.opener()
	if err != nil {
		return nil, fmt.Errorf("dist: %w", err)
	}
	if err := w.start(ctx, open); err != nil {
		return nil, fmt.Errorf("dist: opening the driver: %w", err)
	}
	if w.info.Size == 1 {
		close(w.all)
	}
	hello := make(chan error, 1)
	go func() { hello <- w.hello() }()
	select {
	case err = <-hello:
	case <-ctx.Done():
		err = w.fail(w.ownFault(ctx.Err()))
	}
	if err != nil {
		w.farewell()
		w.loop.stop(func(Driver) {}, w.o.Deadline) // the process's end tells the launcher
		return nil, err
	}
	w.listen()
	hooked.Do(hook)
	return w, nil
}

// opener chooses the driver.
func (w *World) opener() (func(context.Context) (Driver, error), error) {
	o := w.o.Opener
	if o == nil {
		found, err := opener(w.o.Driver)
		if err != nil {
			return nil, err
		}
		o = &found
	}
	return o.Open, nil
}

// Rank is this process's number among the ranks, from 0.
func (w *World) Rank() int { return w.info.Rank }

// Size is the number of ranks.
func (w *World) Size() int { return w.info.Size }

// Info describes this rank.
func (w *World) Info() Info { return w.info }

// Err is the error that ended the World, or nil. All later calls return it.
func (w *World) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Stopping reports whether a rank was asked to stop, by SIGTERM. All ranks report it from the same
// call on, so that they can write a last checkpoint together. It waits for the calls that this rank has
// made or recorded, because a rank that is ahead of them would know less than others. A second signal
// ends the process.
func (w *World) Stopping() bool {
	w.lane.mu.Lock()
	last := w.lane.last
	w.lane.mu.Unlock()
	if last != nil {
		<-last.done
	}
	return w.stopping.Load()
}

// Barrier waits until all ranks have called it.
func (w *World) Barrier(ctx context.Context) error {
	return w.do(ctx, &call{plan: plan{op: "barrier"}})
}

// Close waits until all ranks have called it, and ends the driver. It is the last call: a rank that
// closes while others expect another call is an error of all.
//
// If the World has failed, Close gives the other ranks a second to notice it, logs the error and
// ends all processes of the job, this one included: MPI cannot go on without a rank. Close returns
// the World's error if the driver does not end the process, and if there is no other rank.
//
// A deferred Close would make an error of this rank look like a call that others did not make, so tell
// them first:
//
//	defer func() {
//		w.Fail(err)
//		err = errors.Join(err, w.Close())
//	}()
//
// Where Close itself is deferred, a panic becomes such an error.
func (w *World) Close() error {
	if v := recover(); v != nil {
		w.Fail(fmt.Errorf("the program panicked: %v\n\n%s", v, debug.Stack()))
		defer panic(v)
	}
	w.closing.Do(func() {
		w.complete(&call{plan: plan{op: opClose}})
		w.closed = w.end()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err == nil {
			w.err = ErrClosed
		}
	})
	return w.closed
}

// farewell tells the other ranks that the World has failed, and waits until they know, for a second
// at most.
func (w *World) farewell() {
	w.loop.request(func() {}) // its goroutine sends the notes
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-w.all:
	case <-t.C:
	}
}

// end ends the driver.
func (w *World) end() (err error) {
	if w.unnotify != nil {
		w.unnotify()
	}
	if err = w.Err(); err == nil || w.info.Size == 1 {
		var closed error
		if w.loop.stop(func(d Driver) { closed = d.Close() }, w.o.Deadline) {
			return errors.Join(err, closed)
		}
		return errors.Join(err, fmt.Errorf("dist: rank %d: the driver did not close within %v", w.info.Rank, w.o.Deadline))
	}
	w.farewell()
	w.o.Log(fmt.Sprintf("rank %d ends the job: %v", w.info.Rank, err))
	w.loop.stop(func(d Driver) { d.Abort(1) }, w.o.Deadline)
	return err
}

// heardFrom notes that another rank's World has failed.
func (w *World) heardFrom(r int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.heard[r] {
		return
	}
	if w.heard[r] = true; len(w.heard) == w.info.Size-1 {
		close(w.all)
	}
}
