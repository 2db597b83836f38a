package gpurun

import (
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Invocations per workgroup. group is the smallest size that measured well everywhere and that
// every adapter allows. groupWide keeps hardware busy if invocations share nothing (a copy on an
// H200: 77 µs, with groups of 64 99 µs).
const (
	group     = 64
	groupWide = 256
)

// chooser is the choice of a piece's variant.
type chooser struct {
	v     shader.Variant
	k     *codegen.Kernel
	p     *piece
	lanes int // most points of a step; 1 once a step has decided for single points
	turn  int // see turnDim; 0 unless the variant is a map
}

// choices are the steps of choose, in their order: each decides one part of the variant and reads what
// the steps before it decided.
var choices = [...]struct {
	name, does string
	run        func(c *chooser)
}{
	{"mode", "decides what an invocation computes and how many share a workgroup", (*chooser).mode},
	{"operands", "finds the class of each operand and the points that store it", (*chooser).operands},
	{"bindings", "lists the windows of memory that the shader binds", (*chooser).bindings},
	{"wide", "loads dense sides of a contraction by matrices as vectors", (*chooser).wide},
	{"across", "gives an invocation several neighbouring rows", (*chooser).across},
	{"turn", "on a GPU, runs a transposed map by squares in workgroup memory", (*chooser).takeTurn},
	{"vectors", "gives a step several points of a row", (*chooser).vectors},
	{"steps", "on a software adapter, gives an invocation of a map several steps", (*chooser).steps},
	{"group", "decides how many invocations share a row", (*chooser).group},
	{"subgroups", "folds by the adapter's subgroups", (*chooser).subgroups},
	{"each", "on a software adapter, gives an invocation several rows of vectors", (*chooser).each},
}

// choose returns the variant that runs a piece. lanes is the largest number of points per step for
// which the kernel can be printed.
func choose(k *codegen.Kernel, p *piece, lanes int) shader.Variant {
	l := &p.launch
	c := &chooser{v: shader.Variant{Rank: l.Rank, Kept: l.Kept, Lanes: 1, Group: group}, k: k, p: p, lanes: lanes}
	for i := range choices {
		choices[i].run(c)
	}
	return c.v
}

func (c *chooser) mode() {
	k, p, l, v := c.k, c.p, &c.p.launch, &c.v
	switch {
	case k.Scatter() != ir.None:
		v.Mode, c.lanes = shader.Scatters, 1
		if p.checks {
			v.Mode = shader.Checks
		}
	case dotOf(k) >= 0:
		v.Mode, v.Tile, c.lanes = shader.Tiles, chooseTile(k, l, p.software), 1
		batch, m, n := dotSizes(k, l)
		v.Tile, _ = p.unitTile(v.Tile, batch, m, n)
		v.Group = v.Tile.Group()
	case k.HasRows():
		v.Mode = shader.Cols
		if byRows(k, l) || p.abreast(k) {
			v.Mode = shader.Rows
		}
		if v.Mode == shader.Cols && p.beside(k) {
			v.Mode, v.Beside, c.lanes = shader.Rows, besideRows, 1
			v.Group = besideRows * min(besideShares, p.groupSize/besideRows)
			takeCluster(v, p)
		}
		if p.software && v.Mode == shader.Cols {
			// An exponential costs a CPU less than a load. Its compiler does not unroll loops over
			// more than two points, which then cost more.
			v.Online = 1
			if reducedSize(l)%2 == 0 {
				v.Online = 2
			}
		}
	}
	if v.Mode == shader.Map && !p.software && groupWide <= p.groupSize {
		v.Group = groupWide
	}
}

func (c *chooser) operands() {
	k, p, l := c.k, c.p, &c.p.launch
	rows, dot := k.HasRows(), dotOf(k) >= 0
	c.v.Args = make([]shader.Arg, len(l.Args))
	for i := range l.Args {
		a := &l.Args[i]
		x := shader.Arg{Class: codegen.ClassOf(l, i), Binding: p.binding[i], Skip: p.skip[i]}
		for _, s := range a.Stages {
			x.Stages = append(x.Stages, len(s.Dims))
		}
		if p.parts[i] > 1 {
			x.Parts, x.Part = p.parts[i], uint32(p.part/p.windows[p.binding[i]].elem)
		}
		if dot && x.Class != codegen.Staged {
			x.Class = codegen.Strided // not in a loop along the innermost dim
		}
		if k.Operands[i].Kind == codegen.Output {
			for d, n := range l.Dims[:l.Rank] {
				if n > 1 && a.Stride[d] == 0 {
					x.Guard |= 1 << d
				}
			}
			if rows && k.Operands[i].Row {
				// It is constant along the reduced dims by design.
				x.Guard &= 1<<l.Kept - 1
			}
		}
		c.v.Args[i] = x
	}
}

func (c *chooser) bindings() {
	c.v.Bindings = make([]shader.Binding, len(c.p.windows))
	for w, x := range c.p.windows {
		c.v.Bindings[w] = shader.Binding{Write: x.write, DT: bindingType(c.k, c.p, w), Size: narrowSize(x.elem)}
	}
	c.v.Indexed(c.k)
}

// wide decides for each side that is an operand: its neighbours in a tile's line must be neighbours in
// memory, in aligned groups of four, and nothing else may read its window.
func (c *chooser) wide() {
	t := &c.v.Tile
	if t.Matrix == (shader.Matrix{}) {
		return
	}
	l := &c.p.launch
	lines := [2]int{l.Kept - t.NDims - 1, l.Kept - 1} // the last dims along m and n; -1: m has none
	if t.AlongA {
		lines[0] = l.Rank - 1
	}
	if t.AlongB {
		lines[1] = l.Rank - 1
	}
	var operands [2]int
	vectors := map[int]bool{} // windows
	for side := range operands {
		o := shader.WideOperand(c.k, &t.Matrix, side)
		if operands[side] = o; o >= 0 {
			vectors[c.p.binding[o]] = true
		}
	}
	for i, w := range c.p.binding {
		if w < 0 || !vectors[w] {
			continue
		}
		for side, o := range operands {
			elem := c.p.windows[w].elem
			if o == i && (lines[side] < 0 || c.p.parts[i] > 1 || c.v.Args[i].Indexed || l.Dims[lines[side]]%4 != 0 || c.p.windows[w].off%(4*elem) != 0 || !aligned(c.p, i, 4, lines[side])) {
				vectors[w] = false
			}
		}
		if i != operands[0] && i != operands[1] {
			vectors[w] = false
		}
	}
	for side, wide := range [2]*bool{&t.WideA, &t.WideB} {
		if o := operands[side]; o >= 0 && vectors[c.p.binding[o]] {
			*wide, c.v.Bindings[c.p.binding[o]].Vec = true, true
		}
	}
}

func (c *chooser) across() {
	v, l := &c.v, &c.p.launch
	if v.Mode != shader.Cols || c.lanes <= 1 || !c.p.across(c.lanes) {
		return
	}
	v.Across = true
	for i := range v.Args {
		v.Args[i].Class = codegen.ClassAlong(l, i, l.Kept-1)
	}
	vectorise(v, c.k, c.p, c.lanes, l.Kept-1)
	if v.Across = v.Lanes > 1; v.Across {
		return
	}
	for i := range v.Args {
		v.Args[i].Class = codegen.ClassOf(l, i)
	}
}

func (c *chooser) takeTurn() {
	if c.v.Mode == shader.Map {
		c.turn = turnDim(&c.v, c.k, &c.p.launch)
	}
	if c.turn > 0 && !c.p.software {
		takeTurn(&c.v, c.k, &c.p.launch, c.turn, false)
		c.lanes = 1
	}
}

func (c *chooser) vectors() {
	l := &c.p.launch
	inner, lanes := l.Dims[l.Rank-1], int64(c.lanes)
	if lanes > 1 && c.v.Mode != shader.Cols && (inner%lanes == 0 || l.Rank == 1 && c.v.Mode == shader.Map && inner > lanes) {
		vectorise(&c.v, c.k, c.p, c.lanes, l.Rank-1)
	}
	if c.v.Mode == shader.Rows {
		takeRagged(&c.v, c.k, c.p, c.lanes)
	}
}

func (c *chooser) steps() {
	v, l := &c.v, &c.p.launch
	if v.Mode != shader.Map || !c.p.software {
		return
	}
	if inner := l.Dims[l.Rank-1]; v.Lanes < c.lanes && inner >= raggedLong {
		v.Lanes = c.lanes
		v.Ragged = inner%int64(c.lanes) > 0
		v.Tail = v.Ragged
	}
	if c.turn > 0 {
		takeTurn(v, c.k, l, c.turn, true)
	} else {
		takeSteps(v, l)
	}
}

func (c *chooser) group() {
	switch {
	case c.v.Mode != shader.Rows || c.v.Beside > 0:
	case c.p.abreast(c.k):
		takeAbreast(&c.v, c.k, c.p)
	default:
		chooseGroup(&c.v, c.k, c.p)
	}
}

func (c *chooser) subgroups() {
	c.v.Subgroups = c.p.subgroups.size > 0 && c.v.Mode == shader.Rows && c.v.Beside == 0 && c.v.Abreast == 0 && c.v.Each < 2
}

func (c *chooser) each() {
	if c.p.software && c.v.Across && takesEach(&c.v, c.k, c.p) {
		takeEach(&c.v, c.k, c.p)
	}
}

// On a software adapter an invocation costs as much as reading four elements, and reading a
// run-time word as much as arithmetic. Four vectors therefore share one invocation. Long rows use
// lanes, too, even if no operand moves by whole vectors.
const (
	raggedLong = 16
	mapSteps   = 4
	stepGroups = 64 // workgroups that keep every core busy
)

func takeSteps(v *shader.Variant, l *runtime.Launch) {
	if n := v.Units(l); n >= int64(mapSteps*stepGroups*v.Group) {
		v.Steps, v.Exact = mapSteps, n%mapSteps == 0
	}
}

// narrowSize is the size of elements in shader.Binding: 0 for words.
func narrowSize(elem int64) uint8 {
	if elem == wordSize {
		return 0
	}
	return uint8(elem)
}

// bindingType returns the common dtype of a window's operands.
func bindingType(k *codegen.Kernel, p *piece, w int) ir.DType {
	dt := ir.Invalid
	for i, o := range k.Operands {
		switch {
		case p.binding[i] < 0 || w < p.binding[i] || w >= p.binding[i]+p.parts[i]:
		case dt == ir.Invalid:
			dt = o.DT
		case dt != o.DT:
			return ir.Invalid
		}
	}
	return dt
}

// acrossRows is the number of rows from which a fourth as many invocations still keep a GPU busy:
// one with 132 processors holds 270,000 invocations.
const acrossRows = 1 << 20

// across reports whether one invocation may take several neighbouring rows.
func (p *piece) across(lanes int) bool {
	l := &p.launch
	return l.Kept > 0 && l.Dims[l.Kept-1]%int64(lanes) == 0 && (p.software || points(l.Dims[:l.Kept]) >= acrossRows)
}

// Some launches have rows side by side in memory, but too few for one invocation each. Then a
// workgroup takes besideRows rows, a line of memory, and besideShares invocations share each row.
// Softmax of 65,536 rows of 512 takes an H200 0.13 ms, with one invocation per row 0.27.
const (
	besideRows   = 32
	besideShares = 16
	besideLong   = 64      // least points of a row
	besideMost   = 1 << 20 // most rows
	besideFolds  = 4       // folds whose partial results fit in the smallest workgroup memory
)

func (p *piece) beside(k *codegen.Kernel) bool {
	l, list := &p.launch, 0
	for _, in := range k.Body {
		if in.Op.Class() == ir.ClassReduce {
			list++
		}
	}
	return !p.software && list <= besideFolds && p.groupSize >= 8*besideRows && l.Kept > 0 && l.Dims[l.Kept-1]%besideRows == 0 &&
		reducedSize(l) >= besideLong && points(l.Dims[:l.Kept]) < besideMost && !scans(k)
}

// vectorise makes v compute lanes points per step along a dim if some operand can move by whole
// vectors; the other operands gather and scatter.
func vectorise(v *shader.Variant, k *codegen.Kernel, p *piece, lanes, dim int) {
	vectors := make([]bool, len(p.windows))
	for w := range vectors {
		vectors[w] = true
	}
	for i := range v.Args {
		if w := p.binding[i]; w >= 0 && !(aligned(p, i, lanes, dim) && (!v.Args[i].Indexed || !v.Across && shader.EvenIndex(k, v, i))) {
			vectors[w] = false
		}
	}
	some := false
	for i := range v.Args {
		if w := p.binding[i]; w >= 0 && vectors[w] {
			v.Args[i].Vec, some = true, true
			v.Args[i].Part /= uint32(lanes)
			for part := range p.parts[i] {
				v.Bindings[w+part].Vec = true
			}
		}
	}
	if !some {
		return
	}
	v.Lanes = lanes
	l := &p.launch
	n := l.Dims[dim]
	if v.Mode != shader.Map || n%int64(lanes) == 0 {
		return
	}
	// The last vector goes past the end. Its loads read padding; its stores must write padding
	// only.
	for i, o := range k.Operands {
		if o.Kind == codegen.Output && !v.Args[i].Skip && !padded(p, i, v.Args[i], n) {
			v.Tail = true
		}
	}
}

// aligned reports whether operand i moves by whole vectors at vector addresses.
func aligned(p *piece, i, lanes, dim int) bool {
	l, a, m := &p.launch, &p.launch.Args[i], int64(lanes)
	if len(a.Stages) > 0 || a.Stride[dim] != 1 || a.Offset%m != 0 || a.IndexStride%m != 0 {
		return false
	}
	for d, n := range l.Dims[:l.Rank] {
		if d != dim && n > 1 && a.Stride[d]%m != 0 {
			return false
		}
	}
	return true
}

// padded reports whether the memory after an output's last element is padding.
func padded(p *piece, i int, x shader.Arg, n int64) bool {
	if !x.Vec {
		return x.Class == codegen.Splat
	}
	w := &p.windows[p.binding[i]]
	return w.off+(p.launch.Args[i].Offset+n)*w.elem >= w.buf.Bytes()
}

// unrolling says how invocations share rows. A row that several passes read is kept in registers,
// with its steps written out, if few invocations can cover it in few steps. On a CPU invocations
// are lanes of a vector: a barrier between several vectors costs more than reading a row again.
type unrolling struct {
	groups []int // candidates of invocations per row, the smallest sufficient one is used
	steps  int   // most steps that are written out
	work   int   // most steps times instructions written out
}

var unrollings = map[bool]unrolling{
	false: {[]int{64, 128, 256}, 8, 1024},
	true:  {[]int{8}, 64, 1024},
}

// chooseGroup decides how many invocations share a row, whether they keep it in registers between
// passes, and whether they take several rows.
func chooseGroup(v *shader.Variant, k *codegen.Kernel, p *piece) {
	un := unrollings[p.software]
	v.Group = un.groups[0]
	steps := v.RowSteps(&p.launch)
	if steps == 0 || scans(k) {
		return
	}
	unrolled := shader.CountRowWork(k, v, true)
	if p.software && !v.Ragged && takesEach(v, k, p) {
		each := *v
		takeEach(&each, k, p)
		if work := shader.CountRowWork(k, &each, false); work.Accesses < unrolledCost*unrolled.Accesses {
			*v = each
			return
		}
	}
	if shader.Passes(k) < 2 {
		return
	}
	for _, g := range un.groups {
		n := (steps + g - 1) / g
		if n <= un.steps && n*unrolled.Instrs <= un.work {
			v.Group, v.Unroll, v.Exact = g, n, n*g == steps && !v.Ragged
			return
		}
	}
}

// A CPU reads memory by lines, and its TLB holds few pages. An invocation that walks over rows with
// distant points therefore takes as many rows as share a line. On GPUs neighbouring invocations do
// that. If a workgroup shares a row, taking several rows at once shares row-independent work and
// barriers.
const (
	eachRows     = 4       // vectors: 64 bytes
	eachWide     = 16      // vectors, taken in turns by Apart invocations: 2 KB, which caches prefetch
	manyVectors  = 1 << 11 // vectors of rows that leave enough invocations
	wideVectors  = 1 << 12 // the same for eachWide
	wideLong     = 64      // points of a row that justify the code
	manyGroups   = 1 << 8  // rows that leave enough workgroups
	unrolledCost = 1.3     // cost of a written-out access relative to one in the compiler's loop
)

// takesEach reports whether there are neighbours to take several of at once.
func takesEach(v *shader.Variant, k *codegen.Kernel, p *piece) bool {
	kept := p.launch.Dims[:p.launch.Kept]
	units, many := int64(1), int64(manyGroups)
	if v.Across {
		units, many = int64(v.Lanes), manyVectors
	}
	wide := func(in ir.Instr) bool { return in.DT.Size() > wordSize }
	return len(kept) > 0 && kept[len(kept)-1]%(eachRows*units) == 0 && points(kept)/units >= many &&
		!slices.ContainsFunc(k.Body, wide)
}

// takeEach makes v take several neighbours.
func takeEach(v *shader.Variant, k *codegen.Kernel, p *piece) {
	l := &p.launch
	v.Each = eachRows
	if last := l.Dims[l.Kept-1] / int64(v.Lanes); v.Across && last%(eachWide*shader.Apart) == 0 && points(l.Dims[:l.Kept])/int64(v.Lanes) >= wideVectors &&
		reducedSize(l) >= wideLong && shader.CountRowWork(k, v, false).Instrs*eachWide <= unrollings[true].work {
		v.Each, v.Group = eachWide, shader.Apart
	}
	v.Args = slices.Clone(v.Args)
	for i := range v.Args {
		a := &l.Args[i]
		v.Args[i].Still = a.Stride[l.Kept-1] == 0 && len(a.Stages) == 0
	}
}

func scans(k *codegen.Kernel) bool {
	return slices.ContainsFunc(k.Body, func(in ir.Instr) bool { return in.Op.Class() == ir.ClassScan })
}
