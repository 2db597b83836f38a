package cpu

import (
	"fmt"

	"github.com/millrace-go/millrace/internal/label"
)

// mark is the program's label, made when it is first wanted.
func (p *program) mark(m *label.Marks) any {
	if have := p.label.Load(); have != nil {
		return *have
	}
	made := m.Make(p.kernel.Name(), fmt.Sprintf("%016x", p.kernel.Key()))
	p.label.Store(&made)
	return made
}

// labelled is one with the kernel's name on the goroutines that run it.
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
