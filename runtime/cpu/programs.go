package cpu

import (
	goruntime "runtime"
	"slices"
	"sync"
	"weak"

	"github.com/millrace-go/millrace/codegen"
)

// A device knows its programs only as long as somebody else has them: plans, runs
// that go on, compilers and trials. A program that makes new kernels for ever drops
// old ones, and then all that belongs to them goes: code, in executable memory or in objects that were
// loaded (see objects). Nothing that runs is ever given
// back, as whoever runs a program has it.

// programs finds those that there are by their kernels. It is no part of the device,
// which cleanups must not keep alive.
type programs struct {
	mu    sync.Mutex
	byKey map[uint64][]weak.Pointer[program]
}

func newPrograms() *programs { return &programs{byKey: map[uint64][]weak.Pointer[program]{}} }

// find is the program of a kernel with this text, nil where there is none. The lock
// is held.
func (x *programs) find(key uint64, text string) *program {
	for _, w := range x.byKey[key] {
		if p := w.Value(); p != nil && p.text == text {
			return p
		}
	}
	return nil
}

// add makes a program known. The lock is held.
func (x *programs) add(key uint64, p *program) {
	x.byKey[key] = append(x.byKey[key], weak.Make(p))
	goruntime.AddCleanup(p, x.forget, key)
}

// forget drops what is left of programs of a key that are gone.
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

// all lists the programs that there are, in the order of their keys.
func (x *programs) all() (list []*program) {
	x.mu.Lock()
	defer x.mu.Unlock()
	keys := make([]uint64, 0, len(x.byKey))
	for key := range x.byKey {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		for _, w := range x.byKey[key] {
			if p := w.Value(); p != nil {
				list = append(list, p)
			}
		}
	}
	return list
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
	p, err := newProgram(d, k, key, text)
	if err != nil {
		return nil, err
	}
	x.add(key, p)
	return p, nil
}
