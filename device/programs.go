package device

import (
	"cmp"
	"slices"
	"sync"

	"github.com/millrace-go/millrace/runtime"
)

// looseLimit bounds the programs that no plan has: those of single ops, which whoever
// runs op by op will want again in a moment.
const looseLimit = 512

// programs are those of a device's plans, and some more. Plans share them. The driver
// is told of each that goes: it has been told of all that are not here.
type programs struct {
	mu    sync.Mutex
	byKey map[uint64][]*shared
	loose int    // how many no plan has
	uses  uint64 // of any
}

// shared is a program with the number of known plans that use it.
type shared struct {
	prog  runtime.Program
	text  string // of its kernel
	plans int
	used  uint64 // when it was asked for last
}

// Program builds a kernel, or finds the program that an equal kernel has, for
// that many plans more. It returns the kernel's text, too: printing it takes its time.
func (d *Base) Program(k runtime.Kernel, plans int) (runtime.Program, string, error) {
	x := &d.progs
	key, text := k.Key(), k.String()
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

// Retire is the end of a plan: it will not be found any more. The driver is told
// of the programs that no other one uses.
func (d *Base) Retire(progs []runtime.Program) { d.release(progs, false) }

// Spend is retire for a plan that is made anew at each run: its programs stay for a while.
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

// loosened counts a program that no plan has. Where there are too many, those go that
// nobody asked for lately. The lock is held.
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

// forget drops a program, and tells the driver. The lock is held.
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
