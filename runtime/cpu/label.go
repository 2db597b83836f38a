package cpu

import (
	"fmt"

	"github.com/millrace-go/millrace/internal/label"
)

// mark returns the program's label; the first call makes it.
func (p *program) mark(m *label.Marks) any {
	if have := p.label.Load(); have != nil {
		return *have
	}
	made := m.Make(p.kernel.Name(), fmt.Sprintf("%016x", p.kernel.Key()))
	p.label.Store(&made)
	return made
}

// labelled runs a launch with the kernel's name as the label of the goroutines that run it.
func (e *executor) labelled(m *label.Marks, r *ready) error {
	mark := r.p.mark(m)
	m.Set(mark)
	e.pool.marks, e.pool.mark = m, mark
	defer func() {
		m.Set(nil)
		e.pool.marks, e.pool.mark = nil, nil
	}()
	return e.plain(r)
}
