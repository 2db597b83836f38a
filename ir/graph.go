package ir

import "fmt"

// TensorType is a dtype and a shape.
type TensorType struct {
	DT    DType
	Shape Shape
}

// String prints float32(2,3).
func (t TensorType) String() string { return t.DT.String() + t.Shape.String() }

// ScalarValue is a scalar operand: Bits in DT, zero-extended.
type ScalarValue struct {
	DT   DType
	Bits uint64
}

// Graph is a list of tensor ops with its inputs and outputs. Tests, dumps and the oracle use it.
// Tensor ids count the inputs first, then the results of Nodes in order; marks (Release, Keep) have
// no result. A node's scalar operands are slots of Scalars.
type Graph struct {
	Inputs  []TensorType
	Scalars []ScalarValue
	Nodes   []Node
	Outputs []int // tensor ids, none of them released
}

// HasResult reports that the node makes a tensor.
func (n *Node) HasResult() bool { return n.Op.Class() != ClassMark }

// Types lists the types of all tensors by id.
func (p *Graph) Types() []TensorType {
	types := append([]TensorType(nil), p.Inputs...)
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.HasResult() {
			types = append(types, TensorType{n.DT, n.Shape})
		}
	}
	return types
}

// Verify reports the first reason why p is not a valid graph: an operand that is not made yet or is
// released, a result that differs from Infer's, a scalar of another dtype than the op computes in.
func (p *Graph) Verify() error {
	for i, t := range p.Inputs {
		if !t.DT.Tensor() {
			return fmt.Errorf("input %d: %w: %v", i, ErrDType, t.DT)
		}
		if err := t.Shape.Check(); err != nil {
			return fmt.Errorf("input %d: %w: %w", i, ErrShape, err)
		}
	}
	v := verifier{p: p, types: append([]TensorType(nil), p.Inputs...)}
	v.released = make([]bool, len(v.types), len(v.types)+len(p.Nodes))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if err := v.node(n); err != nil {
			return fmt.Errorf("node %d: %s: %w", i, n.Op, err)
		}
		if n.HasResult() {
			v.types = append(v.types, TensorType{n.DT, n.Shape})
			v.released = append(v.released, false)
		}
	}
	for _, id := range p.Outputs {
		if _, err := v.tensor(T(id)); err != nil {
			return fmt.Errorf("output: %w", err)
		}
	}
	return nil
}

type verifier struct {
	p        *Graph
	types    []TensorType // of the tensors made so far
	released []bool
}

func (v *verifier) tensor(a Arg) (TensorType, error) {
	switch {
	case a.ID < 0 || int(a.ID) >= len(v.types):
		return TensorType{}, fmt.Errorf("tensor %%%d is not made yet", a.ID)
	case v.released[a.ID]:
		return TensorType{}, fmt.Errorf("tensor %%%d is released", a.ID)
	}
	return v.types[a.ID], nil
}

func (v *verifier) node(n *Node) error {
	info := n.Op.Info()
	if n.Op == OpInvalid || info.Class == ClassNone || info.Class == ClassPrim {
		return fmt.Errorf("not an op on tensors")
	}
	if int(n.NArgs) != info.Arity {
		return fmt.Errorf("%d operands, want %d", n.NArgs, info.Arity)
	}
	var ops [3]Operand
	tensor := Invalid
	for i, a := range n.Args[:n.NArgs] {
		if a.Scalar {
			continue
		}
		t, err := v.tensor(a)
		if err != nil {
			return err
		}
		if info.Class == ClassCreate {
			return fmt.Errorf("takes scalars only")
		}
		if tensor == Invalid {
			tensor = t.DT
		}
		ops[i] = Operand{DT: t.DT, Shape: t.Shape}
	}
	for i, a := range n.Args[:n.NArgs] {
		if !a.Scalar {
			continue
		}
		if a.ID < 0 || int(a.ID) >= len(v.p.Scalars) {
			return fmt.Errorf("no scalar slot %d", a.ID)
		}
		s := v.p.Scalars[a.ID]
		if want := ScalarDType(n.Op, i, tensor, n.DT); s.DT != want {
			return fmt.Errorf("%w: scalar operand %d is %v, want %v", ErrDType, i, s.DT, want)
		}
		if err := CheckBits(s.DT, s.Bits); err != nil {
			return err
		}
		ops[i] = Operand{DT: s.DT, Scalar: true}
	}
	if info.Class == ClassMark {
		return v.entry(n)
	}
	dt, shape, err := Infer(n.Op, n.Attr, n.DT, n.Shape, ops[:n.NArgs]...)
	if err != nil {
		return err
	}
	if dt != n.DT || !shape.Equal(n.Shape) {
		return fmt.Errorf("result is %v, not %v", TensorType{dt, shape}, TensorType{n.DT, n.Shape})
	}
	return nil
}

func (v *verifier) entry(n *Node) error {
	if n.Args[0].Scalar {
		return fmt.Errorf("needs a tensor operand")
	}
	if n.Op == Release {
		v.released[n.Args[0].ID] = true
	}
	return nil
}
