package device

import (
	"cmp"
	"slices"
	"sync"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
)

// looseLimit bounds the programs that belong to no plan. They are programs of single ops, which an
// op-by-op run is likely to need again soon.
const looseLimit = 512

// programs holds the programs of a device's plans, shared between plans, and a limited number of
// others. The driver is told of each program that is dropped.
type programs struct {
	mu    sync.Mutex
	byKey map[uint64][]*shared
	loose int    // number of programs without a plan
	uses  uint64 // number of requests, as a clock
}

// shared is a program with the number of known plans that use it.
type shared struct {
	prog  runtime.Program
	text  string // text of its kernel
	plans int
	used  uint64 // value of the clock at the last request
}

// Program builds a kernel, or returns the program of an equal kernel, and adds plans to its number
// of plans. It also returns the kernel's text, which takes time to print.
func (d *Base) Program(k runtime.Kernel, plans int) (runtime.Program, string, error) {
	x := &d.progs
	text := k.String()
	key := codegen.KeyOf(text)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.uses++
	for _, p := range x.byKey[key] {
		if p.text == text {
			if p.plans == 0 && plans > 0 {
				x.loose--
			}
			p.plans += plans
			p.used = x.uses
			return p.prog, p.text, nil
		}
	}
	p, err := d.Driver.Build(k)
	if err != nil {
		return nil, "", err
	}
	if x.byKey == nil {
		x.byKey = map[uint64][]*shared{}
	}
	x.byKey[key] = append(x.byKey[key], &shared{p, text, plans, x.uses})
	if plans == 0 {
		d.loosened()
	}
	return p, text, nil
}

// Retire drops the programs of a plan that will not be found again. The driver is told of those
// that no other plan uses.
func (d *Base) Retire(progs []runtime.Program) { d.release(progs, false) }

// Spend is Retire for a plan that is made again at each run: its programs stay for a while.
func (d *Base) Spend(progs []runtime.Program) { d.release(progs, true) }

func (d *Base) release(progs []runtime.Program, keep bool) {
	x := &d.progs
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range progs {
		key := p.Kernel().Key()
		i := slices.IndexFunc(x.byKey[key], func(s *shared) bool { return s.prog == p })
		if i < 0 {
			continue
		}
		s := x.byKey[key][i]
		if s.plans--; s.plans > 0 {
			continue
		}
		if keep {
			d.loosened()
		} else {
			d.forget(s)
		}
	}
}

// loosened counts a program that lost its last plan. Above the limit it drops the least recently
// requested ones. The caller holds the lock.
func (d *Base) loosened() {
	x := &d.progs
	if x.loose++; x.loose <= looseLimit {
		return
	}
	var list []*shared
	for _, same := range x.byKey {
		for _, s := range same {
			if s.plans == 0 {
				list = append(list, s)
			}
		}
	}
	slices.SortFunc(list, func(a, b *shared) int { return cmp.Compare(a.used, b.used) })
	for _, s := range list[:len(list)/2] {
		d.forget(s)
	}
	x.loose -= len(list) / 2
}

// forget drops a program and tells the driver. The caller holds the lock.
func (d *Base) forget(s *shared) {
	x := &d.progs
	key := s.prog.Kernel().Key()
	left := slices.DeleteFunc(x.byKey[key], func(o *shared) bool { return o == s })
	if x.byKey[key] = left; len(left) == 0 {
		delete(x.byKey, key)
	}
	if f, ok := d.Driver.(runtime.Forgetter); ok {
		f.Forget(s.prog)
	}
}
