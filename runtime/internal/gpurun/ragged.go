package gpurun

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
)

// raggedRow is the least number of points of a row for which vectors pay that do not begin or end
// with it: some of their lanes are idle.
const raggedRow = 16

// takeRagged gives a step of rows several points although their operands do not begin at vectors, if
// some operands begin at the same place within a vector of memory. These are loaded by vectors.
func takeRagged(v *shader.Variant, k *codegen.Kernel, p *piece, lanes int) {
	l := &p.launch
	n := l.Dims[l.Rank-1]
	if lanes < 2 || v.Lanes > 1 || v.Beside > 0 || l.Kept == 0 || l.Rank-l.Kept != 1 || n < raggedRow {
		return
	}
	if p.software && (shader.Passes(k) < 2 || scans(k)) {
		return
	}
	for i, o := range k.Operands {
		a := &v.Args[i]
		if a.Indexed || o.Kind == codegen.Output && !o.Row && !a.Skip && (a.Class == codegen.Splat || a.Guard>>(l.Rank-1)&1 != 0) {
			return
		}
	}
	best, most := -1, 0 // the operand at whose places most others are
	for i := range k.Operands {
		if list := p.alike(k, i, lanes); len(list) > most {
			best, most = i, len(list)
		}
	}
	if best < 0 {
		return
	}
	vectors := make([]bool, len(p.windows))
	for i := range vectors {
		vectors[i] = true
	}
	list := map[int]bool{}
	for _, i := range p.alike(k, best, lanes) {
		list[i] = true
	}
	for i := range k.Operands {
		if w := p.binding[i]; w >= 0 && !list[i] {
			vectors[w] = false
		}
	}
	for i := range k.Operands {
		if w := p.binding[i]; w >= 0 && vectors[w] {
			v.Args[i].Vec, v.Bindings[w].Vec, v.Ragged, v.Lanes = true, true, true, lanes
		}
	}
}

// alike lists the operands whose rows begin, for each row, at the same place within a vector as those
// of operand i.
func (p *piece) alike(k *codegen.Kernel, i, lanes int) (list []int) {
	l, m := &p.launch, int64(lanes)
	a := &l.Args[i]
	for j, o := range k.Operands {
		b := &l.Args[j]
		same := o.Kind != codegen.Index && !o.Row && len(b.Stages) == 0 && p.parts[j] == 1 && b.Stride[l.Rank-1] == 1 && (a.Offset-b.Offset)%m == 0 &&
			!guarded(k, b, j) // a guarded row may begin before its memory
		for d, n := range l.Dims[:l.Kept] {
			same = same && (n < 2 || (a.Stride[d]-b.Stride[d])%m == 0)
		}
		if same {
			list = append(list, j)
		}
	}
	return list
}
