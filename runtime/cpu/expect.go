package cpu

import (
	"fmt"
	"sync/atomic"

	"github.com/millrace-go/millrace/internal/background"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/interp"
)

// maxExpected bounds the plans whose kernels wait to be built ahead of time. The kernels of a plan
// beyond that are built when it runs.
const maxExpected = 64

// expected builds kernels that will probably be needed soon, one after another.
type expected struct {
	dev   *device
	queue background.Queue[*expectation]
	count atomic.Int32 // plans that are queued or being built
	ended atomic.Bool
	// The most recently built programs, which may have no other reference yet; used by the queue
	// only.
	built [maxAhead]*program
	next  int
}

// maxAhead bounds the programs that are kept until Build is called for them: as many as the
// waiting plans have, with a few kernels each.
const maxAhead = 4 * maxExpected

// expectation is the kernels of a plan.
type expectation struct {
	kernels []runtime.Kernel
	blocks  bool        // prepare what all kernels need
	dropped atomic.Bool // the kernels are not needed any more
}

func (x *expected) init(d *device) {
	x.dev = d
	x.queue.Do = x.build
	x.queue.Add(&expectation{blocks: true}) // a program opens a device to run something
}

// Expect builds kernels in the background. If runs will wait for compiled code, it also prepares
// them for the compiler. drop cancels the kernels that have not been started.
func (d *device) Expect(kernels []runtime.Kernel) (drop func()) {
	x, e := &d.expected, &expectation{kernels: kernels}
	if x.ended.Load() {
		return func() {}
	}
	if x.count.Add(1) > maxExpected {
		x.count.Add(-1)
		return func() {}
	}
	x.queue.Add(e)
	return func() { e.dropped.Store(true) }
}

func (x *expected) build(e *expectation) {
	if e.blocks {
		interp.Prepare()
		return
	}
	defer x.count.Add(-1)
	for _, k := range e.kernels {
		if e.dropped.Load() || x.ended.Load() {
			return
		}
		x.one(k)
	}
}

// one builds a kernel. It ignores errors: Build reports them again to its caller. Kernels may come
// from outside the process, and a kernel that Build was not made for may make it panic. That panic
// is counted and reported, and the kernel is left to Build's callers.
func (x *expected) one(k runtime.Kernel) {
	d := x.dev
	defer func() {
		if r := recover(); r != nil {
			d.count.fallbacks.Add(1)
			d.report(fmt.Errorf("cpu: building a kernel beforehand: panic: %v", r))
		}
	}()
	prog, err := d.Build(k)
	if err != nil {
		return
	}
	p := prog.(*program)
	x.built[x.next] = p
	x.next = (x.next + 1) % maxAhead
	if d.comp != nil && d.waitsForCode() {
		_, _ = p.sched.lowered() // the compile reports the error again
	}
}

// wait returns when nothing is left to build.
func (x *expected) wait() { x.queue.Wait() }

// stop drops queued kernels, and waits for the one being built.
func (x *expected) stop() {
	x.ended.Store(true)
	x.wait()
}
