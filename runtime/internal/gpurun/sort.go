package gpurun

import (
	"math/bits"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// sorts reports whether a kernel has a sort, which no single dispatch runs.
func sorts(k *codegen.Kernel) bool {
	return slices.ContainsFunc(k.Body, func(in ir.Instr) bool { return in.Op.Class() == ir.ClassSort })
}

// sort runs a sort of a phase. The values go to scratch memory, as many rows as fit in a binding
// are sorted at a time, and the result goes to the sort's temporary.
func (s *splitter) sort(k *codegen.Kernel, r codegen.Reduce, l *runtime.Launch) error {
	dt := k.Body[r.Value].DT
	raw, err := s.temp(l, dt, false)
	if err != nil {
		return err
	}
	with := *k
	with.Operands = append(slices.Clone(k.Operands), codegen.Operand{Kind: codegen.Output, DT: dt})
	c := *l
	c.Args = append(slices.Clone(l.Args), raw)
	err = s.part(&with, []codegen.Store{{Operand: len(k.Operands), Value: r.Value}}, nil, &c, make([]bool, len(c.Args)))
	if err != nil {
		return err
	}
	rows, n := points(l.Dims[:l.Kept]), reducedSize(l)
	if rows == 0 || n == 0 {
		return nil
	}
	padded := int64(1) << bits.Len64(uint64(n-1))
	// The windows of elements and results start at multiples of the alignment.
	most := min((s.binding-s.align)/wordSize, s.threads) &^ (shader.SortBlock - 1)
	if padded > most {
		return s.errorf("a row of %d elements cannot be sorted: at most %d fit a binding", n, most)
	}
	w := sortWork{s: s, prog: l.Prog, r: r, dt: dt, n: n, padded: padded, elements: raw.Buf, result: l.Args[r.Operand].Buf}
	atOnce := min(most/padded, rows)
	pairs := blocks(atOnce*padded) * shader.SortBlock
	for i := range w.pairs {
		if w.pairs[i], err = s.scratch(pairs * wordSize); err != nil {
			return err
		}
	}
	for first := int64(0); first < rows; first += atOnce {
		if err := w.rows(first, min(atOnce, rows-first)); err != nil {
			return err
		}
	}
	return nil
}

func blocks(pairs int64) int64 { return (pairs + shader.SortBlock - 1) / shader.SortBlock }

// sortWork is a sort of rows of n dense elements.
type sortWork struct {
	s                *splitter
	prog             runtime.Program
	r                codegen.Reduce
	dt               ir.DType
	n, padded        int64
	elements, result runtime.Buffer
	pairs            [2]runtime.Buffer // keys and positions
}

// rows sorts some rows: it makes pairs, sorts blocks, and merges runs by exchanges over half their
// length and less, until a block is enough.
func (w *sortWork) rows(first, count int64) error {
	elem := w.s.elem(w.dt)
	elements, off := w.window(w.elements, elem, first, count)
	size := elem
	if w.r.Op.Info().Position {
		size = wordSize
	}
	result, to := w.window(w.result, size, first, count)
	result.write = true
	pair := func(i int) window {
		return window{buf: w.pairs[i], size: w.pairs[i].Bytes() &^ 15, write: true, elem: wordSize}
	}
	pairs := [2]window{pair(0), pair(1)}
	positions := pairs[1]
	positions.write = false
	total := blocks(count*w.padded) * shader.SortBlock
	base := shader.SortWords{Row: uint32(w.n), Padded: uint32(w.padded), Elements: uint32(off), Result: uint32(to)}
	run := func(step shader.SortStep, threads int64, set func(*shader.SortWords), windows ...window) error {
		x := base
		if set != nil {
			set(&x)
		}
		sh := shader.SortShader{Step: step, DT: w.dt, Descending: w.r.Descending, Size: narrowSize(elem)}
		return w.s.sorter(sortDispatch{w.prog, sh, threads, x, windows})
	}
	if err := run(shader.SortKeys, count*w.padded, nil, elements, pairs[0], pairs[1]); err != nil {
		return err
	}
	local := func(from, to int64) error {
		return run(shader.SortLocal, total/shader.SortBlock, func(x *shader.SortWords) { x.From, x.To = uint32(from), uint32(to) }, pairs[0], pairs[1])
	}
	if err := local(2, min(w.padded, shader.SortBlock)); err != nil {
		return err
	}
	for size := int64(2 * shader.SortBlock); size <= w.padded; size *= 2 {
		for j := size / 2; j >= shader.SortBlock; j /= 2 {
			err := run(shader.SortWide, count*w.padded/2, func(x *shader.SortWords) { x.From, x.Distance = uint32(size), uint32(j) }, pairs[0], pairs[1])
			if err != nil {
				return err
			}
		}
		if err := local(size, size); err != nil {
			return err
		}
	}
	if w.r.Op.Info().Position {
		return run(shader.SortPlace, count*w.n, nil, positions, result)
	}
	return run(shader.SortTake, count*w.n, nil, elements, positions, result)
}

// window returns the window of some rows in a dense buffer of elements of elem bytes, and the element
// in it where they start.
func (w *sortWork) window(b runtime.Buffer, elem, first, count int64) (window, int64) {
	lo := first * w.n * elem
	off := lo / w.s.align * w.s.align
	hi := (lo + count*w.n*elem + 15) &^ 15
	return window{buf: b, off: off, size: hi - off, elem: elem}, (lo - off) / elem
}

// sortDispatch is one dispatch of a sort.
type sortDispatch struct {
	prog runtime.Program // the program with the sort
	shader.SortShader
	threads int64 // invocations, or workgroups of SortLocal
	words   shader.SortWords
	windows []window
}
