//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/internal/launcher"
	"github.com/millrace-go/millrace/internal/nap"
)

// longest is the most bytes of one message: MPI counts in 32-bit integers.
const longest = 1<<30 - 1<<16

// driver is a dist.Driver. All its methods run on the thread that called MPI_Init_thread.
type driver struct {
	*library
	info    dist.Info
	longest int     // the constant, except in tests
	few     int     // the same
	comm    uintptr // of collectives
	notes   notes
	active  []*pending
	begun   int // collectives that were begun
	closed  bool

	// Operands of calls that the library writes.
	flag   int32
	status [64]byte // more than any MPI_Status
}

// process is the state of MPI in this process: it starts once and never again.
var process struct {
	sync.Mutex
	opened bool
	driver *driver // keeps memory of operations that were never completed
}

func open(ctx context.Context) (dist.Driver, error) {
	d, err := start(ctx)
	if err != nil {
		return nil, fmt.Errorf("mpi: %w", err)
	}
	return d, nil
}

// start loads the library and starts MPI. Once MPI_Init has run there is no second try.
func start(ctx context.Context) (*driver, error) {
	process.Lock()
	defer process.Unlock()
	if process.opened {
		return nil, errors.New("MPI starts once in a process, and this one has started it before")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l := launcher.Find()
	d, err := initialize(l)
	if err != nil {
		return nil, err
	}
	process.opened, process.driver = true, d
	if err := d.join(l); err != nil {
		if d.info.Size <= 1 { // there is nobody else whom MPI_Finalize would wait for
			d.call("MPI_Finalize", d.finalize)
		}
		return nil, err
	}
	return d, nil
}

// initialize loads the library and calls MPI_Init_thread. Handlers of signals are then as before.
func initialize(l launcher.Launch) (*driver, error) {
	c, err := openSignals()
	if err != nil {
		return nil, err
	}
	saved := c.handlers()
	defer c.restore(saved)
	lib, err := find(l)
	if err != nil {
		return nil, err
	}
	d := &driver{library: lib, longest: longest, few: few}
	if err := d.call("MPI_Initialized", d.initialized, uintptr(unsafe.Pointer(&d.flag))); err != nil {
		return nil, err
	}
	if d.flag != 0 {
		return nil, fmt.Errorf("other code of this process has started MPI (%s)", d.version)
	}
	if err := d.call("MPI_Init_thread", d.initThread, 0, 0, uintptr(d.funneled), uintptr(unsafe.Pointer(&d.flag))); err != nil {
		return nil, err
	}
	if int(d.flag) < d.funneled && d.abi != &forum || d.flag == 0 {
		return nil, fmt.Errorf("%s does not work in programs with several threads (MPI_THREAD_FUNNELED)", d.version)
	}
	return d, nil
}

// join makes the communicators, and finds out who the ranks are.
func (d *driver) join(l launcher.Launch) error {
	var rank, size int32
	if err := d.call("MPI_Comm_rank", d.commRank, d.world, uintptr(unsafe.Pointer(&rank))); err != nil {
		return err
	}
	if err := d.call("MPI_Comm_size", d.commSize, d.world, uintptr(unsafe.Pointer(&size))); err != nil {
		return err
	}
	d.info = dist.Info{Rank: int(rank), Size: int(size), Library: d.version}
	d.notes.sent = make([]int, size)
	if size == 1 && l.Ranks > 1 {
		return fmt.Errorf("%s says that there are %d ranks, but the library %s (%s) knows only one: it belongs to another launcher; start the program with the launcher of that library, or set MILLRACE_MPI to a library of this launcher",
			l.By, l.Ranks, d.path, d.version)
	}
	if err := d.call("MPI_Comm_set_errhandler", d.commSetErrhandler, d.world, d.errorsReturn); err != nil {
		return err
	}
	for _, to := range []*uintptr{&d.comm, &d.notes.comm} {
		if err := d.call("MPI_Comm_dup", d.commDup, d.world, uintptr(unsafe.Pointer(to))); err != nil {
			return err
		}
		if err := d.call("MPI_Comm_set_errhandler", d.commSetErrhandler, *to, d.errorsReturn); err != nil {
			return err
		}
	}
	return d.meet()
}

// meet exchanges the names of machines.
func (d *driver) meet() error {
	const width = 256
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	d.info.Host = host
	send, recv, at := make([]byte, width), make([]byte, width*d.info.Size), make([]int, d.info.Size+1)
	copy(send, host)
	for r := range at {
		at[r] = r * width
	}
	p, err := d.AllGather(send, recv, at)
	if err != nil {
		return err
	}
	for {
		if _, err := d.Poll(); err != nil {
			return err
		}
		if done, err := p.Done(); done || err != nil {
			d.count(recv, width)
			return err
		}
		nap.For(50_000)
	}
}

// count finds the ranks of this machine among the names of all.
func (d *driver) count(hosts []byte, width int) {
	own := string(hosts[d.info.Rank*width:][:width])
	d.info.LocalRank, d.info.LocalSize = 0, 0
	for r := range d.info.Size {
		if string(hosts[r*width:][:width]) == own {
			if r < d.info.Rank {
				d.info.LocalRank++
			}
			d.info.LocalSize++
		}
	}
}

// Info returns what there is to know about this rank.
func (d *driver) Info() dist.Info { return d.info }

// Abort ends all processes of the job.
func (d *driver) Abort(code int) {
	if !d.closed {
		d.call("MPI_Abort", d.abort, d.world, uintptr(code))
	}
}

var errClosed = errors.New("mpi: the driver is closed")

// Close calls MPI_Finalize, which waits for all ranks.
func (d *driver) Close() error {
	if d.closed {
		return errClosed
	}
	if n := len(d.active); n > 0 {
		return fmt.Errorf("mpi: Close while %d collectives are pending", n)
	}
	if err := d.settle(); err != nil {
		return fmt.Errorf("mpi: %w", err)
	}
	d.closed = true // a library ends the process if MPI is called after MPI_Finalize
	for _, c := range []*uintptr{&d.notes.comm, &d.comm} {
		if err := d.call("MPI_Comm_free", d.commFree, uintptr(unsafe.Pointer(c))); err != nil {
			return fmt.Errorf("mpi: %w", err)
		}
	}
	if err := d.call("MPI_Finalize", d.finalize); err != nil {
		return fmt.Errorf("mpi: %w", err)
	}
	return d.leave()
}

// leave runs what the library would do when the process exits. MPICH 5 takes its leave of the
// launcher only then, in a function for atexit, which Go programs do not run; the launcher would
// kill the ranks that exit after the first one. The other libraries have left in MPI_Finalize.
func (d *driver) leave() error {
	if d.abi == &openMPI {
		return nil
	}
	if err := purego.Dlclose(d.so); err != nil {
		return fmt.Errorf("mpi: %s: %w", d.path, err)
	}
	return nil
}
