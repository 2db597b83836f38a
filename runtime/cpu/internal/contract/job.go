package contract

import (
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// job executes a contraction by machine code or C. Jobs are reused, with their memory, so that
// a launch allocates nothing.
type job struct {
	e     *Engine
	c     *Contraction
	f     *functions
	mxcsr uint32
	plan

	batch      int64 // the current batch, where sides are packed for all threads
	allX, allY unsafe.Pointer
	known      []uint32 // facts about the panels of allY, see panelFinite
	stays      *Packed
	packed     bool // stays already contains y
	shared     memory.Scratch
	kept       memory.Scratch // from the previous run
	lean       bool           // memory is scarce: nothing is packed for all threads

	mu   sync.Mutex
	lent []memory.Scratch // one for each thread
	free []int            // indices of lent that no thread uses

	packing, computing func(begin, end int64) // method values, bound once
}

// done returns a job to the pool, and all memory that it borrowed.
func (j *job) done() {
	j.repay()
	j.c, j.f, j.stays, j.x, j.y = nil, nil, nil, Side{}, Side{}
	j.e.jobs.Put(j)
}

// keptBytes is the size up to which a job keeps the memory of its first thread: for a small
// contraction, borrowing it again would cost as much as the work.
const keptBytes = 64 << 10

func (j *job) repay() {
	if len(j.lent) > 0 && j.lent[0].Size <= keptBytes {
		j.kept, j.lent[0] = j.lent[0], memory.Scratch{}
	}
	for i := range j.lent {
		j.e.mem.Repay(&j.lent[i])
	}
	j.e.mem.Repay(&j.shared)
	j.lent = j.lent[:0]
}

// run computes the contraction; it returns false if memory is refused.
func (j *job) run() bool {
	c := j.c
	batches := c.batches()
	if c.Mask.At != nil || c.Keep != nil || c.K == 0 {
		c.lose()
	}
	if batches == 0 || c.M == 0 || c.N == 0 {
		j.forget()
		return true
	}
	outputs := float64(float64(batches*c.M) * float64(c.N))
	filled := outputs + float64(float64(batches*c.K)*float64(c.M+c.N))
	work := float64(outputs*float64(c.K)) + float64(float64(c.Work)*filled)
	threads := int64(j.e.pool.Threads())
	if c.Threads > 0 {
		threads = min(threads, int64(c.Threads))
	}
	if c.Threads != 1 && work >= ThreadMuls { // worth several threads, though perhaps not here
		c.lose()
	}
	if work/ThreadMuls < float64(threads) {
		threads = int64(work/ThreadMuls) + 1
	}
	j.lean = false
	if j.choose(batches, threads); !j.borrow(threads) {
		j.repay()
		j.lean = true
		if j.choose(batches, threads); !j.borrow(threads) {
			j.forget()
			j.e.mem.NoteRefused()
			return false
		}
	}
	j.runBatches(batches, threads)
	return true
}

// borrow allocates the memory of every thread and the shared memory before anything is computed: a
// failure later would be too late, since results may overwrite operands.
func (j *job) borrow(threads int64) bool {
	j.free = j.free[:0]
	for i := range int(threads) {
		m, ok := j.kept, true
		if j.kept = (memory.Scratch{}); m.Size < j.own || m.P == nil {
			j.e.mem.Repay(&m)
			if m, ok = j.e.mem.Borrow(max(j.own, 1)); !ok {
				return false
			}
		}
		j.lent, j.free = append(j.lent, m), append(j.free, i)
	}
	return !j.packX && !j.packY || j.share()
}

// take returns the memory for a share of work, and its number for put.
func (j *job) take() (unsafe.Pointer, int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := j.free[len(j.free)-1]
	j.free = j.free[:len(j.free)-1]
	j.c.region(j.lent[i].P, j.own)
	return j.lent[i].P, i
}

func (j *job) put(i int) {
	j.mu.Lock()
	j.free = append(j.free, i)
	j.mu.Unlock()
}

func (j *job) runBatches(batches, threads int64) {
	units := j.groups * j.strips
	j.batch = 0 // jobs are reused
	if !j.packX && !j.packY {
		grain, total := int64(1), batches*units
		if threads <= 1 {
			grain = total
		} else if total > 16*threads {
			grain = total / (8 * threads)
		}
		j.e.split(int(threads), total, grain, j.computing)
		return
	}
	packs := int64(0)
	if j.packY && !j.packed {
		packs += j.blocks * j.strips
	}
	if j.packX {
		packs += j.blocks * ceilDiv(j.m, j.mb)
	}
	grains := [2]int64{packs, units}
	if threads > 1 {
		grains = [2]int64{1, 1}
	}
	for j.batch = 0; j.batch < batches; j.batch++ {
		j.e.split(int(threads), packs, grains[0], j.packing)
		j.e.split(int(threads), units, grains[1], j.computing)
	}
}

// share allocates the memory for sides packed for all threads, and for a y that stays packed.
func (j *job) share() bool {
	yBytes, xBytes, panels := int64(0), int64(0), j.blocks*j.panels
	if j.packY {
		yBytes = j.yBytes()
	}
	if j.packX {
		xBytes = j.blocks * blockK * j.m * j.size
	}
	if s := j.stays; s != nil {
		j.packed = j.c.Same && s.full && s.Size >= yBytes
		if s.full = false; s.Size < yBytes {
			j.e.mem.Repay(&s.Scratch)
			var ok bool
			if s.Scratch, ok = j.e.mem.Borrow(yBytes); !ok {
				return false
			}
		}
		s.full = true
		j.allY, yBytes = s.P, 0
		s.known = roomFor(s.known, panels)
		j.known = s.known
	}
	if xBytes+yBytes > 0 {
		var ok bool
		if j.shared, ok = j.e.mem.Borrow(xBytes + yBytes); !ok {
			return false
		}
		j.c.region(j.shared.P, xBytes+yBytes)
	}
	j.allX = j.shared.P
	if j.stays == nil && j.packY {
		j.allY = unsafe.Add(j.allX, xBytes)
		j.known = roomFor(j.known, j.blocks*j.panels)
	}
	return true
}

func roomFor(b []uint32, n int64) []uint32 {
	if int64(cap(b)) < n {
		return make([]uint32, n)
	}
	return b[:n]
}

// forget marks that this run's y does not stay packed.
func (j *job) forget() {
	if j.c.Keep != nil {
		j.c.Keep.full = false
	}
}

// compute runs units.
func (j *job) compute(begin, end int64) {
	own, number := j.take()
	for u := begin; u < end; u++ {
		j.unit(own, j.batch+u/(j.groups*j.strips), u/j.strips%j.groups, u%j.strips)
	}
	j.put(number)
}

// pack packs for all threads. Its units are first the strips of the blocks of y, then the row
// tiles of the blocks of x.
func (j *job) pack(begin, end int64) {
	own, number := j.take()
	ys, xs := int64(0), ceilDiv(j.m, j.mb)
	if j.packY && !j.packed {
		ys = j.blocks * j.strips
	}
	for u := begin; u < end; u++ {
		if u < ys {
			b, at := u/j.strips, u%j.strips*j.nb
			cols, first := min(j.nb, j.n-at), b*j.panels+at/j.nr
			j.loadY(own, j.batch, at, cols, b*blockK, j.depth(b), unsafe.Add(j.allY, first*j.kc*j.nr*j.size))
			clear(j.known[first : first+ceilDiv(cols, j.nr)])
			continue
		}
		b, i := (u-ys)/xs, (u-ys)%xs*j.mb
		j.loadX(own, j.batch, i, min(j.mb, j.m-i), b*blockK, j.depth(b), unsafe.Add(j.allX, (b*j.m+i)*blockK*j.size))
	}
	j.put(number)
}

// depth returns the k steps of a block.
func (j *job) depth(b int64) int64 { return min(blockK, j.k-b*blockK) }

func (j *job) unit(own unsafe.Pointer, batch, group, strip int64) {
	from := group * j.group
	to := min(j.m, from+j.group)
	at := strip * j.nb
	cols := min(j.nb, j.n-at)
	for i := from; i < to; i += j.mb {
		rows := min(j.mb, to-i)
		out, ld := unsafe.Add(own, j.atTile), j.ld*j.size
		if !j.tiled {
			out, ld = j.result(batch, i, at), j.c.Out.Row*j.size
		}
		switch {
		case j.k == 0:
			zero(out, ld, rows, cols*j.size)
		case j.skinny:
			j.skinnyTile(own, batch, i, rows, at, cols, out, ld)
		case j.near:
			j.panelTile(own, batch, i, rows, at, cols, 0, stripBlock{p: j.element(&j.y, batch, at, 0), step: j.nr * j.size, ld: j.y.KStride * j.size}, out, ld)
		default:
			for b := range j.blocks {
				j.panelTile(own, batch, i, rows, at, cols, b, j.panelsOf(own, batch, at, cols, b, i == from), out, ld)
			}
		}
		if j.tiled {
			j.finish(own, batch, i, rows, at, cols)
		}
	}
}

// result returns the address of an output.
func (j *job) result(batch, i, at int64) unsafe.Pointer {
	return unsafe.Add(j.c.Out.Base, (j.c.offset(j.c.Out.Batch, batch)+i*j.c.Out.Row+at)*j.size)
}

// zero clears rows.
func zero(p unsafe.Pointer, ld, rows, n int64) {
	for i := range rows {
		clear(unsafe.Slice((*byte)(unsafe.Add(p, i*ld)), n))
	}
}

// finish passes on rows [i, i+rows), columns [at, at+cols) of the tile.
func (j *job) finish(own unsafe.Pointer, batch, i, rows, at, cols int64) {
	tile, ld := unsafe.Add(own, j.atTile), j.ld
	if j.swap {
		spare := unsafe.Add(own, j.atAcc)
		j.turn(spare, rows, 1, tile, operands.NoOperand, ld, 1, rows, cols)
		tile, ld = spare, rows
		i, at, rows, cols = at, i, cols, rows
	}
	if j.c.drains() {
		j.c.drain(batch, i, rows, at, cols, tile, ld)
		return
	}
	out, n := j.result(batch, i, at), cols*j.size
	if j.c.Tape != nil {
		j.recordRows(operands.Pointer{P: out, Operand: j.c.Out.Operand}, j.c.Out.Row*j.size, operands.Own(tile), ld*j.size, rows, n)
	}
	for r := range rows {
		copy(unsafe.Slice((*byte)(unsafe.Add(out, r*j.c.Out.Row*j.size)), n), unsafe.Slice((*byte)(unsafe.Add(tile, r*ld*j.size)), n))
	}
}

// stripBlock is a block of k of a strip of y: panels are step bytes apart, their rows ld bytes.
type stripBlock struct {
	p        unsafe.Pointer
	step, ld int64
	known    []uint32 // facts about each panel; nil if not used
}

// panelsOf returns block b of the strip at column at, packed. The thread keeps it from one tile of
// rows to the next if the plan says so.
func (j *job) panelsOf(own unsafe.Pointer, batch, at, cols, b int64, fresh bool) stripBlock {
	count, step := ceilDiv(cols, j.nr), j.kc*j.nr*j.size
	if j.packY {
		first := b*j.panels + at/j.nr
		return stripBlock{unsafe.Add(j.allY, first*step), step, j.nr * j.size, j.known[first : first+count]}
	}
	first := int64(0)
	if j.keep > 1 {
		first = b * count
	}
	p := stripBlock{unsafe.Add(own, j.atStrip+first*step), step, j.nr * j.size, unsafe.Slice((*uint32)(unsafe.Add(own, j.atKnown+first*4)), count)}
	if fresh || j.keep < j.blocks {
		j.loadY(own, batch, at, cols, b*blockK, j.depth(b), p.p)
		clear(p.known)
	}
	return p
}

// maxPanels bounds the duration of a call.
const maxPanels = 32

// tiles runs one tile of rows over panels of columns.
func (j *job) tiles(rows int64, vecs int64, f *native.TileFrame, cols int64) {
	wide := vecs * j.lanes
	count := ceilDiv(cols, wide)
	y, c, acc := f.Y, f.C, f.Acc
	at := j.f.Tile(int(rows), int(vecs))
	for done := int64(0); done < count; done += f.Panels {
		f.Panels = min(count-done, maxPanels)
		f.Y, f.C = unsafe.Add(y, done*f.StepY), unsafe.Add(c, done*f.StepC)
		if acc != nil {
			f.Acc = unsafe.Add(acc, done*f.StepC)
		}
		f.Tail = j.lanes
		if done+f.Panels == count {
			f.Tail = cols - (count-1)*wide - (wide - j.lanes)
		}
		if j.c.Tape != nil {
			j.recordTile(at, unsafe.Pointer(f), tileWords)
		}
		j.f.call(at, unsafe.Pointer(f), j.mxcsr)
	}
	f.Y, f.C, f.Acc = y, c, acc
}

// strip runs a tile over the columns of panels. If the last panel has no more columns than one
// vector, only that vector is computed.
func (j *job) strip(rows int64, f *native.TileFrame, cols int64) {
	rest := cols % j.nr
	if rest == 0 || rest > j.lanes {
		j.tiles(rows, 2, f, cols)
		return
	}
	full := cols - rest
	if full > 0 {
		j.tiles(rows, 2, f, full)
	}
	last := *f
	n := full / j.nr
	last.Y, last.C = unsafe.Add(f.Y, n*f.StepY), unsafe.Add(f.C, n*f.StepC)
	if f.Acc != nil {
		last.Acc = unsafe.Add(f.Acc, n*f.StepC)
	}
	j.tiles(rows, 1, &last, rest)
}

// panelTile computes one block of k of a tile.
func (j *job) panelTile(own unsafe.Pointer, batch, i, rows, at, cols, b int64, y stripBlock, out unsafe.Pointer, ld int64) {
	p, k := b*blockK, j.depth(b)
	f := native.TileFrame{LdX: blockK * j.size, LdY: y.ld, LdC: ld, StepY: y.step, StepC: j.nr * j.size, Flags: native.TileOpen | native.TileClose}
	if b == 0 {
		f.Flags |= native.TileFirst
	}
	high := j.evenRows(rows)
	for r := int64(0); r < rows; r += high {
		height := min(high, rows-r)
		switch f.X = own; {
		case j.direct:
			f.X, f.LdX = j.element(&j.x, batch, i+r, p), j.x.Stride*j.size
		case j.packX:
			f.X = unsafe.Add(j.allX, (b*j.m+i+r)*blockK*j.size)
		default:
			j.loadX(own, batch, i+r, height, p, k, own)
		}
		f.Y, f.K, f.C = y.p, k, unsafe.Add(out, r*ld)
		if j.tells && j.c.Mask.Kind == ByInf { // the mask is read next, with the results: prefetch it
			f.LdNear = j.c.Mask.Row * j.size
			f.Near = int64(uintptr(j.c.Mask.At)) + (i+r)*f.LdNear + at*j.size - int64(uintptr(f.C))
		}
		if y.known != nil && j.c.Tape == nil { // recorded work must not depend on values
			j.lookedAt(&f, i+r, height, at, cols, k, &y)
		} else {
			j.strip(height, &f, cols)
		}
	}
}
