package cpu

import (
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
)

// dotJob executes a contraction by machine code or C. Jobs are reused, with their memory, so that
// a launch allocates nothing.
type dotJob struct {
	e     *executor
	c     *contraction
	f     *dotCode
	mxcsr uint32
	dotPlan

	batch      int64 // the current batch, where sides are packed for all threads
	allX, allY unsafe.Pointer
	known      []uint32 // facts about the panels of allY, see panelFinite
	stays      *packedY
	packed     bool // stays already contains y
	shared     scratch
	kept       scratch // from the previous run
	lean       bool    // memory is scarce: nothing is packed for all threads

	mu   sync.Mutex
	lent []scratch // one for each thread
	free []int     // indices of lent that no thread uses

	packing, computing func(begin, end int64) // method values, bound once
}

// dotPlan is how a contraction is cut into tiles and distributed. Strides and offsets in memory
// are in bytes, everything else in elements.
type dotPlan struct {
	x, y    side
	m, n, k int64
	size    int64
	lanes   int64
	nr, mr  int64 // columns of a panel; most rows of a tile

	swap   bool // x and y have changed places; tiles are transposed at the end
	skinny bool // few rows
	direct bool // x is read in place
	near   bool // y is small enough to be read in place
	masked bool // by c.mask
	tells  bool // report to c.tails and c.hidden
	tiled  bool // results go through a tile instead of straight to memory

	kc, blocks      int64 // k steps of a block: contractK, or k if smaller; number of blocks
	mb, nb          int64 // rows and columns of a tile; nb is a multiple of nr
	ld              int64 // row length of a tile
	group           int64 // rows of a unit, a multiple of mb
	groups, strips  int64
	panels          int64 // of all of y
	keep            int64 // number of blocks of a strip that a thread keeps packed: blocks or 1
	packX, packY    bool  // packed once for all threads
	atStrip, atTile int64 // offsets in a thread's memory; x is at offset 0
	atAcc, atStage  int64
	atKnown, own    int64
}

// dotPool keeps jobs between launches, and the sides that stay packed.
type dotPool struct {
	code  [ir.NumDTypes]*dotCode // as returned by the executor's dotSource
	jobs  spares[dotJob]
	runs  spares[dotRun]
	sides []*packedY
}

// spares holds values for reuse. A launch that finds none makes one.
type spares[T any] struct {
	mu   sync.Mutex
	list []*T
}

// take removes a value and returns it, or nil if there is none.
func (s *spares[T]) take() *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.list) - 1
	if n < 0 {
		return nil
	}
	x := s.list[n]
	s.list = s.list[:n]
	return x
}

func (s *spares[T]) put(x *T) {
	s.mu.Lock()
	s.list = append(s.list, x)
	s.mu.Unlock()
}

func (e *executor) dotJob() *dotJob {
	j := e.dots.jobs.take()
	if j == nil {
		j = &dotJob{e: e}
		j.packing, j.computing = j.pack, j.compute
	}
	return j
}

// done returns a job to the pool, and all memory that it borrowed.
func (j *dotJob) done() {
	j.repay()
	j.c, j.f, j.stays, j.x, j.y = nil, nil, nil, side{}, side{}
	j.e.dots.jobs.put(j)
}

// keptBytes is the size up to which a job keeps the memory of its first thread: for a small
// contraction, borrowing it again would cost as much as the work.
const keptBytes = 64 << 10

func (j *dotJob) repay() {
	if len(j.lent) > 0 && j.lent[0].size <= keptBytes {
		j.kept, j.lent[0] = j.lent[0], scratch{}
	}
	for i := range j.lent {
		j.e.mem.repay(&j.lent[i])
	}
	j.e.mem.repay(&j.shared)
	j.lent = j.lent[:0]
}

// packedY is the memory in which y stays packed from one run to the next, see packedSide.
type packedY struct {
	scratch
	known []uint32
	full  bool // it contains the y of the previous run
}

// at returns the memory of a packed side, nil if the side is not kept.
func (p *dotPool) at(k packedSide) *packedY {
	if k.number == 0 {
		return nil
	}
	for len(p.sides) < k.number {
		p.sides = append(p.sides, new(packedY))
	}
	return p.sides[k.number-1]
}

// closeDots frees all memory.
func (e *executor) closeDots() {
	for j := e.dots.jobs.take(); j != nil; j = e.dots.jobs.take() {
		e.mem.repay(&j.kept)
	}
	e.endChain()
}

// endChain frees the memory of the sides that tiles shared.
func (e *executor) endChain() {
	for _, s := range e.dots.sides {
		e.mem.repay(&s.scratch)
		s.full = false
	}
}

// contractNative runs a contraction by machine code or C. It returns false if there are no
// functions for it, or no memory.
func (e *executor) contractNative(c *contraction) bool {
	if narrowDots[c.dt] != nil && e.dotSource != (dotSource{}) {
		c.tape.lose()
		c = widened(c)
	}
	f := e.dots.code[c.dt]
	if f == nil {
		var err error
		if f, err = e.dotSource.code(c.dt); err != nil {
			return false
		}
		e.dots.code[c.dt] = f
	}
	if f.code == nil {
		c.tape.lose()
	}
	if !f.does(c.dt, c.soft) {
		return false
	}
	j := e.dotJob()
	defer j.done()
	j.c, j.f, j.mxcsr = c, f, machine.KeepMXCSR
	if c.soft {
		j.mxcsr = machine.FlushMXCSR
	}
	return j.run()
}

func (j *dotJob) run() bool {
	c := j.c
	batches := c.batches()
	if c.mask != nil || c.stays != nil || c.k == 0 {
		c.tape.lose()
	}
	if batches == 0 || c.m == 0 || c.n == 0 {
		j.forget()
		return true
	}
	outputs := float64(float64(batches*c.m) * float64(c.n))
	filled := outputs + float64(float64(batches*c.k)*float64(c.m+c.n))
	work := float64(outputs*float64(c.k)) + float64(float64(c.work)*filled)
	threads := int64(j.e.threads)
	if c.threads > 0 {
		threads = min(threads, int64(c.threads))
	}
	if c.threads != 1 && work >= threadMuls { // worth several threads, though perhaps not here
		c.tape.lose()
	}
	if work/threadMuls < float64(threads) {
		threads = int64(work/threadMuls) + 1
	}
	j.lean = false
	if j.plan(batches, threads); !j.borrow(threads) {
		j.repay()
		j.lean = true
		if j.plan(batches, threads); !j.borrow(threads) {
			j.forget()
			j.e.mem.refused.Add(1)
			return false
		}
	}
	j.runBatches(batches, threads)
	return true
}

// borrow allocates the memory of every thread and the shared memory before anything is computed: a
// failure later would be too late, since results may overwrite operands.
func (j *dotJob) borrow(threads int64) bool {
	j.free = j.free[:0]
	for i := range int(threads) {
		m, ok := j.kept, true
		if j.kept = (scratch{}); m.size < j.own || m.p == nil {
			j.e.mem.repay(&m)
			if m, ok = j.e.mem.borrow(max(j.own, 1)); !ok {
				return false
			}
		}
		j.lent, j.free = append(j.lent, m), append(j.free, i)
	}
	return !j.packX && !j.packY || j.share()
}

// take returns the memory for a share of work, and its number for put.
func (j *dotJob) take() (unsafe.Pointer, int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := j.free[len(j.free)-1]
	j.free = j.free[:len(j.free)-1]
	j.c.tape.region(j.lent[i].p, j.own)
	return j.lent[i].p, i
}

func (j *dotJob) put(i int) {
	j.mu.Lock()
	j.free = append(j.free, i)
	j.mu.Unlock()
}

func (j *dotJob) runBatches(batches, threads int64) {
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
func (j *dotJob) share() bool {
	yBytes, xBytes, panels := int64(0), int64(0), j.blocks*j.panels
	if j.packY {
		yBytes = j.yBytes()
	}
	if j.packX {
		xBytes = j.blocks * contractK * j.m * j.size
	}
	if s := j.stays; s != nil {
		j.packed = j.c.same && s.full && s.size >= yBytes
		if s.full = false; s.size < yBytes {
			j.e.mem.repay(&s.scratch)
			var ok bool
			if s.scratch, ok = j.e.mem.borrow(yBytes); !ok {
				return false
			}
		}
		s.full = true
		j.allY, yBytes = s.p, 0
		s.known = roomFor(s.known, panels)
		j.known = s.known
	}
	if xBytes+yBytes > 0 {
		var ok bool
		if j.shared, ok = j.e.mem.borrow(xBytes + yBytes); !ok {
			return false
		}
		j.c.tape.region(j.shared.p, xBytes+yBytes)
	}
	j.allX = j.shared.p
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
func (j *dotJob) forget() {
	if j.c.stays != nil {
		j.c.stays.full = false
	}
}

// compute runs units.
func (j *dotJob) compute(begin, end int64) {
	own, number := j.take()
	for u := begin; u < end; u++ {
		j.unit(own, j.batch+u/(j.groups*j.strips), u/j.strips%j.groups, u%j.strips)
	}
	j.put(number)
}

// pack packs for all threads. Its units are first the strips of the blocks of y, then the row
// tiles of the blocks of x.
func (j *dotJob) pack(begin, end int64) {
	own, number := j.take()
	ys, xs := int64(0), ceilDiv(j.m, j.mb)
	if j.packY && !j.packed {
		ys = j.blocks * j.strips
	}
	for u := begin; u < end; u++ {
		if u < ys {
			b, at := u/j.strips, u%j.strips*j.nb
			cols, first := min(j.nb, j.n-at), b*j.panels+at/j.nr
			j.loadY(own, j.batch, at, cols, b*contractK, j.depth(b), unsafe.Add(j.allY, first*j.kc*j.nr*j.size))
			clear(j.known[first : first+ceilDiv(cols, j.nr)])
			continue
		}
		b, i := (u-ys)/xs, (u-ys)%xs*j.mb
		j.loadX(own, j.batch, i, min(j.mb, j.m-i), b*contractK, j.depth(b), unsafe.Add(j.allX, (b*j.m+i)*contractK*j.size))
	}
	j.put(number)
}

// depth returns the k steps of a block.
func (j *dotJob) depth(b int64) int64 { return min(contractK, j.k-b*contractK) }

func (j *dotJob) unit(own unsafe.Pointer, batch, group, strip int64) {
	from := group * j.group
	to := min(j.m, from+j.group)
	at := strip * j.nb
	cols := min(j.nb, j.n-at)
	for i := from; i < to; i += j.mb {
		rows := min(j.mb, to-i)
		out, ld := unsafe.Add(own, j.atTile), j.ld*j.size
		if !j.tiled {
			out, ld = j.result(batch, i, at), j.c.outRow*j.size
		}
		switch {
		case j.k == 0:
			zero(out, ld, rows, cols*j.size)
		case j.skinny:
			j.skinnyTile(own, batch, i, rows, at, cols, out, ld)
		case j.near:
			j.panelTile(own, batch, i, rows, at, cols, 0, dotPanels{p: j.element(&j.y, batch, at, 0), step: j.nr * j.size, ld: j.y.kstride * j.size}, out, ld)
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
func (j *dotJob) result(batch, i, at int64) unsafe.Pointer {
	return unsafe.Add(j.c.out, (j.c.offset(j.c.outBatch, batch)+i*j.c.outRow+at)*j.size)
}

// zero clears rows.
func zero(p unsafe.Pointer, ld, rows, n int64) {
	for i := range rows {
		clear(unsafe.Slice((*byte)(unsafe.Add(p, i*ld)), n))
	}
}

// finish passes on rows [i, i+rows), columns [at, at+cols) of the tile.
func (j *dotJob) finish(own unsafe.Pointer, batch, i, rows, at, cols int64) {
	tile, ld := unsafe.Add(own, j.atTile), j.ld
	if j.swap {
		spare := unsafe.Add(own, j.atAcc)
		j.turn(spare, rows, 1, tile, noOperand, ld, 1, rows, cols)
		tile, ld = spare, rows
		i, at, rows, cols = at, i, cols, rows
	}
	if j.c.drain != nil {
		j.c.drain(batch, i, rows, at, cols, tile, ld)
		return
	}
	out, n := j.result(batch, i, at), cols*j.size
	if tape := j.c.tape; tape != nil {
		tape.copyRows(out, j.c.to, j.c.outRow*j.size, tile, noOperand, ld*j.size, rows, n)
	}
	for r := range rows {
		copy(unsafe.Slice((*byte)(unsafe.Add(out, r*j.c.outRow*j.size)), n), unsafe.Slice((*byte)(unsafe.Add(tile, r*ld*j.size)), n))
	}
}

// dotPanels is a block of k of a strip of y: panels are step bytes apart, their rows ld bytes.
type dotPanels struct {
	p        unsafe.Pointer
	step, ld int64
	known    []uint32 // facts about each panel; nil if not used
}

// panelsOf returns block b of the strip at column at, packed. The thread keeps it from one tile of
// rows to the next if the plan says so.
func (j *dotJob) panelsOf(own unsafe.Pointer, batch, at, cols, b int64, fresh bool) dotPanels {
	count, step := ceilDiv(cols, j.nr), j.kc*j.nr*j.size
	if j.packY {
		first := b*j.panels + at/j.nr
		return dotPanels{unsafe.Add(j.allY, first*step), step, j.nr * j.size, j.known[first : first+count]}
	}
	first := int64(0)
	if j.keep > 1 {
		first = b * count
	}
	p := dotPanels{unsafe.Add(own, j.atStrip+first*step), step, j.nr * j.size, unsafe.Slice((*uint32)(unsafe.Add(own, j.atKnown+first*4)), count)}
	if fresh || j.keep < j.blocks {
		j.loadY(own, batch, at, cols, b*contractK, j.depth(b), p.p)
		clear(p.known)
	}
	return p
}

// maxPanels bounds the duration of a call.
const maxPanels = 32

// tiles runs one tile of rows over panels of columns.
func (j *dotJob) tiles(rows int64, vecs int64, f *native.TileFrame, cols int64) {
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
		if j.c.tape != nil {
			j.tapeTile(at, unsafe.Pointer(f), tileWords)
		}
		j.f.call(at, unsafe.Pointer(f), j.mxcsr)
	}
	f.Y, f.C, f.Acc = y, c, acc
}

// strip runs a tile over the columns of panels. If the last panel has no more columns than one
// vector, only that vector is computed.
func (j *dotJob) strip(rows int64, f *native.TileFrame, cols int64) {
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
func (j *dotJob) panelTile(own unsafe.Pointer, batch, i, rows, at, cols, b int64, y dotPanels, out unsafe.Pointer, ld int64) {
	p, k := b*contractK, j.depth(b)
	f := native.TileFrame{LdX: contractK * j.size, LdY: y.ld, LdC: ld, StepY: y.step, StepC: j.nr * j.size, Flags: native.TileOpen | native.TileClose}
	if b == 0 {
		f.Flags |= native.TileFirst
	}
	high := j.evenRows(rows)
	for r := int64(0); r < rows; r += high {
		height := min(high, rows-r)
		switch f.X = own; {
		case j.direct:
			f.X, f.LdX = j.element(&j.x, batch, i+r, p), j.x.stride*j.size
		case j.packX:
			f.X = unsafe.Add(j.allX, (b*j.m+i+r)*contractK*j.size)
		default:
			j.loadX(own, batch, i+r, height, p, k, own)
		}
		f.Y, f.K, f.C = y.p, k, unsafe.Add(out, r*ld)
		if j.tells && j.c.maskKind == maskInf { // the mask is read next, with the results: prefetch it
			f.LdNear = j.c.maskRow * j.size
			f.Near = int64(uintptr(j.c.mask)) + (i+r)*f.LdNear + at*j.size - int64(uintptr(f.C))
		}
		if y.known != nil && j.c.tape == nil { // recorded work must not depend on values
			j.lookedAt(&f, i+r, height, at, cols, k, &y)
		} else {
			j.strip(height, &f, cols)
		}
	}
}
