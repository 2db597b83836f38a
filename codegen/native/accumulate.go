package native

import "github.com/millrace-go/millrace/ir"

// The lanes of folds while the main loop of a row runs. If there are enough registers, the lanes are
// in registers; else they are in the frame, each at a fixed offset. For the remaining points of a
// row, which the loop does not cover, the lanes are always in the frame.

// Accumulator holds the lanes of one fold in registers.
type Accumulator struct {
	Lanes []Value // for an extremum: one per vector of a turn
	// State that max and min instructions do not keep. sign tells whether any element of a lane was
	// a zero of the winning sign: the AND of all bits for a maximum, the OR for a minimum. real
	// tells which lanes had no NaN.
	Sign Value
	Real []Value
	Last Value // the previous vector
}

const (
	// mostTurns limits the repetition of the loop's body for the lanes of a fold, in values.
	mostTurns = 400
	// ExtremeMasks is the number of masks per extremum; with one, steps would wait for it.
	ExtremeMasks = 2
	// The predicates for "one is NaN" and "neither is NaN".
	Unordered, Ordered = 3, 7
)

// turnsOf returns the number of steps of n vectors that together cover all lanes of a fold. It is 0
// if no rows are folded, or if so many repetitions would be too much code.
func (c *code) turnsOf(n int) int {
	if len(c.v.Folds) == 0 || c.v.Columns {
		return 0
	}
	t := ir.FoldLanes / (n * c.Lanes)
	if t > 1 && c.work()*n*t > mostTurns {
		return 0
	}
	return t
}

// extreme reports that the fold is an extremum of floats on a target whose instructions treat NaN and
// the sign of zero in another way; an accumulator records these separately.
func (c *code) extreme(j int) bool { return c.v.Folds[j].Image != nil && c.ISA.Extremes }

// choose gives the folds some of the free registers, for steps of n vectors. It returns the number
// that remains.
func (c *code) choose(free, n int) int {
	c.accs = make([]*Accumulator, len(c.v.Folds))
	if c.turns = c.turnsOf(n); c.turns == 0 {
		return free
	}
	for j := range c.v.Folds {
		size := c.Lanes * SizeOf(c.foldDType(j))
		count, need := ir.FoldLanes/c.Lanes, ir.FoldLanes/c.Lanes
		if c.extreme(j) {
			if count, need = n, n+1; !c.ISA.Masks {
				need++
			}
		}
		if need > free || c.ISA.Masks && c.extreme(j) && ExtremeMasks*(j+1) > len(c.Masks.Owner)-4 {
			continue
		}
		free -= need
		a := &Accumulator{}
		home := func(i int) Value {
			return c.NewValue(Info{Size: size, Home: InFrame, Mem: At(RDI, c.lanesOf(j)+i*size)})
		}
		for i := range count {
			a.Lanes = append(a.Lanes, home(i))
		}
		if c.extreme(j) {
			a.Sign = home(0)
			for range ExtremeMasks {
				a.Real = append(a.Real, c.NewValue(Info{Size: size, Mask: true}))
			}
			if !c.ISA.Masks {
				a.Real = []Value{home(0)}
			}
		}
		c.accs[j] = a
	}
	return free
}

// hold keeps a value in a register until drop; fill loads it.
func (c *code) hold(v Value, fill func(r uint8)) {
	f := c.fileOf(v)
	r := c.Take(f)
	fill(r)
	x := &c.Vals[v]
	f.Owner[r], x.Reg, x.Pinned = v, int16(r), true
}

func (c *code) drop(v Value) {
	x := &c.Vals[v]
	c.fileOf(v).Owner[x.Reg] = 0
	x.Reg, x.Pinned = -1, false
}

// open fills the registers of the folds.
func (c *code) open() {
	for j, a := range c.accs {
		if a == nil {
			continue
		}
		if !c.extreme(j) {
			for _, v := range a.Lanes {
				c.hold(v, func(r uint8) { c.FromMemory(v, r) })
			}
			continue
		}
		k, n := Kinds[c.foldDType(j)], c.Vals[a.Sign].Size
		elem, top := SignBit(k)
		none := top&^(top>>1) | c.infinity(k) // -Inf for a maximum, +Inf for a minimum
		same := ^uint64(0)
		if c.v.Folds[j].least() {
			none, same = c.infinity(k), 0
		}
		fill := func(v Value, bits uint64) {
			from := c.Splat(elem, bits, n)
			c.hold(v, func(r uint8) { c.FromMemory(from, r) })
		}
		for _, v := range a.Lanes {
			fill(v, none)
		}
		fill(a.Sign, same)
		for _, v := range a.Real {
			if !c.Vals[v].Mask {
				fill(v, ^uint64(0))
				continue
			}
			c.hold(v, func(r uint8) { c.SetMask(r, true) })
		}
	}
}

func (c *code) infinity(k Kind) uint64 {
	if k == F64 {
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
		for _, v := range a.Lanes {
			c.StoreVec(c.Vals[v].Mem, c.Vals[v].Size, uint8(c.Vals[v].Reg))
			c.drop(v)
		}
	}
}

// accumulate appends the items that join a vector of a turn to its lanes in registers.
func (c *code) accumulate(j int, v Value, u, n int) {
	a, f := c.accs[j], &c.v.Folds[j]
	if c.extreme(j) {
		c.JoinExtreme(a, Kinds[c.foldDType(j)], f.least(), v, u, n)
		return
	}
	if f.Image != nil {
		v = c.apply(f.Image, []Value{v}, nil)[0]
	}
	lane := a.Lanes[c.turn*n+u]
	c.into(lane, c.apply(f.Join, []Value{lane}, []Value{v})[0])
}

// into makes the result of the last item replace a held value.
func (c *code) into(held, by Value) {
	if it := &c.items[len(c.items)-1]; it.D == by && it.Emit == nil && it.S[2] == 0 {
		it.D = held
		return
	}
	c.replace([]Value{held}, []Value{by})
}

// closeExtreme gives the extremum in the registers its sign of zero and its NaNs, and joins it to
// the first lanes.
func (c *code) closeExtreme(j int, a *Accumulator) {
	f, n := &c.v.Folds[j], c.Vals[a.Sign].Size
	x := c.ExtremeOf(a, Kinds[c.foldDType(j)], f.least())
	x = c.apply(f.Image, []Value{x}, nil)[0]
	lanes := At(RDI, c.lanesOf(j))
	x = c.apply(f.Join, []Value{c.load1(n, lanes, nil)}, []Value{x})[0]
	c.write(x, n, lanes)
	c.emitItems()
	for _, v := range append(append([]Value{a.Sign}, a.Lanes...), a.Real...) {
		c.drop(v)
	}
}
