package gpurun

import (
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// limits are those of one dispatch.
type limits struct {
	api
	binding  int64 // bytes of one window
	align    int64 // in bytes; window offsets are multiples of it
	bindings int   // storage bindings
	threads  int64 // points of the domain
	software bool  // invocations are lanes of a CPU

	groupSize int // invocations per workgroup
	subgroups
	workgroup int64 // bytes of a workgroup's memory

	narrow ir.DTypeSet // dtypes whose elements take their own size in memory
}

// subgroups are those of an adapter, as far as shaders use them.
type subgroups struct {
	size               int // 0 if they are not used
	shuffles, clusters bool
}

// elem is the bytes of an element in device memory.
func (l *limits) elem(dt ir.DType) int64 {
	if l.narrow.Has(dt) {
		return int64(dt.Size())
	}
	return wordSize
}

// maxThreads bounds the points of one dispatch: shaders count in 32 bits.
const maxThreads = 1 << 30

// window is a bound part of a buffer, in bytes.
type window struct {
	buf       runtime.Buffer
	off, size int64
	write     bool
	elem      int64 // bytes of an element
}

// piece is one dispatch: a part of a launch, with the windows of its operands. Offsets of the
// launch's memory operands are relative to their windows.
type piece struct {
	launch  runtime.Launch
	windows []window
	binding []int  // window of each operand, the first of several; -1 for index operands
	parts   []int  // windows of each operand, 1 except for large lookup tables
	part    int64  // bytes of each of several windows except the last
	skip    []bool // outputs that only other pieces store

	software  bool // see limits
	groupSize int
	subgroups
	workgroup int64
	matrix    shader.Matrix // for contractions; usually zero
	scattering
}

// splitter cuts launches into pieces that a device can run.
type splitter struct {
	limits
	// emit takes a finished piece of a kernel.
	emit func(k *codegen.Kernel, p *piece) error
	// scratch allocates memory that lives until the pieces have run.
	scratch func(bytes int64) (runtime.Buffer, error)
	// build prepares a kernel that a launch is decomposed into.
	build func(k *codegen.Kernel) (runtime.Program, *codegen.Kernel, error)
	// sorter takes a dispatch of a sort.
	sorter func(sortDispatch) error

	scattering // of the current pieces
}

// launch cuts l, which it does not change, and emits its pieces in order.
func (s *splitter) launch(k *codegen.Kernel, l *runtime.Launch) error {
	return s.whole(k, l, make([]bool, len(k.Operands)))
}

// whole is launch without the outputs of skip.
func (s *splitter) whole(k *codegen.Kernel, l *runtime.Launch, skip []bool) error {
	c := *l
	if c.Rank == 0 {
		c.Rank, c.Kept, c.Dims[0] = 1, 1, 1
	}
	if k.HasRows() && c.Kept == c.Rank {
		if c.Rank == runtime.MaxRank {
			return s.errorf("a reduction over no dims needs one more dim, but its rank is %d already", runtime.MaxRank)
		}
		c.Dims[c.Rank] = 1
		c.Rank++
	}
	for _, n := range c.Dims[:c.Kept] {
		if n == 0 {
			return nil
		}
	}
	c.Args = slices.Clone(l.Args)
	if err := s.emptyRows(k, &c); err != nil {
		return err
	}
	switch {
	case sorts(k):
		return s.staged(k, &c, skip)
	case dotOf(k) >= 0:
		return s.contract(k, &c, skip)
	case k.Scatter() != ir.None:
		return s.scatter(k, &c, skip)
	}
	return s.cut(k, &c, skip)
}

// emptyRows gives bindable memory to operands that are never read or written, and whose buffers may
// be empty: operands within rows without points, and empty ones read under a guard that is never
// true.
func (s *splitter) emptyRows(k *codegen.Kernel, l *runtime.Launch) error {
	empty := l.Kept < l.Rank && reducedSize(l) == 0
	bufs := map[int64]runtime.Buffer{} // by the size of elements, which a window has one of
	for i, o := range k.Operands {
		b := l.Args[i].Buf
		none := b != nil && b.Bytes() < s.elem(o.DT) && guarded(k, &l.Args[i], i)
		if o.Kind == codegen.Index || !none && (!empty || o.Row) {
			continue
		}
		elem := s.elem(o.DT)
		if bufs[elem] == nil {
			buf, err := s.scratch(16)
			if err != nil {
				return err
			}
			bufs[elem] = buf
		}
		l.Args[i] = runtime.Access{Buf: bufs[elem]}
	}
	return nil
}

// cut emits l if it fits, and its halves otherwise. It may change l.
func (s *splitter) cut(k *codegen.Kernel, l *runtime.Launch, skip []bool) error {
	squeeze(l)
	switch {
	case dotOf(k) >= 0:
		orderDot(k, l)
	case k.HasRows() && tooLong(k, l):
		if k.Scatter() != ir.None {
			return s.halves(k, l, skip, firstReduced(l))
		}
		return s.apart(k, l, skip)
	}
	p, wide, err := s.fit(k, l)
	if err != nil {
		return err
	}
	if p != nil {
		p.skip, p.scattering = skip, s.scattering
		return s.emit(k, p)
	}
	d := cutDim(k, l, wide)
	switch {
	case d < 0:
		return s.errorf("one point of a launch needs more memory than a binding holds")
	case d < l.Kept:
	case k.Scatter() != ir.None:
		d = firstReduced(l)
	default:
		return s.apart(k, l, skip)
	}
	return s.halves(k, l, skip, d)
}

// halves cuts l in two along dim d, and runs one half after the other.
func (s *splitter) halves(k *codegen.Kernel, l *runtime.Launch, skip []bool, d int) error {
	n := l.Dims[d]
	first := (n / 2) &^ 3 // keeps whole vectors whole
	if first == 0 {
		first = n / 2
	}
	for _, r := range [2][2]int64{{0, first}, {first, n}} {
		half, halfSkip := *l, slices.Clone(skip)
		half.Args = slices.Clone(l.Args)
		half.Dims[d] = r[1] - r[0]
		for i := range half.Args {
			half.Args[i].Offset += r[0] * half.Args[i].Stride[d]
			// Where an output is constant along d, only position 0 stores.
			if d < l.Kept && r[0] > 0 && l.Args[i].Stride[d] == 0 && k.Operands[i].Kind == codegen.Output {
				halfSkip[i] = true
			}
		}
		if err := s.cut(k, &half, halfSkip); err != nil {
			return err
		}
	}
	return nil
}

// squeeze drops dims of size 1, which cutting makes. It keeps the last kept or reduced one if that
// kind of dim would otherwise be missing.
func squeeze(l *runtime.Launch) {
	rank, kept := l.Rank, l.Kept
	reduces := kept < rank
	l.Rank, l.Kept = 0, 0
	for d := range rank {
		last := d == rank-1 && (l.Rank == 0 || reduces && l.Rank == l.Kept)
		if l.Dims[d] == 1 && !last {
			continue
		}
		l.Dims[l.Rank] = l.Dims[d]
		for i := range l.Args {
			l.Args[i].Stride[l.Rank] = l.Args[i].Stride[d]
		}
		l.Rank++
		if d < kept {
			l.Kept++
		}
	}
}

// cutDim returns the dim whose halving narrows the wide operands most; with none wide, the largest
// dim; -1 if there is none.
func cutDim(k *codegen.Kernel, l *runtime.Launch, wide []int) int {
	best, most := -1, int64(0)
	for d, n := range l.Dims[:l.Rank] {
		if n < 2 {
			continue
		}
		gain := n
		if len(wide) > 0 {
			gain = 0
			for _, i := range wide {
				st := l.Args[i].Stride[d]
				gain += max(st, -st) * (n - 1)
			}
		}
		// Kept dims are cheaper to cut than reduced ones.
		if gain > most && (best < 0 || best >= l.Kept || d < l.Kept) || best >= l.Kept && d < l.Kept && gain > 0 {
			best, most = d, gain
		}
	}
	return best
}

// fit finds windows for all operands, or names operands whose range is too wide. A nil piece
// without wide operands means too many points.
func (s *splitter) fit(k *codegen.Kernel, l *runtime.Launch) (p *piece, wide []int, err error) {
	work := l.Dims[:l.Rank]
	if dotOf(k) >= 0 {
		work = l.Dims[:l.Kept]
	}
	if points(work) > s.threads {
		return nil, nil, nil
	}
	p = &piece{launch: *l, software: s.software, groupSize: s.groupSize, subgroups: s.subgroups, workgroup: s.workgroup, binding: make([]int, len(l.Args)), parts: make([]int, len(l.Args)),
		part: s.binding / s.align * s.align}
	p.launch.Args = slices.Clone(l.Args)
	type extent struct{ lo, hi, elem int64 } // in bytes, hi past the end
	ext := make([]extent, len(l.Args))
	for i := range l.Args {
		if k.Operands[i].Kind == codegen.Index {
			p.binding[i] = -1
			continue
		}
		elem := s.elem(k.Operands[i].DT)
		lo, hi := reach(&l.Args[i], l.Dims[:l.Rank])
		if b := l.Args[i].Buf; b != nil && guarded(k, &l.Args[i], i) {
			// Only elements in the buffer are read.
			last := b.Bytes()/elem - 1
			lo, hi = max(0, min(lo, last)), min(last, max(hi, 0))
		}
		e := extent{lo * elem / s.align * s.align, (hi*elem + elem + 15) &^ 15, elem}
		if b := l.Args[i].Buf; b == nil || lo < 0 || (hi+1)*elem > b.Bytes() {
			return nil, nil, s.errorf("operand %d reaches from element %d to %d, past its buffer", i, lo, hi)
		}
		p.parts[i] = 1
		if e.hi-e.lo > s.binding {
			// Cutting does not narrow the range of an index.
			if l.Args[i].IndexSize > 1 && !scattersInto(k, i) {
				p.parts[i] = int((e.hi - e.lo + p.part - 1) / p.part)
			} else {
				wide = append(wide, i)
			}
		}
		ext[i] = e
	}
	if len(wide) > 0 {
		return nil, wide, nil
	}
	// Operands share a window of their buffer if one fits. A buffer that is written must be bound
	// for writing only, once if the ranges touch.
	for i := range l.Args {
		if p.binding[i] < 0 {
			continue
		}
		buf, write := l.Args[i].Buf, k.Operands[i].Kind == codegen.Output
		for j := range l.Args {
			write = write || l.Args[j].Buf == buf && k.Operands[j].Kind == codegen.Output
		}
		if p.parts[i] > 1 {
			if write {
				return nil, nil, s.errorf("operand %d is indexed in a buffer of %d bytes that the launch writes too, and that is larger than a binding", i, buf.Bytes())
			}
			p.binding[i] = len(p.windows)
			for lo := ext[i].lo; lo < ext[i].hi; lo += p.part {
				p.windows = append(p.windows, window{buf, lo, min(p.part, ext[i].hi-lo), false, ext[i].elem})
			}
			continue
		}
		w := -1
		for j := range p.windows {
			x := &p.windows[j]
			if x.buf != buf || severalOf(p, j) {
				continue
			}
			touch := ext[i].lo < x.off+x.size && x.off < ext[i].hi
			if x.elem != ext[i].elem { // each binding has elements of one size
				if write && touch {
					return nil, nil, s.errorf("operand %d has elements of %d bytes in a buffer that is written, where another has elements of %d", i, ext[i].elem, x.elem)
				}
				continue
			}
			lo, hi := min(x.off, ext[i].lo), max(x.off+x.size, ext[i].hi)
			if hi-lo <= s.binding {
				x.off, x.size = lo, hi-lo
				w = j
				break
			}
			if write && touch {
				return nil, overlapping(k, l, buf), nil
			}
		}
		if w < 0 {
			p.windows = append(p.windows, window{buf, ext[i].lo, ext[i].hi - ext[i].lo, write, ext[i].elem})
			w = len(p.windows) - 1
		}
		p.binding[i] = w
	}
	bindings := len(p.windows)
	if shader.MayFault(k) {
		bindings++
	}
	if bindings > s.bindings {
		return nil, nil, s.errorf("a shader needs %d bindings, the adapter's limit is %d", bindings, s.bindings)
	}
	for i := range p.launch.Args {
		if w := p.binding[i]; w >= 0 {
			base := p.windows[w].off / p.windows[w].elem
			if n := len(p.launch.Args[i].Stages); n > 0 {
				p.launch.Args[i].Stages = slices.Clone(p.launch.Args[i].Stages)
				p.launch.Args[i].Stages[n-1].Offset -= base
			} else {
				p.launch.Args[i].Offset -= base
			}
		}
	}
	return p, nil, nil
}

// severalOf reports whether a window is one of several of an operand.
func severalOf(p *piece, w int) bool {
	for i, n := range p.parts {
		if n > 1 && p.binding[i] <= w && w < p.binding[i]+n {
			return true
		}
	}
	return false
}

// guarded reports whether an operand is only read under guards, or with an empty index range; its
// positions may then be outside its buffer.
func guarded(k *codegen.Kernel, a *runtime.Access, operand int) bool {
	found := false
	for _, in := range k.Body {
		if o, ok := operandOf(in); ok && o == operand {
			switch {
			case in.Op == ir.Load && in.Args[0] != ir.None:
			case in.Op == ir.LoadAt && (in.Args[1] != ir.None || a.IndexSize == 0):
			default:
				return false
			}
			found = true
		}
	}
	return found
}

// overlapping lists the operands of a buffer that is written.
func overlapping(k *codegen.Kernel, l *runtime.Launch, buf runtime.Buffer) []int {
	var list []int
	for i := range l.Args {
		if k.Operands[i].Kind != codegen.Index && l.Args[i].Buf == buf {
			list = append(list, i)
		}
	}
	return list
}

func points(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		if d > 0 && n > 1<<62/d {
			return 1 << 62
		}
		n *= d
	}
	return n
}

// reach bounds the elements that an access touches. Bounds through stages are not tight, but they
// shrink to one element as the domain does.
func reach(a *runtime.Access, dims []int64) (lo, hi int64) {
	lo, hi = span(a.Offset, dims, a.Stride[:])
	for i := range a.Stages {
		lo, hi = stageReach(&a.Stages[i], lo, hi)
	}
	if far := a.IndexStride * (a.IndexSize - 1); far < 0 && a.IndexSize > 0 {
		lo += far
	} else if a.IndexSize > 0 {
		hi += far
	}
	return lo, hi
}

func span(off int64, dims, stride []int64) (lo, hi int64) {
	lo, hi = off, off
	for d, n := range dims {
		if n == 0 {
			continue
		}
		if step := stride[d] * (n - 1); step < 0 {
			lo += step
		} else {
			hi += step
		}
	}
	return lo, hi
}

// stageReach maps the positions [lo,hi]. From the outside in, both ends agree in some leading
// coordinates; in the next one they span a range; the inner ones can have any value.
func stageReach(s *runtime.Stage, lo, hi int64) (int64, int64) {
	n := len(s.Dims)
	below := int64(1) // positions per step of the current coordinate
	for _, d := range s.Dims {
		below *= d
	}
	off := s.Offset
	for d := range n {
		below /= s.Dims[d]
		c0, c1 := lo/below, hi/below
		if c0 == c1 {
			off += c0 * s.Stride[d]
			lo, hi = lo%below, hi%below
			continue
		}
		rest0, rest1 := span(off, s.Dims[d+1:], s.Stride[d+1:])
		e0, e1 := c0*s.Stride[d], c1*s.Stride[d]
		return rest0 + min(e0, e1), rest1 + max(e0, e1)
	}
	return off, off
}
