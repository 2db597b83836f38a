package native

import "github.com/millrace-go/millrace/ir"

// The lanes of folds while the main loop of a row runs. If there are enough registers, the lanes are
// in registers; else they are in the frame, each at a fixed offset. For the remaining points of a
// row, which the loop does not cover, the lanes are always in the frame.

// accumulator holds the lanes of one fold in registers.
type accumulator struct {
	lanes []value // for an extremum: one per vector of a turn
	// State that max and min instructions do not keep. sign tells whether any element of a lane was
	// a zero of the winning sign: the AND of all bits for a maximum, the OR for a minimum. real
	// tells which lanes had no NaN.
	sign value
	real []value
	last value // the previous vector
}

const (
	// mostTurns limits the repetition of the loop's body for the lanes of a fold, in values.
	mostTurns = 400
	// extremeMasks is the number of masks per extremum; with one, steps would wait for it.
	extremeMasks = 2
	// The predicates for "one is NaN" and "neither is NaN".
	unordered, ordered = 3, 7
)

// turnsOf returns the number of steps of n vectors that together cover all lanes of a fold. It is 0
// if no rows are folded, or if so many repetitions would be too much code.
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

// extreme reports that the fold is an extremum of floats on amd64, whose instructions treat NaN and
// the sign of zero in another way; an accumulator records these separately.
func (c *code) extreme(j int) bool { return c.v.Folds[j].Image != nil && !c.isa.A64 }

// choose gives the folds some of the free registers, for steps of n vectors. It returns the number
// that remains.
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

// hold keeps a value in a register until drop; fill loads it.
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
		none := top&^(top>>1) | c.infinity(k) // -Inf for a maximum, +Inf for a minimum
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

// least reports a fold to the least element.
func (f *Fold) least() bool { return f.Extremum == ir.Minimum }

// close joins the registers' values to the frame.
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

// accumulate appends the items that join a vector of a turn to its lanes in registers.
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

// into makes the result of the last item replace a held value.
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

// closeExtreme gives the extremum in the registers its sign of zero and its NaNs, and joins it to
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
