package ir

import "testing"

// The fields of rows about row ops and attributes must agree with the classes: other packages use
// the row, never the op.
func TestTableRowOps(t *testing.T) {
	for op := OpInvalid + 1; op < NumOps; op++ {
		info := op.Info()
		row := info.Class == ClassReduce || info.Class == ClassScan || info.Class == ClassSort || info.Class == ClassScatter
		if info.RowOp != row {
			t.Errorf("%v: RowOp is %v", op, info.RowOp)
		}
		if row && !info.Attrs.Has(AttrAxes) {
			t.Errorf("%v has no axes", op)
		}
		if info.Position != (row && info.Out == OutAttr) {
			t.Errorf("%v: its dtype is the call's choice just where it is a position", op)
		}
		if c := info.Combine; c != OpInvalid && (!row || c.Info().Arity != 2 || info.In&^c.Info().In != 0) {
			t.Errorf("%v cannot combine by %v", op, c)
		}
		if info.Class == ClassScan && info.Combine == OpInvalid {
			t.Errorf("%v combines by nothing", op)
		}
		if info.Outside && info.Class != ClassPrim || info.Optional > 0 && info.Arity+info.Optional > len(Instr{}.Args) {
			t.Errorf("%v: outside %v, %d optional operands", op, info.Outside, info.Optional)
		}
	}
}

// Exactly the ops with Commutes commute, on values for which others do not.
func TestTableCommutes(t *testing.T) {
	for op := OpInvalid + 1; op < NumOps; op++ {
		info := op.Info()
		if info.Commutes && info.Arity < 2 || info.Class == ClassMark {
			if info.Commutes {
				t.Errorf("%v commutes with %d operands", op, info.Arity)
			}
			continue
		}
		if info.Class != ClassElementwise || info.Arity != 2 {
			continue
		}
		commutes := true
		for _, s := range signatures(op) {
			d := s.args[0]
			samples := []uint64{0, OneBits(d)}
			if d != Bool {
				samples = append(samples, 3, widthMask(d)>>1, 1<<(d.Bits()-1))
			}
			for _, x := range samples {
				for _, y := range samples {
					a := EvalOp(op, s.dt, s.args, []uint64{x, y})
					b := EvalOp(op, s.dt, s.args, []uint64{y, x})
					commutes = commutes && SameValue(s.dt, a, b)
				}
			}
		}
		if commutes != info.Commutes {
			t.Errorf("%v: Commutes is %v", op, info.Commutes)
		}
	}
}
