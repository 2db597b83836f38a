package native

import "github.com/millrace-go/millrace/ir"

// Lanes of folds while the main loop of a row runs: in registers where those are enough,
// else in the frame, each at a place that the code knows. Where the loop does not go, in
// what is left of a row, any vector finds its lanes in the frame.

// accumulator is the lanes of one fold in registers.
type accumulator struct {
	lanes []value // of an extremum one for each vector of a turn
	// What an extremum does not tell: whether any element of a lane was a zero of the sign
	// that wins, as the bits that all had, or any had, and which lanes had no NaN.
	sign value
	real []value
	last value // the vector before the one at hand
}

const (
	// mostTurns bounds how often the loop's body is repeated for the lanes of a fold, in
	// values.
	mostTurns = 400
	// extremeMasks are those of an extremum, which would wait for one.
	extremeMasks = 2
	// The predicates that one is NaN, and that neither is.
	unordered, ordered = 3, 7
)

// turnsOf is how many steps of n vectors take all lanes of a fold; 0 where nobody folds
// rows, or so often is too much code.
func (c *code) turnsOf(n int) int {
	if len(c.v.Folds) == 0 || c.v.Columns {
		return 0
	}
	t := ir.FoldLanes / (n * c.lanes)
	if t > 1 && c.work()*n*t > mostTurns {
		return 0
	}
	return t
}

// extreme reports that the fold is the extremum of floats as amd64 has it but for NaN and
// the sign of zero, which are looked after beside it.
func (c *code) extreme(j int) bool { return c.v.Folds[j].Image != nil && !c.isa.A64 }

// choose gives the folds registers of so many, for steps of n vectors; how many are left.
func (c *code) choose(free, n int) int {
	c.accs = make([]*accumulator, len(c.v.Folds))
	if c.turns = c.turnsOf(n); c.turns == 0 {
		return free
	}
	for j := range c.v.Folds {
		size := c.lanes * sizeOf(c.foldDType(j))
		count, need := ir.FoldLanes/c.lanes, ir.FoldLanes/c.lanes
		if c.extreme(j) {
			if count, need = n, n+1; !c.isa.EVEX {
				need++
			}
		}
		if need > free || c.isa.EVEX && c.extreme(j) && extremeMasks*(j+1) > len(c.masks.owner)-4 {
			continue
		}
		free -= need
		a := &accumulator{}
		home := func(i int) value {
			return c.newValue(info{size: size, home: inFrame, mem: at(rdi, c.lanesOf(j)+i*size)})
		}
		for i := range count {
			a.lanes = append(a.lanes, home(i))
		}
		if c.extreme(j) {
			a.sign = home(0)
			for range extremeMasks {
				a.real = append(a.real, c.newValue(info{size: size, mask: true}))
			}
			if !c.isa.EVEX {
				a.real = []value{home(0)}
			}
		}
		c.accs[j] = a
	}
	return free
}

// hold has a value in a register until drop; fill fills it.
func (c *code) hold(v value, fill func(r uint8)) {
	f := c.fileOf(v)
	r := c.take(f)
	fill(r)
	x := &c.vals[v]
	f.owner[r], x.reg, x.pinned = v, int16(r), true
}

func (c *code) drop(v value) {
	x := &c.vals[v]
	c.fileOf(v).owner[x.reg] = 0
	x.reg, x.pinned = -1, false
}

// open fills the registers of the folds.
func (c *code) open() {
	for j, a := range c.accs {
		if a == nil {
			continue
		}
		if !c.extreme(j) {
			for _, v := range a.lanes {
				c.hold(v, func(r uint8) { c.fromMemory(v, r) })
			}
			continue
		}
		k, n := kinds[c.foldDType(j)], c.vals[a.sign].size
		elem, top := signBit(k)
		none := top&^(top>>1) | c.infinity(k) // below all, or, without its sign, above
		same := ^uint64(0)
		if c.v.Folds[j].least() {
			none, same = c.infinity(k), 0
		}
		fill := func(v value, bits uint64) {
			from := c.splat(elem, bits, n)
			c.hold(v, func(r uint8) { c.fromMemory(from, r) })
		}
		for _, v := range a.lanes {
			fill(v, none)
		}
		fill(a.sign, same)
		for _, v := range a.real {
			if !c.vals[v].mask {
				fill(v, ^uint64(0))
				continue
			}
			c.hold(v, func(r uint8) { c.vector(kxnorw, 16, args{reg: r, v: r, rm: inReg(r), imm: noImm}) })
		}
	}
}

func (c *code) infinity(k kind) uint64 {
	if k == f64 {
		return 0x7ff << 52
	}
	return 0xff << 23
}

// least tells the fold for the least element.
func (f *Fold) least() bool { return f.Extremum == ir.Minimum }

// close brings what the registers have come to into the frame.
func (c *code) close() {
	for j, a := range c.accs {
		if a == nil {
			continue
		}
		if c.extreme(j) {
			c.closeExtreme(j, a)
			continue
		}
		for _, v := range a.lanes {
			c.storeVec(c.vals[v].mem, c.vals[v].size, uint8(c.vals[v].reg))
			c.drop(v)
		}
	}
}

// accumulate appends how a vector of a turn is joined to its lanes in registers.
func (c *code) accumulate(j int, v value, u, n int) {
	a, f := c.accs[j], &c.v.Folds[j]
	if c.extreme(j) {
		c.accumulateExtreme(j, a, v, u, n)
		return
	}
	if f.Image != nil {
		v = c.apply(f.Image, []value{v}, nil)[0]
	}
	lane := a.lanes[c.turn*n+u]
	c.into(lane, c.apply(f.Join, []value{lane}, []value{v})[0])
}

// into has what the last item makes take the place of a value that is held.
func (c *code) into(held, by value) {
	if it := &c.items[len(c.items)-1]; it.d == by && it.emit == nil && it.o != vfmadd231ps && it.o != vfmadd231pd && it.s[2] == 0 {
		it.d = held
		return
	}
	c.replace([]value{held}, []value{by})
}

func (c *code) accumulateExtreme(j int, a *accumulator, v value, u, n int) {
	k, size := kinds[c.foldDType(j)], c.vals[v].size
	o, logic, all := maxs[k], c.bitwise(&logicAnd, k), int16(0x80)
	if c.v.Folds[j].least() {
		o, logic, all = mins[k], c.bitwise(&logicOr, k), 0xfe
	}
	c.item(item{o: o, size: size, d: a.lanes[u], s: [3]value{a.lanes[u], v}, imm: noImm})
	before := a.last
	if n == 1 {
		before = v
	} else if u%2 == 0 {
		a.last = v
		return
	}
	if c.isa.EVEX {
		c.item(item{o: vpternlogd, size: size, d: a.sign, s: [3]value{before, v}, imm: all})
		m := a.real[u/2%extremeMasks]
		c.item(item{o: kcmps[k], size: size, d: m, s: [3]value{before, v}, k: m, imm: ordered})
		return
	}
	for _, x := range []value{before, v} {
		c.item(item{o: logic, size: size, d: a.sign, s: [3]value{a.sign, x}, imm: noImm})
	}
	m := c.op3i(cmps[k], size, before, v, ordered)
	c.item(item{o: vpand, size: size, d: a.real[0], s: [3]value{a.real[0], m}, imm: noImm})
}

// closeExtreme gives the extremum of the registers its sign and its NaN, and joins it to
// the first lanes.
func (c *code) closeExtreme(j int, a *accumulator) {
	f, k := &c.v.Folds[j], kinds[c.foldDType(j)]
	n, o := c.vals[a.sign].size, maxs[k]
	if f.least() {
		o = mins[k]
	}
	elem, top := signBit(k)
	x := a.lanes[0]
	for _, v := range a.lanes[1:] {
		x = c.op3(o, n, x, v)
	}
	zero := c.splat(elem, 0, n)
	sign := c.op3(c.bitwise(&logicAnd, k), n, a.sign, c.splat(elem, top, n))
	nan := c.splat(elem, ^uint64(0), n)
	if c.isa.EVEX {
		x = c.blend(k, n, c.toMask(kcmps[k], n, x, zero, 0), sign, x)
		x = c.blend(k, n, c.toMask(kandw, c.lanes, a.real[0], a.real[1], noImm), x, nan)
	} else {
		choose := func(m, x, y value) value {
			return c.item(item{o: blendvs[k], size: n, d: c.vec(n), s: [3]value{y, x, m}, imm: noImm})
		}
		x = choose(c.op3i(cmps[k], n, x, zero, 0), sign, x)
		x = choose(a.real[0], x, nan)
	}
	x = c.apply(f.Image, []value{x}, nil)[0]
	lanes := at(rdi, c.lanesOf(j))
	x = c.apply(f.Join, []value{c.load1(n, lanes, nil)}, []value{x})[0]
	c.write(x, n, lanes)
	c.emitItems()
	for _, v := range append(append([]value{a.sign}, a.lanes...), a.real...) {
		c.drop(v)
	}
}
