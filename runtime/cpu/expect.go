package cpu

import (
	"fmt"
	"sync/atomic"

	"github.com/millrace-go/millrace/internal/background"
	"github.com/millrace-go/millrace/runtime"
)

// maxExpected bounds the plans whose kernels wait to be built beforehand. Those
// of one that finds no place are built when it runs.
const maxExpected = 64

// expected builds kernels that will probably be wanted in a moment, one after
// another.
type expected struct {
	dev   *device
	queue background.Queue[*expectation]
	count atomic.Int32 // that are queued or built
	ended atomic.Bool
	// What was built last, of which nobody else may know yet; by the queue.
	built [maxAhead]*program
	next  int
}

// maxAhead bounds the programs that are kept until somebody asks for them: as many as
// the plans that wait have, if each has a few.
const maxAhead = 4 * maxExpected

// expectation is the kernels of a plan.
type expectation struct {
	kernels []runtime.Kernel
	blocks  bool        // what all kernels need is made ready, too
	dropped atomic.Bool // nobody wants them any more
}

func (x *expected) init(d *device) {
	x.dev = d
	x.queue.Do = x.build
	x.queue.Add(&expectation{blocks: true}) // a program opens a device to run something
}

// Expect builds kernels in the background, and where runs will wait for compiled
// code makes them ready for that. What it returns drops those that were not begun.
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
		fnIndex()
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

// one builds a kernel. What is wrong with it Build says once more to whoever
// wants it. Kernels come from outside the process, so one that Build was never meant to
// see may have it panic: that is counted and told, and the kernel is left to
// those who want it.
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
	if d.comp != nil && d.comp.waits() {
		_, _ = p.sched.lowered() // whoever compiles it finds the error again
	}
}

// wait returns when nothing is left to build.
func (x *expected) wait() { x.queue.Wait() }

// stop drops what was not begun, and waits for what was.
func (x *expected) stop() {
	x.ended.Store(true)
	x.wait()
}
