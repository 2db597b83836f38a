package cpu

import (
	"fmt"

	"github.com/millrace-go/millrace/internal/proflabel"
)

// mark returns the program's label; the first call makes it.
func (p *program) mark(m *proflabel.Marks) any {
	if have := p.label.Load(); have != nil {
		return *have
	}
	made := m.Make(p.kernel.Name(), fmt.Sprintf("%016x", p.kernel.Key()))
	p.label.Store(&made)
	return made
}

// labelled runs a launch with the kernel's name as the label of the goroutines that run it.
func (e *executor) labelled(m *proflabel.Marks, r *ready) error {
	mark := r.p.mark(m)
	m.Set(mark)
	e.pool.Label(m, mark)
	defer func() {
		m.Set(nil)
		e.pool.Label(nil, nil)
	}()
	return e.plain(r)
}
