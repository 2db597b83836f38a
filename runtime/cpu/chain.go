package cpu

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/contract"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

const (
	// chainBytes is the local memory of a tile: the part of a second-level cache that is free
	// between a contraction and the work on its rows. The packed sides, which all tiles share,
	// take the rest.
	chainBytes = 512 << 10
	// chainRows is a multiple of the number of rows that contractions compute together, at every
	// ISA level: a tile of chainRows rows leaves no remainder.
	chainRows = 84
	// chainPad separates rows of local memory that would otherwise map to the same few lines of
	// the first-level cache.
	chainPad, chainPage = 64, 1024
	// chainShares is the number of times that a goroutine fetches tiles. The tiles that it gets at
	// one time are consecutive.
	chainShares = 8
)

// solo runs launches on the calling goroutine alone.
type solo struct {
	exec  *executor
	local []runtime.Buffer
	pitch []int64 // bytes from one row of local memory to the next
	tile  []runtime.Launch
	tails *memory.Buffer // an int64 for each row, then the number of hidden results
	rows  int64          // of the largest tile
	masks []maskTile
	spans contract.Spans // of masks in memory
	sides [][]int64      // for each launch, its side y in the tile before
	spare []int64
	ready []ready
}

// runChain distributes the tiles of a chain over as many goroutines as the device has threads.
// Each goroutine runs all launches of a tile by itself, so the passed results stay in the cache of
// one core.
func (d *device) runChain(ls []runtime.Launch) error {
	if _, err := d.begin(); err != nil {
		return err
	}
	defer d.end()
	w := d.wide.Lend()
	defer d.wide.GiveBack(w)
	tiles, err := d.walkChain(w, ls)
	// Count a launch once, however many tiles it ran in.
	d.count.launches.Add(int64(ls[0].Chain.N) * (1 - tiles))
	return err
}

// walkChain runs the tiles of a chain and returns their number.
func (d *device) walkChain(w *crew, ls []runtime.Launch) (tiles int64, err error) {
	c, threads := ls[0].Chain, d.threadsOf()
	rows := c.Rows(ls, chainBytes)
	for rows > 1 && c.Tiles(ls, rows) < 2*threads {
		rows = (rows + 1) / 2
	}
	if rows > chainRows {
		rows -= rows % chainRows
	}
	tiles = c.Tiles(ls, rows)
	threads = min(threads, tiles)
	share := max(1, min(c.Across(ls, rows), tiles/(threads*chainShares)))
	masks := d.masksOf(ls)
	solos, err := d.lendSolos(w, int(threads), ls, rows, masks)
	if err != nil {
		return 1, err
	}
	defer d.takeBack(solos)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for _, s := range solos {
		all.Go(func() {
			for failed.Load() == nil {
				end := next.Add(share)
				for tile := end - share; tile < min(end, tiles); tile++ {
					if err := d.runTile(s, ls, masks, tile, rows); err != nil {
						failed.CompareAndSwap(nil, &err)
						return
					}
				}
				if end >= tiles {
					return
				}
			}
		})
	}
	all.Wait()
	if e := failed.Load(); e != nil {
		return 1, *e
	}
	for _, s := range solos {
		d.count.hidden.Add(*s.hidden())
	}
	return tiles, nil
}

// runTile runs the launches of one tile.
func (d *device) runTile(s *solo, ls []runtime.Launch, masks []*hiding, tile, rows int64) error {
	c := ls[0].Chain
	c.Tile(ls, tile, rows, s.local, s.tile)
	s.ready = s.ready[:0]
	var seen seenMask // of the previous launch
	for i := range s.tile {
		l := &s.tile[i]
		for j := range l.Args {
			if n := ls[i].Args[j].Local; n > 0 {
				l.Args[j].Stride[c.Lead-1] = s.pitch[n-1] / int64(l.Prog.(*program).kernel.Operands[j].DT.Size())
			}
		}
		l.Collapse(outputsOf(l))
		r, err := d.prepareFor(l, 1)
		if err != nil {
			return err
		}
		if i > 0 {
			r.tailsOf(masks[i-1], seen)
		}
		if seen = (seenMask{}); r.dot != nil {
			r.packed = s.keeps(i, &r, &ls[i])
			if seen, err = s.seen(masks[i], i, &r, &ls[i], c.Lead); err != nil {
				return err
			}
			r.mask = seen
		}
		if !r.empty {
			s.ready = append(s.ready, r)
		}
	}
	return s.exec.run(s.ready)
}

// keeps reports whether side y of launch i is the same as in the previous tile. From tile to tile
// only the offsets of accesses change, and the contents of local memory.
func (s *solo) keeps(i int, r *ready, whole *runtime.Launch) packedSide {
	o := r.dot
	part := o.views[1].part
	side := append(s.spare[:0], int64(part), o.n, o.depth)
	for _, slot := range r.p.parts[part] {
		if whole.Args[slot].Local > 0 {
			return packedSide{}
		}
		side = append(side, r.l.Args[slot].Offset)
	}
	same := slices.Equal(side, s.sides[i])
	s.sides[i], s.spare = side, s.sides[i]
	return packedSide{s.exec.dots.Packed(i), same}
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

// lendSolos gives each goroutine of a chain an executor and local memory. Executors are made when
// first needed and kept.
func (d *device) lendSolos(w *crew, n int, ls []runtime.Launch, rows int64, masks []*hiding) (lent []*solo, err error) {
	c := ls[0].Chain
	for len(w.solos) < n {
		w.solos = append(w.solos, &solo{exec: d.newExecutor(1), spans: contract.Spans{}})
	}
	lent = w.solos[:n]
	defer func() {
		if err != nil {
			d.takeBack(lent)
		}
	}()
	for _, s := range lent {
		s.tile, s.sides = c.NewTile(ls), make([][]int64, c.N)
		for i, bytes := range c.Local {
			if bytes%chainPage == 0 && plainRows(ls, i+1) {
				bytes += chainPad
			}
			b, err := d.mem.Alloc(bytes * rows)
			if err != nil {
				return nil, err
			}
			s.local, s.pitch = append(s.local, b), append(s.pitch, bytes)
		}
		b, err := d.mem.Alloc((rows + 1) * 8)
		if err != nil {
			return nil, err
		}
		s.tails, s.rows = b.(*memory.Buffer), rows
		*s.hidden() = 0
		s.masks = make([]maskTile, c.N)
		for i := range c.N - 1 {
			bytes, err := d.maskBytes(ls, i, masks[i])
			if err != nil {
				return nil, err
			}
			if bytes == 0 {
				continue
			}
			b, err := d.mem.Alloc(bytes * rows)
			if err != nil {
				return nil, err
			}
			s.masks[i].buf = b.(*memory.Buffer)
		}
	}
	return lent, nil
}

// hidden points to the counter of results that were skipped because they are hidden.
func (s *solo) hidden() *int64 { return &unsafe.Slice((*int64)(s.tails.P), s.rows+1)[s.rows] }

// plainRows reports that every launch walks a local memory as a matrix. The rows of such a memory
// may have gaps between them.
func plainRows(ls []runtime.Launch, local int) bool {
	c := ls[0].Chain
	for i := range ls[:c.N] {
		l := &ls[i]
		for j := range l.Args {
			if l.Args[j].Local != local {
				continue
			}
			inner := 0
			for d := c.Lead; d < l.Rank; d++ {
				switch {
				case l.Dims[d] == 1 || l.Args[j].Stride[d] == 0:
				case l.Args[j].Stride[d] != 1:
					return false
				default:
					inner++
				}
			}
			if inner > 1 {
				return false
			}
		}
	}
	return true
}

// takeBack frees the local memory.
func (d *device) takeBack(lent []*solo) {
	for _, s := range lent {
		for _, b := range s.local {
			d.mem.Free(b.(*memory.Buffer))
		}
		if s.tails != nil {
			d.mem.Free(s.tails)
			s.tails = nil
		}
		for _, m := range s.masks {
			if m.buf != nil {
				d.mem.Free(m.buf)
			}
		}
		s.masks = nil
		clear(s.spans)
		s.exec.dots.Unpack()
		s.local, s.pitch, s.tile, s.sides, s.ready = nil, nil, nil, nil, nil
	}
}
