package autodiff

import (
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// Every op that a user can record has a rule, or a reason for having none.
func TestEveryOp(t *testing.T) {
	for op := ir.Op(1); op < ir.NumOps; op++ {
		info := op.Info()
		if info.Name == "" || op.Class() == ir.ClassPrim {
			continue
		}
		r := rules[op]
		switch {
		case r == nil:
			t.Errorf("%s has neither a rule nor a reason", info.Name)
		case (r.back == nil) == (r.none == ""):
			t.Errorf("%s needs a rule or a reason, not both", info.Name)
		}
	}
}

// Of a scatter no more is kept than its kind asks for.
func TestScatterKeeps(t *testing.T) {
	at := millrace.FromSlice([]int32{0, 2})
	for how, want := range map[millrace.Combine]keeps{
		millrace.CombineAdd: operand1, millrace.CombineSet: operand1,
		millrace.CombineMul: operand1 | operand2, millrace.CombineMax: operand0 | operand1 | operand2 | result,
	} {
		x := Watch(millrace.FromSlice([]float64{1, 2, 3}))
		n := linkOf(x.Scatter(at, millrace.FromSlice([]float64{4, 5}), 0, how))
		var got keeps
		for i, k := range n.kept {
			if k != nil {
				got |= operand0 << i
			}
		}
		if got != want {
			t.Errorf("%v: keeps %b, want %b", how, got, want)
		}
	}
}
