package cpu

import (
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
)

// dotJob is a contraction on its way through machine code. Jobs are used again, with
// their memory, so that a launch allocates nothing.
type dotJob struct {
	e     *goExecutor
	c     *contraction
	f     *dotCode
	mxcsr uint32
	dotPlan

	batch      int64 // where sides are packed for all threads: the one in work
	allX, allY unsafe.Pointer
	known      []uint32 // of the panels of allY, see panelFinite
	stays      *packedY
	packed     bool // y is in there
	shared     dotMemory

	mu   sync.Mutex
	lent []*dotMemory // for as many threads as there are

	packing, computing func(begin, end int64) // methods, bound once
}

// dotPlan is how a contraction is cut into tiles and shared out. Strides and bytes are
// in bytes, all else in elements.
type dotPlan struct {
	x, y    side
	m, n, k int64
	size    int64
	lanes   int64
	nr, mr  int64 // columns of a panel, most rows of a tile

	swap   bool // x and y have changed places, tiles are transposed at the end
	skinny bool // few rows
	direct bool // x is read where it lies
	near   bool // y is small enough to be read where it lies
	masked bool // by c.mask
	tiled  bool // results go through a tile, not straight to memory

	kc, blocks      int64 // k steps of a block: contractK, or k; and how many blocks
	mb, nb          int64 // rows and columns of a tile; nb is a multiple of nr
	ld              int64 // of a tile
	group           int64 // rows of a unit, a multiple of mb
	groups, strips  int64
	panels          int64 // of all of y
	keep            int64 // blocks of a strip that a thread keeps packed; blocks, or 1
	packX, packY    bool  // once for all threads
	atStrip, atTile int64 // offsets in a thread's memory; x is first
	atAcc, atStage  int64
	atKnown, own    int64
}

// dotMemory is memory for packed sides and tiles, aligned to 64 bytes.
type dotMemory struct {
	mapping
	size int64
}

// ask has room for so many bytes; what was in it is lost.
func (d *dotMemory) ask(n int64) bool {
	if n <= d.size {
		return true
	}
	d.drop()
	n = (n + n/4 + hugePage - 1) &^ (hugePage - 1)
	m, ok := mapMemory(n, n > hugePage)
	if ok {
		d.mapping, d.size = m, n
	}
	return ok
}

func (d *dotMemory) drop() {
	if d.size > 0 {
		d.unmap()
		*d = dotMemory{}
	}
}

// dotPool keeps jobs and the memory of threads between launches.
type dotPool struct {
	mu    sync.Mutex
	jobs  []*dotJob
	runs  []*dotRun
	own   []*dotMemory
	sides []*packedY
}

func (p *dotPool) job(e *goExecutor) *dotJob {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.jobs); n > 0 {
		j := p.jobs[n-1]
		p.jobs = p.jobs[:n-1]
		return j
	}
	j := &dotJob{e: e}
	j.packing, j.computing = j.pack, j.compute
	return j
}

func (p *dotPool) done(j *dotJob) {
	j.c, j.f, j.stays, j.x, j.y = nil, nil, nil, side{}, side{}
	p.mu.Lock()
	p.jobs = append(p.jobs, j)
	p.mu.Unlock()
}

// run is one that is free.
func (p *dotPool) run(e *goExecutor) *dotRun {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.runs) - 1
	if n < 0 {
		return newDotRun(e)
	}
	d := p.runs[n]
	p.runs = p.runs[:n]
	return d
}

func (p *dotPool) ran(d *dotRun) {
	for _, w := range []*dotWalk{&d.x, &d.y, &d.z} {
		clear(w.args.ops)
		w.r, w.v, w.args = nil, nil, args{ops: w.args.ops[:0]}
	}
	d.c = contraction{}
	p.mu.Lock()
	p.runs = append(p.runs, d)
	p.mu.Unlock()
}

// lend is memory for a thread, as large as it was when it was given back.
func (p *dotPool) lend() *dotMemory {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.own) - 1
	if last < 0 {
		return new(dotMemory)
	}
	d := p.own[last]
	p.own = p.own[:last]
	return d
}

func (p *dotPool) giveBack(d []*dotMemory) {
	p.mu.Lock()
	p.own = append(p.own, d...)
	p.mu.Unlock()
}

// close gives all memory back.
func (p *dotPool) close() {
	for _, j := range p.jobs {
		j.shared.drop()
	}
	for _, d := range p.own {
		d.drop()
	}
	for _, s := range p.sides {
		s.drop()
	}
	*p = dotPool{}
}

// packedY is where y stays packed from one run to the next, see packedSide.
type packedY struct {
	dotMemory
	known []uint32
	full  bool // it holds the y of the run before
}

// at is that of a side, nil where it is not kept.
func (p *dotPool) at(k packedSide) *packedY {
	if k.number == 0 {
		return nil
	}
	for len(p.sides) < k.number {
		p.sides = append(p.sides, new(packedY))
	}
	return p.sides[k.number-1]
}

// contractNative runs a contraction in machine code; false where there is none for it,
// or no memory.
func (e *goExecutor) contractNative(c *contraction) bool {
	if narrowDots[c.dt] != nil && e.level != machine.None {
		c = widened(c)
	}
	f, err := dotCodeOf(e.level, c.dt)
	if err != nil {
		return false
	}
	j := e.dots.job(e)
	defer e.dots.done(j)
	j.c, j.f, j.mxcsr = c, f, machine.KeepMXCSR
	if c.soft {
		j.mxcsr = machine.FlushMXCSR
	}
	return j.run()
}

func (j *dotJob) run() bool {
	c := j.c
	batches := c.batches()
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
	if work/threadMuls < float64(threads) {
		threads = int64(work/threadMuls) + 1
	}
	j.plan(batches, threads)
	ok := j.lend(threads) && ((!j.packX && !j.packY) || j.share())
	if ok {
		j.runBatches(batches, threads)
	} else {
		j.forget()
	}
	j.e.dots.giveBack(j.lent)
	j.lent = j.lent[:0]
	return ok
}

// lend has memory for every thread before anything is computed: what is stored may take
// the place of what was read.
func (j *dotJob) lend(threads int64) bool {
	for range threads {
		d := j.e.dots.lend()
		j.lent = append(j.lent, d)
		if !d.ask(j.own) {
			return false
		}
	}
	return true
}

// take is the memory of a share of work, until it is put back.
func (j *dotJob) take() *dotMemory {
	j.mu.Lock()
	defer j.mu.Unlock()
	d := j.lent[len(j.lent)-1]
	j.lent = j.lent[:len(j.lent)-1]
	return d
}

func (j *dotJob) put(d *dotMemory) {
	j.mu.Lock()
	j.lent = append(j.lent, d)
	j.mu.Unlock()
}

func (j *dotJob) runBatches(batches, threads int64) {
	units := j.groups * j.strips
	j.batch = 0 // a job is used again
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

// share finds memory for what is packed for all threads, and for a y that stays packed.
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
		s.full = false
		if !s.ask(yBytes) {
			return false
		}
		s.full = true
		j.allY, yBytes = s.first, 0
		s.known = roomFor(s.known, panels)
		j.known = s.known
	}
	if xBytes+yBytes > 0 && !j.shared.ask(xBytes+yBytes) {
		return false
	}
	j.allX = j.shared.first
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

// forget says that this run's y does not stay packed.
func (j *dotJob) forget() {
	if j.c.stays != nil {
		j.c.stays.full = false
	}
}

// compute runs units.
func (j *dotJob) compute(begin, end int64) {
	own := j.take()
	for u := begin; u < end; u++ {
		j.unit(own.first, j.batch+u/(j.groups*j.strips), u/j.strips%j.groups, u%j.strips)
	}
	j.put(own)
}

// pack packs for all threads: units are strips of a block of y, then tiles of rows of
// a block of x.
func (j *dotJob) pack(begin, end int64) {
	own := j.take()
	ys, xs := int64(0), ceilDiv(j.m, j.mb)
	if j.packY && !j.packed {
		ys = j.blocks * j.strips
	}
	for u := begin; u < end; u++ {
		if u < ys {
			b, at := u/j.strips, u%j.strips*j.nb
			cols, first := min(j.nb, j.n-at), b*j.panels+at/j.nr
			j.loadY(own.first, j.batch, at, cols, b*contractK, j.depth(b), unsafe.Add(j.allY, first*j.kc*j.nr*j.size))
			clear(j.known[first : first+ceilDiv(cols, j.nr)])
			continue
		}
		b, i := (u-ys)/xs, (u-ys)%xs*j.mb
		j.loadX(own.first, j.batch, i, min(j.mb, j.m-i), b*contractK, j.depth(b), unsafe.Add(j.allX, (b*j.m+i)*contractK*j.size))
	}
	j.put(own)
}

// depth is the k steps of a block.
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

// result is where an output lies.
func (j *dotJob) result(batch, i, at int64) unsafe.Pointer {
	return unsafe.Add(j.c.out, (j.c.offset(j.c.outBatch, batch)+i*j.c.outRow+at)*j.size)
}

// zero clears rows.
func zero(p unsafe.Pointer, ld, rows, n int64) {
	for i := range rows {
		clear(unsafe.Slice((*byte)(unsafe.Add(p, i*ld)), n))
	}
}

// finish hands rows [i, i+rows), columns [at, at+cols) of the tile on.
func (j *dotJob) finish(own unsafe.Pointer, batch, i, rows, at, cols int64) {
	tile, ld := unsafe.Add(own, j.atTile), j.ld
	if j.swap {
		spare := unsafe.Add(own, j.atAcc)
		j.turn(spare, rows, 1, tile, ld, 1, rows, cols)
		tile, ld = spare, rows
		i, at, rows, cols = at, i, cols, rows
	}
	if j.c.drain != nil {
		j.c.drain(batch, i, rows, at, cols, tile, ld)
		return
	}
	out, n := j.result(batch, i, at), cols*j.size
	for r := range rows {
		copy(unsafe.Slice((*byte)(unsafe.Add(out, r*j.c.outRow*j.size)), n), unsafe.Slice((*byte)(unsafe.Add(tile, r*ld*j.size)), n))
	}
}

// dotPanels are a block of k of a strip of y: panels are step bytes apart, their rows ld.
type dotPanels struct {
	p        unsafe.Pointer
	step, ld int64
	known    []uint32 // what was found out about each; nil where nobody asks
}

// panelsOf is block b of the strip at column at, packed; the thread keeps it, if it
// keeps any, from one tile of rows to the next.
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

// maxPanels bounds how long a call takes.
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
		j.f.call(at, unsafe.Pointer(f), j.mxcsr)
	}
	f.Y, f.C, f.Acc = y, c, acc
}

// strip runs a tile over columns of panels. Of the last panel only one vector is computed
// where there are no more columns.
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

// panelTile is one block of k of a tile.
func (j *dotJob) panelTile(own unsafe.Pointer, batch, i, rows, at, cols, b int64, y dotPanels, out unsafe.Pointer, ld int64) {
	p, k := b*contractK, j.depth(b)
	f := native.TileFrame{LdX: contractK * j.size, LdY: y.ld, LdC: ld, StepY: y.step, StepC: j.nr * j.size, Flags: native.TileOpen | native.TileClose}
	if b == 0 {
		f.Flags |= native.TileFirst
	}
	for r := int64(0); r < rows; r += j.mr {
		height := min(j.mr, rows-r)
		switch f.X = own; {
		case j.direct:
			f.X, f.LdX = j.element(&j.x, batch, i+r, p), j.x.stride*j.size
		case j.packX:
			f.X = unsafe.Add(j.allX, (b*j.m+i+r)*contractK*j.size)
		default:
			j.loadX(own, batch, i+r, height, p, k, own)
		}
		f.Y, f.K, f.C = y.p, k, unsafe.Add(out, r*ld)
		if y.known != nil {
			j.lookedAt(&f, i+r, height, at, cols, k, &y)
		} else {
			j.strip(height, &f, cols)
		}
	}
}
