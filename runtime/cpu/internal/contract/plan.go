package contract

// ThreadMuls is the number of multiplications that pays for one more thread.
const ThreadMuls = 1 << 20

// Limits of the plan that cuts a contraction.
const (
	// skinnyRows is the number of rows of x up to which y is read in place: packing it would cost
	// as much as the work itself.
	skinnyRows = 16
	// skinnyStep is the number of k steps of a whole strip that such a contraction computes at
	// once: few enough that its chains stay in cache, enough that memory is read in runs.
	// skinnyPiece is the same for packed data.
	skinnyStep, skinnyPiece = 32, 64

	// Bytes of a row of a tile, of a tile, of the packed strip that one thread keeps, and of a
	// side packed for all threads.
	tileRowBytes   = 2048
	tileBytes      = 1 << 18
	keepBytes      = 4 << 20
	sharedBytes    = 96 << 20
	shortK         = 8 // steps of k up to which writing a tile takes as long as computing it
	shortTile      = 1 << 14
	fewRows        = 48      // rows per thread from which on each thread packs a single panel of y for itself
	nearBytes      = 1 << 15 // bytes of y up to which packing it does not pay
	directBytes    = 1 << 19 // bytes of x up to which its rows are read in place,
	directPage     = 2048    // unless rows are a multiple of this apart, and so share few cache lines
	cacheLine      = 64
	maxFill        = 8192 // elements of a block that one fill computes
	fillStep       = 8    // a block of a fill begins at a multiple of fillStep k steps
	unitsOfAThread = 4
)

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

func roundUp(a, to int64) int64 { return ceilDiv(a, to) * to }

// timesPower returns n times a power of two.
func timesPower(n, power int64) int64 {
	if power < 0 {
		return n >> -power
	}
	return n << power
}

// evenRows returns the rows of one call such that as few calls as possible cover rows and the last
// one is not much smaller than the others.
func (p *plan) evenRows(rows int64) int64 { return ceilDiv(rows, ceilDiv(rows, p.mr)) }

// yBytes returns the bytes of all of y in panels.
func (p *plan) yBytes() int64 { return p.blocks * p.panels * p.kc * p.nr * p.size }

// tileRows returns the rows of a tile of at most bytes.
func (p *plan) tileRows(bytes int64) int64 { return max(bytes/(p.nb*p.size)/p.mr, 1) * p.mr }

// plan is how a contraction is cut into tiles and distributed. Strides and offsets in memory
// are in bytes, everything else in elements.
type plan struct {
	x, y    Side
	m, n, k int64
	size    int64
	lanes   int64
	nr, mr  int64 // columns of a panel; most rows of a tile

	swap   bool // x and y have changed places; tiles are transposed at the end
	skinny bool // few rows
	direct bool // x is read in place
	near   bool // y is small enough to be read in place
	masked bool // by c.Mask.At
	tells  bool // report to c.Mask.Tails and c.Mask.Hidden
	tiled  bool // results go through a tile instead of straight to memory

	kc, blocks      int64 // k steps of a block: blockK, or k if smaller; number of blocks
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

// choose plans the contraction: tiles and units.
func (j *job) choose(batches, threads int64) {
	c, f := j.c, j.f
	j.plan = plan{x: c.X, y: c.Y, m: c.M, n: c.N, k: c.K, size: int64(f.Size), lanes: int64(f.Lanes), nr: 2 * int64(f.Lanes), mr: int64(f.Rows)}
	p := &j.plan
	// Vectors run along columns. If the columns fill no vector and there are more rows, the
	// transposed contraction is computed. A product does not depend on the order of its factors.
	if c.N < p.lanes && c.M > c.N {
		p.swap, p.x, p.y, p.m, p.n = true, c.Y, c.X, c.N, c.M
	}
	p.blocks, p.kc, p.panels = ceilDiv(p.k, blockK), min(p.k, blockK), ceilDiv(p.n, p.nr)
	p.skinny = p.m <= skinnyRows && p.y.Kind == Memory && !(c.Keep != nil && c.Same && c.Keep.full)
	p.tiled = c.drains() || p.swap
	p.masked = c.Mask.At != nil && floatBitsOf[c.DT] != nil && batches == 1 && p.blocks == 1 && !p.swap
	p.tells = p.masked && c.Mask.Tails != nil && threads <= 1
	p.cut(c, batches, threads)
	p.places(c, batches, threads)
	if j.lean {
		p.packX, p.packY, p.keep = false, false, 1
	}
	if j.stays, j.packed = nil, false; c.Keep != nil {
		if !j.lean && batches == 1 && p.k > 0 && !p.near && !p.skinny && !p.swap && p.yBytes() <= keepBytes {
			j.stays, p.packY = c.Keep, true
		} else {
			c.Keep.full = false
		}
	}
	p.layout()
}

// cut chooses the rows and columns of tiles and units. It makes enough units that all threads end
// at about the same time, even if one of them had to be woken and started late.
func (p *plan) cut(c *Contraction, batches, threads int64) {
	rowBytes, bytes := timesPower(tileRowBytes, c.Wide), int64(tileBytes)
	if c.drains() && p.k <= shortK {
		bytes = shortTile
	}
	bytes = timesPower(bytes, c.High)
	if p.m <= 4 {
		rowBytes *= 4
	}
	p.nb = min(max(rowBytes/p.size/p.nr, 1), p.panels) * p.nr
	p.mb = min(p.m, p.tileRows(bytes))
	p.group = p.m
	p.direct = p.x.Kind == Memory && p.x.KStride == 1 && p.x.Stride >= 0 && p.m*p.x.Stride*p.size <= directBytes && (p.m == 1 || p.x.Stride*p.size%directPage != 0)
	if threads > 1 {
		p.cutForMany(batches, threads, bytes)
	}
	p.groups, p.strips = ceilDiv(p.m, p.group), ceilDiv(p.n, p.nb)
}

// lonePanel reports that each thread packs the single panel of y for itself.
func (p *plan) lonePanel(batches, threads int64) bool {
	return batches == 1 && p.panels == 1 && !p.skinny && p.m >= fewRows*threads
}

func (p *plan) cutForMany(batches, threads, bytes int64) {
	wanted := unitsOfAThread * threads
	if batches < threads && p.m >= 4*p.mb {
		// y is packed once for all threads, if it fits; x is copied as it is read
		rows := ceilDiv(p.m, ceilDiv(2*wanted, ceilDiv(p.n, p.nb)))
		p.mb = min(p.mb, roundUp(rows, p.mr))
		p.group = p.mb
		return
	}
	for p.nb > p.nr && batches*ceilDiv(p.n, p.nb) < wanted {
		p.nb = roundUp(p.nb/2, p.nr)
	}
	if p.lonePanel(batches, threads) {
		p.group = ceilDiv(p.m, threads)
	} else if batches*ceilDiv(p.n, p.nb) < threads {
		p.group = roundUp(ceilDiv(p.m, wanted/2), p.mr)
	}
	p.mb = min(p.group, p.tileRows(bytes))
	p.group = min(roundUp(p.group, p.mb), p.m)
}

// places chooses what is packed, and where.
func (p *plan) places(c *Contraction, batches, threads int64) {
	p.near = p.blocks == 1 && !p.tiled && p.y.Kind == Memory && p.y.Stride == 1 && p.y.KStride >= 0 && p.n%p.nr == 0 && p.k*p.y.KStride*p.size <= nearBytes
	xBytes := p.blocks * blockK * p.m * p.size
	if p.k > 0 && !p.near && !p.skinny && (batches < threads || batches == 1) {
		p.packY = p.groups > 1 && p.yBytes() <= sharedBytes && !p.lonePanel(batches, threads)
		p.packX = p.strips > 1 && p.x.Kind != Memory && xBytes <= sharedBytes
	}
	p.keep = 1
	if p.group > p.mb && p.blocks*p.kc*p.nb*p.size <= keepBytes {
		p.keep = p.blocks
	}
}

// layout divides a thread's memory.
func (p *plan) layout() {
	p.ld = p.nb
	if p.nb*p.size%1024 == 0 { // rows of a tile must not map to the same cache lines
		p.ld += cacheLine / p.size
	}
	tile, strip, rows := roundUp(p.mb*p.ld*p.size, cacheLine), p.keep*p.nb, p.mr
	switch {
	case p.skinny:
		strip, rows = p.nr, p.mb
	case p.packY:
		strip = 0
	}
	p.atStrip = roundUp(rows*blockK*p.size, cacheLine)
	p.atKnown = p.atStrip + roundUp(strip*p.kc*p.size, cacheLine)
	p.atStage = p.atKnown + roundUp(strip/p.nr*p.blocks*4, cacheLine)
	p.atTile = p.atStage + maxFill*p.size
	p.atAcc, p.own = p.atTile, p.atTile
	if p.tiled {
		p.atAcc += tile
	}
	if p.own = p.atAcc; p.skinny || p.swap {
		p.own += tile
	}
}
