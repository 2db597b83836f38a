package cpu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
)

// chainBytes is the local memory of a tile: what a second-level cache keeps
// between a contraction and what is done with its rows.
const chainBytes = 1 << 20

// solo runs launches on the goroutine that calls it, whatever the others do.
type solo struct {
	exec  executor
	local []*buffer
	tile  []runtime.Launch
	ready []ready
}

// runChains runs a list with chains in it.
func (d *device) runChains(list []runtime.Launch) error {
	for i := 0; i < len(list); {
		c := list[i].Chain
		if c == nil {
			n := i + 1
			for n < len(list) && list[n].Chain == nil {
				n++
			}
			if err := d.Run(list[i:n]); err != nil {
				var at *runtime.LaunchError
				if errors.As(err, &at) {
					at.Index += i
				}
				return err
			}
			i = n
			continue
		}
		if err := d.runChain(list[i : i+c.N]); err != nil {
			return &runtime.LaunchError{Index: i, Err: fmt.Errorf("cpu: %w", err)}
		}
		i += c.N
	}
	return nil
}

// runChain shares the tiles of a chain out among as many goroutines as the
// device has threads. Each runs a tile's launches by itself, so what they hand
// over stays in the cache of one core.
func (d *device) runChain(ls []runtime.Launch) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.life.RUnlock()
	d.runMu.Lock()
	defer d.runMu.Unlock()
	d.mem.begin()
	defer d.mem.end()

	c := ls[0].Chain
	threads := int64(max(d.cfg.Threads, 1))
	rows := c.Rows(ls, chainBytes)
	for rows > 1 && c.Tiles(ls, rows) < 2*threads {
		rows = (rows + 1) / 2
	}
	tiles := c.Tiles(ls, rows)
	threads = min(threads, tiles)
	solos, err := d.lendSolos(int(threads), ls, rows)
	if err != nil {
		return err
	}
	defer d.takeBack(solos)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for _, s := range solos {
		all.Go(func() {
			for failed.Load() == nil {
				tile := next.Add(1) - 1
				if tile >= tiles {
					return
				}
				if err := d.runTile(s, ls, tile, rows); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	all.Wait()
	if e := failed.Load(); e != nil {
		return *e
	}
	return nil
}

// runTile runs the launches of one tile.
func (d *device) runTile(s *solo, ls []runtime.Launch, tile, rows int64) error {
	c := ls[0].Chain
	local := make([]runtime.Buffer, len(s.local))
	for i, b := range s.local {
		local[i] = b
	}
	c.Tile(ls, tile, rows, local, s.tile)
	s.ready = s.ready[:0]
	for i := range s.tile {
		l := &s.tile[i]
		l.Collapse(outputsOf(l))
		r, err := d.prepareFor(l, 1)
		if err != nil {
			return err
		}
		if !r.empty {
			s.ready = append(s.ready, r)
		}
	}
	return s.exec.run(s.ready)
}

// outputsOf lists the operands that a launch writes.
func outputsOf(l *runtime.Launch) []int {
	var list []int
	for i, o := range l.Prog.(*program).kernel.Operands {
		if o.Kind == codegen.Output {
			list = append(list, i)
		}
	}
	return list
}

// lendSolos gives each goroutine of a chain an executor and local memory. The
// executors are made when they are first needed and kept.
func (d *device) lendSolos(n int, ls []runtime.Launch, rows int64) (lent []*solo, err error) {
	c := ls[0].Chain
	for len(d.solos) < n {
		e, err := newExecutor(1)
		if err != nil {
			return nil, err
		}
		d.solos = append(d.solos, &solo{exec: e})
	}
	lent = d.solos[:n]
	defer func() {
		if err != nil {
			d.takeBack(lent)
		}
	}()
	for _, s := range lent {
		s.tile = c.NewTile(ls)
		for _, bytes := range c.Local {
			b, err := d.mem.alloc(bytes * rows)
			if err != nil {
				return nil, err
			}
			s.local = append(s.local, b.(*buffer))
		}
	}
	return lent, nil
}

// takeBack frees the local memory.
func (d *device) takeBack(lent []*solo) {
	for _, s := range lent {
		for _, b := range s.local {
			d.mem.give(b)
		}
		s.local, s.tile, s.ready = nil, nil, nil
	}
}
