package ir

import "testing"

// Every op needs a whole row: printers, the oracle and the docs read them.
func TestTableComplete(t *testing.T) {
	names := map[string]Op{}
	for op := OpInvalid + 1; op < NumOps; op++ {
		info := op.Info()
		if info.Name == "" || info.Doc == "" || info.Class == ClassNone {
			t.Errorf("op %d (%s): no name, class or doc", op, info.Name)
		}
		if other, ok := names[info.Name]; ok {
			t.Errorf("%s names ops %d and %d", info.Name, op, other)
		}
		names[info.Name] = op
		if got, ok := ParseOp(info.Name); !ok || got != op {
			t.Errorf("ParseOp(%q) = %d, %v", info.Name, got, ok)
		}
		scalar := info.Class == ClassCreate || info.Class == ClassElementwise || info.Class == ClassPrim
		if scalar != (info.Prim || info.Expand != nil) {
			t.Errorf("%s: a scalar op is a primitive or has an expansion, others are neither", info.Name)
		}
		if info.Prim && info.Expand != nil {
			t.Errorf("%s is both a primitive and expanded", info.Name)
		}
		if info.Class != ClassPrim && info.In == 0 {
			t.Errorf("%s takes no dtype", info.Name)
		}
	}
}

// signatures lists all result and operand types with which a scalar op of the table can be recorded.
func signatures(op Op) []signature {
	info := op.Info()
	var out []signature
	for d := Bool; d < NumDTypes; d++ {
		if !info.In.Has(d) {
			continue
		}
		args := make([]DType, info.Arity)
		for i := range args {
			args[i] = d
		}
		switch {
		case op == Uniform || op == Normal:
			args[0] = Uint64
		case op == Where:
			args[0] = Bool
		case op == Cast:
			for to := Bool; to < NumDTypes; to++ {
				out = append(out, signature{to, args})
			}
			continue
		}
		dt := d
		if info.Out == OutBool {
			dt = Bool
		}
		out = append(out, signature{dt, args})
	}
	return out
}

type signature struct {
	dt   DType
	args []DType
}

// Every expansion must be well typed and end in primitives of the requested dtype: printers do not
// check this.
func TestExpansionsWellTyped(t *testing.T) {
	for op := OpInvalid + 1; op < NumOps; op++ {
		if c := op.Class(); c != ClassCreate && c != ClassElementwise {
			continue
		}
		for _, s := range signatures(op) {
			p := Expansion(op, s.dt, s.args)
			checkProg(t, p)
			if got := p.Code[p.Results[0]].DT; got != s.dt {
				t.Errorf("%s: result is %v", p.Name, got)
			}
			if again := Expansion(op, s.dt, s.args); again != p {
				t.Errorf("%s is not cached", p.Name)
			}
		}
	}
	for id := uint64(0); SubByID(id) != nil; id++ {
		p := SubByID(id)
		checkProg(t, p)
		if got, ok := SubByName(p.Name); !ok || got != id {
			t.Errorf("SubByName(%q) = %d, %v, want %d", p.Name, got, ok, id)
		}
	}
}

func checkProg(t *testing.T, p *Prog) {
	t.Helper()
	for i, in := range p.Code {
		bad := func(why string) { t.Errorf("%s: %d: %v.%v %s", p.Name, i, in.Op, in.DT, why) }
		info := in.Op.Info()
		var dts []DType
		for k, a := range in.Args {
			if a == None {
				continue
			}
			if a < 0 || int(a) >= i {
				bad("has an operand that is not earlier")
				return
			}
			dts = append(dts, p.Code[a].DT)
			if in.Op != Rare && k >= info.Arity {
				bad("has too many operands")
			}
		}
		if !IsPrim(in.Op, in.DT, leading(dts)) {
			bad("is not a primitive")
		}
		if in.Op != Rare && len(dts) != info.Arity {
			bad("has too few operands")
			continue
		}
		switch in.Op {
		case Const:
			if in.Imm&^widthMask(in.DT) != 0 {
				bad("has bits beyond its dtype")
			}
		case Where:
			if dts[0] != Bool || dts[1] != in.DT || dts[2] != in.DT {
				bad("has operands of other types")
			}
		case Bitcast:
			if dts[0].Bits() != in.DT.Bits() || dts[0] == Bool {
				bad("changes the width")
			}
		case Rare:
			checkRare(t, p, in, dts, bad)
		case Lookup:
			if tab := TableByID(in.Imm); tab == nil || tab.DT != in.DT || dts[0] != Int32 {
				bad("does not fit its table")
			}
		case Param, Convert:
		default:
			for _, d := range dts {
				if d != dts[0] {
					bad("has operands of different types")
				}
				if !info.In.Has(d) {
					bad("does not take " + d.String())
				}
			}
			if want := dts[0]; info.Out == OutSame && in.DT != want {
				bad("should have the type of its operands")
			}
			if info.Out == OutBool && in.DT != Bool {
				bad("should be a mask")
			}
		}
	}
}

func checkRare(t *testing.T, p *Prog, in Instr, dts []DType, bad func(string)) {
	t.Helper()
	sub := SubByID(in.Imm)
	if sub == nil {
		bad("names no sub")
		return
	}
	if dts[0] != Bool || dts[1] != in.DT || sub.Code[sub.Results[0]].DT != in.DT {
		bad("does not fit its sub's result")
	}
	if len(dts)-2 != len(sub.Params) {
		bad("does not fit its sub's parameters")
		return
	}
	for k, d := range sub.Params {
		if dts[2+k] != d {
			bad("does not fit its sub's parameters")
		}
	}
}

// Devices without 64-bit types run every expansion of float32, slow paths included.
func TestFloat32StaysNarrow(t *testing.T) {
	var narrow func(p *Prog)
	narrow = func(p *Prog) {
		for _, in := range p.Code {
			if in.DT.Size() > 4 {
				t.Errorf("%s uses %v", p.Name, in.DT)
				return
			}
			if in.Op == Rare {
				narrow(SubByID(in.Imm))
			}
		}
	}
	for op := OpInvalid + 1; op < NumOps; op++ {
		info := op.Info()
		if info.Class != ClassElementwise || !info.In.Has(Float32) || op == Cast {
			continue
		}
		for _, s := range signatures(op) {
			if s.args[len(s.args)-1] == Float32 {
				narrow(Expansion(op, s.dt, s.args))
			}
		}
	}
}
