package cpu

import (
	goruntime "runtime"
	"slices"
	"sync"
	"weak"

	"github.com/millrace-go/millrace/codegen"
)

// A device holds only weak references to its programs. Plans, runs in progress, compilers and
// trials keep programs alive. If a user's program keeps making new kernels, old ones become
// unreachable, and everything that belongs to them is freed: machine code, and loaded objects (see
// objects). Running code is never freed, because the runner has a reference to the program.

// programs finds the live programs by their kernels. It is separate from the device because
// cleanups must not keep the device alive.
type programs struct {
	mu    sync.Mutex
	byKey map[uint64][]weak.Pointer[program]
}

func newPrograms() *programs { return &programs{byKey: map[uint64][]weak.Pointer[program]{}} }

// find returns the program of a kernel with this text, nil if there is none. The caller holds the
// lock.
func (x *programs) find(key uint64, text string) *program {
	for _, w := range x.byKey[key] {
		if p := w.Value(); p != nil && p.text == text {
			return p
		}
	}
	return nil
}

// add registers a program. The caller holds the lock.
func (x *programs) add(key uint64, p *program) {
	x.byKey[key] = append(x.byKey[key], weak.Make(p))
	goruntime.AddCleanup(p, x.forget, key)
}

// forget removes the dead entries of a key.
func (x *programs) forget(key uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	left := slices.DeleteFunc(x.byKey[key], func(w weak.Pointer[program]) bool { return w.Value() == nil })
	if len(left) == 0 {
		delete(x.byKey, key)
		return
	}
	x.byKey[key] = left
}

// build finds or makes the program of a kernel.
func (x *programs) build(d *device, k *codegen.Kernel) (*program, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	text := k.String()
	key := codegen.KeyOf(text)
	if p := x.find(key, text); p != nil {
		p.forgotten.Store(false)
		return p, nil
	}
	p, err := newProgram(d, k, text)
	if err != nil {
		return nil, err
	}
	x.add(key, p)
	return p, nil
}
