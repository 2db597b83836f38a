package fusion

import "github.com/millrace-go/millrace/codegen"

// Uses says from which step to which each tensor's memory is needed. An alias keeps the memory that
// it is a view of.
type Uses struct {
	// Write is the last step that writes each tensor, Read the last step that reads it; -1 if there
	// is none. Tensors beyond the slices are in no step. If several steps write pieces of a tensor,
	// their operands count as read until the last piece is written: if one of the steps fails, the
	// whole tensor is computed from these operands.
	Write, Read []int
	// Pieces lists, for each tensor that several steps write in pieces, these steps.
	Pieces map[int][]int
	// Last lists, for each step, the tensors that no later step reads or writes.
	Last [][]int32
}

// Uses returns the plan's facts about memory. They are computed once, when the plan is made, and
// shared: callers must not change them.
func (p *Plan) Uses() *Uses {
	if p.uses == nil {
		return newUses(p)
	}
	return p.uses
}

func newUses(p *Plan) *Uses {
	n := 0
	for i := range p.Steps {
		for _, o := range p.Steps[i].Operands {
			n = max(n, o.Tensor+1)
		}
	}
	u := &Uses{Write: make([]int, n), Read: make([]int, n)}
	for t := range n {
		u.Write[t], u.Read[t] = -1, -1
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		for k, o := range s.Operands {
			switch s.Kernel.Operands[k].Kind {
			case codegen.Input:
				u.Read[o.Tensor] = i
			case codegen.Output:
				if w := u.Write[o.Tensor]; w >= 0 && w != i {
					u.piece(o.Tensor, w)
					u.piece(o.Tensor, i)
				}
				u.Write[o.Tensor] = i
			}
		}
	}
	for t, steps := range u.Pieces {
		for _, k := range steps {
			from, _ := p.ChainOf(k)
			for ; from <= k; from++ {
				u.hold(&p.Steps[from], u.Write[t])
			}
		}
	}
	u.Last = make([][]int32, len(p.Steps))
	for t := range n {
		if k := max(u.Write[t], u.Read[t]); k >= 0 {
			u.Last[k] = append(u.Last[k], int32(t))
		}
	}
	return u
}

// piece notes that a step writes a piece of a tensor.
func (u *Uses) piece(t, step int) {
	if u.Pieces == nil {
		u.Pieces = map[int][]int{}
	}
	if list := u.Pieces[t]; len(list) == 0 || list[len(list)-1] != step {
		u.Pieces[t] = append(list, step)
	}
}

// hold notes that the operands of step s are needed until step until.
func (u *Uses) hold(s *Step, until int) {
	for k, o := range s.Operands {
		if s.Kernel.Operands[k].Kind == codegen.Input {
			u.Read[o.Tensor] = max(u.Read[o.Tensor], until)
		}
	}
}

// inPlace finds the pairs of input and output that access the same element at every point. An
// output whose map broadcasts is excluded: the input's element is read again at later points, after
// the store. In a kernel of rows, a store is excluded if the row is read after it. A kernel that
// may find an index out of range overwrites nothing: its operands are needed again then.
func (x *explorer) inPlace(k *codegen.Kernel, operands []bodyOperand) []InPlace {
	var ps []InPlace
	if k.MayFault() {
		return nil
	}
	for i := range operands {
		o := &operands[i]
		if o.kind != codegen.Output || !k.StoresLast(i) || o.at.pieced() || !o.at.bijective() && !storesRowsOnly(k, i) {
			continue
		}
		for j := range operands {
			in := &operands[j]
			if in.kind == codegen.Input && in.at == o.at && k.Operands[i].Row == k.Operands[j].Row && readOnce(operands, in.tensor) &&
				x.seg.Tensors[in.tensor].DT == x.seg.Tensors[o.tensor].DT {
				ps = append(ps, InPlace{Out: i, In: j})
			}
		}
	}
	return ps
}

// storesRowsOnly reports an output of row values in a kernel that stores only row values. When the
// output is written, the row has been read for the last time.
func storesRowsOnly(k *codegen.Kernel, out int) bool {
	if len(k.Reduces) > 0 {
		return false
	}
	for _, s := range k.Stores {
		if !k.Operands[s.Operand].Row {
			return false
		}
	}
	return k.Operands[out].Row
}

// readOnce reports that exactly one operand reads t.
func readOnce(operands []bodyOperand, t int32) bool {
	n := 0
	for i := range operands {
		if operands[i].kind == codegen.Input && operands[i].tensor == t {
			n++
		}
	}
	return n == 1
}
