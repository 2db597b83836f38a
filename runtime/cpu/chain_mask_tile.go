package cpu

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// hides caches the mask that hides an operand of a program: a chain needs it at every run.
type hides struct {
	mu      sync.Mutex
	operand int
	scalars []uint64
	found   *hiding
	asked   bool
}

func (m *hides) of(p *program, operand int, scalars []uint64) *hiding {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked && m.operand == operand && slices.Equal(m.scalars, scalars) {
		return m.found
	}
	was := m.found
	m.operand, m.scalars, m.asked = operand, slices.Clone(scalars), true
	m.found = hidingOf(p.kernel, operand, scalars)
	if h := m.found; h != nil && h.kernel != nil {
		text := h.kernel.String()
		if h.prog = new(maskProgram); was != nil && was.prog != nil && was.prog.text == text {
			h.prog = was.prog // usually only scalars changed
		}
		h.prog.text = text
	}
	return m.found
}

// maskProgram computes a mask. A run in progress may still use one that hides has replaced.
type maskProgram struct {
	text string
	mu   sync.Mutex
	prog *program
}

// of returns the program. The first call makes it.
func (m *maskProgram) of(d *device, k *codegen.Kernel) (*program, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.prog == nil {
		p, err := newProgram(d, k, m.text)
		if err != nil {
			return nil, err
		}
		m.prog = p
	}
	return m.prog, nil
}

// maskWork is the number of a contraction's multiplications that cost as much as one primitive of
// a mask. The kernel after the contraction computes the mask anyway; computing it before the
// contraction too must not cost more than the contraction.
const maskWork = 8

// columnOf returns the only dim larger than 1 after the rows of a tile's launch, or noDim if there
// is not exactly one.
func columnOf(l *runtime.Launch, lead int) int {
	col := noDim
	for d := lead; d < l.Rank; d++ {
		if l.Dims[d] > 1 {
			if col != noDim {
				return noDim
			}
			col = d
		}
	}
	return col
}

// inPlace reports that the mask is itself an operand of launch l, dense along its rows.
func (h *hiding) inPlace(l *runtime.Launch, col int) bool {
	return h.mask >= 0 && len(l.Args[h.mask].Stages) == 0 && l.Args[h.mask].Stride[col] == 1
}

// maskBytes returns the bytes of a row of the mask that hides the results of launch i of a chain
// from the next launch, if the mask has to be computed, else 0. It also makes the mask's program.
func (d *device) maskBytes(ls []runtime.Launch, i int, h *hiding) (int64, error) {
	l := &ls[i+1]
	col := columnOf(l, ls[0].Chain.Lead)
	if h == nil || col == noDim || h.inPlace(l, col) {
		return 0, nil
	}
	if slices.ContainsFunc(h.kernel.Body, func(in ir.Instr) bool { return in.Op == ir.LoadAt }) {
		return 0, nil // costly, and may fail
	}
	p, err := h.prog.of(d, h.kernel)
	if err != nil {
		return 0, err
	}
	depth := int64(1)
	for _, n := range ls[i].Dims[ls[i].Kept:ls[i].Rank] {
		depth *= n
	}
	if maskWork*int64(p.sched.tier0[0].Work()) > depth {
		return 0, nil
	}
	return l.Dims[col], nil
}

// maskTile is the memory into which a mask is computed tile by tile, one byte per point. buf is
// nil if no mask is computed.
type maskTile struct {
	buf         *memory.Buffer
	launch      runtime.Launch
	from, spare []int64 // sizes and operand offsets in the previous tile
}

// compute adds a launch that computes the mask over a tile before the contraction, and returns the
// mask's memory. The mask hides results from launch l. It returns nil if t has no memory, and adds
// no launch if the mask is the same as in the previous tile.
func (s *solo) compute(d *device, t *maskTile, h *hiding, l *runtime.Launch, row, col int) (unsafe.Pointer, error) {
	if t.buf == nil {
		return nil, nil
	}
	args := t.launch.Args[:0]
	from := append(t.spare[:0], l.Dims[row], l.Dims[col])
	for _, slot := range h.reads {
		a := l.Args[slot]
		a.Stride = [runtime.MaxRank]int64{a.Stride[row], a.Stride[col]}
		args, from = append(args, a), append(from, a.Offset)
	}
	args = append(args, runtime.Access{Buf: t.buf, Stride: [runtime.MaxRank]int64{l.Dims[col], 1}})
	t.launch = runtime.Launch{Prog: h.prog.prog, Rank: 2, Kept: 2, Dims: [runtime.MaxRank]int64{l.Dims[row], l.Dims[col]}, Args: args, Scalars: l.Scalars}
	same := slices.Equal(from, t.from)
	t.from, t.spare = from, t.from
	if same {
		return t.buf.P, nil
	}
	r, err := d.order(&t.launch, 1)
	if err != nil {
		return nil, err
	}
	d.settled(&r) // try to use machine code: the interpreter takes longer than the contraction
	s.ready = append(s.ready, r)
	return t.buf.P, nil
}
