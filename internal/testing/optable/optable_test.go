package optable

import (
	"testing"

	"github.com/millrace-go/millrace/ir"
)

// TestEveryOpHasForms: every op of ir that one method records has a row with its form, so that the
// tests made from the table call it. Tests call the ops of byHand by code of their own.
func TestEveryOpHasForms(t *testing.T) {
	byHand := map[ir.Op]bool{ir.Cast: true, ir.Reinterpret: true, ir.Where: true, ir.Clamp: true, ir.Philox: true, ir.Dot: true}
	forms := Forms()
	for op := ir.Op(1); op < ir.NumOps; op++ {
		f, has := forms[op], false
		switch op.Class() {
		case ir.ClassElementwise:
			has = f.Unary != nil && op.Info().Arity == 1 || f.Binary.Tensors != nil && op.Info().Arity == 2
		case ir.ClassReduce:
			has = f.Position != nil || len(f.Reductions) > 0 && f.Reductions[0].Keep != nil
		case ir.ClassScan:
			has = len(f.Alongs) > 0
		default:
			continue
		}
		if has == byHand[op] {
			t.Errorf("%v: has a form: %v, is called by hand: %v", op, has, byHand[op])
		}
	}
}

// TestColumnsFit: columns that need another column have it.
func TestColumnsFit(t *testing.T) {
	for _, o := range All() {
		switch {
		case o.Math != nil && o.Unary == nil:
			t.Errorf("%s: Math without Unary", o.Name)
		case o.Math != nil && (o.Math.Ulps > 0) == (o.Math.Rel > 0):
			t.Errorf("%s: Math needs Ulps, or Abs and Rel", o.Name)
		case o.Math != nil && o.Math.Special != nil && len(o.Math.Special) != len(SpecialAt):
			t.Errorf("%s: %d special values, want %d", o.Name, len(o.Math.Special), len(SpecialAt))
		case o.Domain != nil && o.Unary == nil && o.Binary.Tensors == nil:
			t.Errorf("%s: Domain without Unary or Binary", o.Name)
		case o.Domain != nil && o.Unary != nil && len(o.Domain) != 1, o.Domain != nil && o.Unary == nil && len(o.Domain) != 2:
			t.Errorf("%s: %d operands in Domain", o.Name, len(o.Domain))
		case o.Example == nil && (o.OnMask || o.Quiet || o.Documented != ""):
			t.Errorf("%s: says how an example is shown that it has not", o.Name)
		}
	}
}
