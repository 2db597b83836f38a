package codegen

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/ir"
)

// phaseArgs makes operands for n rows of m points: point operands are dense, row operands have one
// element per row.
func phaseArgs(rng *rand.Rand, k *Kernel, n, m int) []HostArg {
	args := make([]HostArg, len(k.Operands))
	for i, o := range k.Operands {
		d := ir.NewDense(ir.TensorType{DT: o.DT, Shape: ir.Shape{n * m}})
		for j := range n * m {
			if o.Kind == Input {
				d.Set(j, randomBits(rng, o.DT))
			}
		}
		args[i] = HostArg{Data: d.Data, Access: access(0, int64(m), 1)}
		if o.Row {
			args[i].Access = access(0, 1, 0)
		}
	}
	return args
}

func cloneArgs(args []HostArg) []HostArg {
	out := append([]HostArg(nil), args...)
	for i := range out {
		out[i].Data = append([]byte(nil), out[i].Data...)
	}
	return out
}

// runPhases is the simplest possible executor: all rows at once, phase by phase.
func runPhases(t *testing.T, k *Kernel, s *Schedule, n, m int, args []HostArg, scalars []uint64) {
	t.Helper()
	for _, tmp := range s.Temps {
		a := HostArg{Data: make([]byte, n*m*tmp.DT.Size()), Access: access(0, int64(m), 1)}
		if tmp.Row {
			a.Access = access(0, 1, 0)
		}
		args = append(args, a)
	}
	for i, ph := range s.Phases {
		if err := ph.Verify(); err != nil {
			t.Fatalf("phase %d: %v\n%s", i, err, ph)
		}
		run := &Kernel{Operands: append([]Operand(nil), ph.Operands...), Scalars: ph.Scalars, Body: ph.Body, Stores: append([]Store(nil), ph.Stores...)}
		bufs := append([]HostArg(nil), args...)
		for _, r := range ph.Reduces { // values go to a dense buffer first
			run.Operands[r.Operand].Kind = Input
			dt := run.Body[r.Value].DT
			run.Stores = append(run.Stores, Store{len(run.Operands), r.Value})
			run.Operands = append(run.Operands, Operand{Kind: Output, DT: dt})
			bufs = append(bufs, HostArg{Data: make([]byte, n*m*dt.Size()), Access: access(0, int64(m), 1)})
		}
		dims := []int64{int64(n), int64(m)}
		if ph.Level == Row {
			dims[1] = 1
		}
		if err := Interpret(run, dims, 2, bufs, scalars); err != nil {
			t.Fatalf("phase %d: %v\n%s", i, err, ph)
		}
		for j, r := range ph.Reduces {
			buf, dt := bufs[len(args)+j].Data, run.Body[r.Value].DT
			out := ir.Dense{TensorType: ir.TensorType{DT: ph.Operands[r.Operand].DT}, Data: args[r.Operand].Data}
			for row := range n {
				var vals []uint64
				for p := range m {
					vals = append(vals, element(buf, dt, row*m+p))
				}
				res := ir.EvalRow(r.Op, r.Descending, dt, vals)
				for p, v := range res {
					if len(res) == 1 {
						out.Set(row, v)
					} else {
						out.Set(row*m+p, v)
					}
				}
			}
		}
	}
}

func TestPhasesCompute(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for name, src := range map[string]string{"softmax": rowtext.Softmax, "norm": rowtext.Norm} {
		k := mustParse(t, src)
		low, err := Lower(k)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []int{2, 7, 65, 300} {
			args := phaseArgs(rng, k, 3, m)
			scalars := make([]uint64, len(k.Scalars))
			for i := range scalars {
				scalars[i] = randomBits(rng, k.Scalars[i])
			}
			want := cloneArgs(args)
			if err := Interpret(k, []int64{3, int64(m)}, 1, want, scalars); err != nil {
				t.Fatal(err)
			}
			for _, kk := range []*Kernel{k, low} {
				for _, opt := range []PhaseOptions{{}, {Recompute: true}, {Recompute: true, Rows: true}, {Rows: true}} {
					got := cloneArgs(args)
					runPhases(t, kk, Phases(kk, opt), 3, m, got, scalars)
					for i := range want {
						if !sameBits(k.Operands[i].DT, got[i].Data, want[i].Data) {
							t.Errorf("%s, %d points, %+v: operand %d differs\n%s", name, m, opt, i, Phases(kk, opt))
						}
					}
				}
			}
		}
	}
}

// sameBits compares elements; all NaNs are equal.
func sameBits(dt ir.DType, a, b []byte) bool {
	for i := range len(a) / dt.Size() {
		if !ir.SameValue(dt, element(a, dt, i), element(b, dt, i)) {
			return false
		}
	}
	return true
}

// doubled needs a sum of points before and after a reduction.
func doubled(dt ir.DType) string {
	return strings.ReplaceAll(`
in 0 : dt
out 1 : dt
%0 = load 0 : dt
%1 = add %0 %0 : dt
%2 = max %1 : dt
%3 = sub %1 %2 : dt
store 1 %3
`, "dt", dt.String())
}

// TestPhaseShape checks the number of phases, that values which are costly to recompute are kept,
// and that nothing is kept if a device wants to recompute.
func TestPhaseShape(t *testing.T) {
	for _, c := range []struct {
		src         string
		opt         PhaseOptions
		temps, wide int
		levels      string
	}{
		{rowtext.Softmax, PhaseOptions{}, 3, 1, "[point point row point]"},
		{rowtext.Softmax, PhaseOptions{Recompute: true}, 2, 0, "[point point row point]"},
		{rowtext.Norm, PhaseOptions{Rows: true}, 2, 0, "[point row point point]"},
		{rowtext.Norm, PhaseOptions{}, 4, 0, "[point row point row point]"},
		{reduceKernel("sum"), PhaseOptions{}, 1, 0, "[point row]"},
		{copyKernel, PhaseOptions{}, 0, 0, "[point]"},
		{doubled(ir.Float32), PhaseOptions{}, 1, 0, "[point point]"},
		{doubled(ir.Float16), PhaseOptions{}, 2, 1, "[point point]"}, // cheap in float32 only
	} {
		s := Phases(mustParse(t, c.src), c.opt)
		wide := 0
		for _, tmp := range s.Temps {
			if !tmp.Row {
				wide++
			}
		}
		var levels []Level
		for _, p := range s.Phases {
			levels = append(levels, p.Level)
		}
		if len(s.Temps) != c.temps || wide != c.wide || fmt.Sprint(levels) != c.levels {
			t.Errorf("%d temporaries, %d of them points, phases %v; want %d, %d, %s\n%s", len(s.Temps), wide, levels, c.temps, c.wide, c.levels, s)
		}
	}
}

func TestStoresLast(t *testing.T) {
	k := mustParse(t, rowtext.Softmax)
	if !k.StoresLast(1) || k.StoresLast(2) {
		t.Error("the row output of softmax is stored before the points are read again")
	}
	k = mustParse(t, rowtext.Norm)
	if !k.StoresLast(3) || k.StoresLast(4) {
		t.Error("the mean is stored before the row is read again")
	}
}

// TestMostTemporaries checks that values are recomputed if a phase would have too many operands and
// temporaries; then only results of row ops are kept.
func TestMostTemporaries(t *testing.T) {
	const text = `in 0 : float32
out 1 : float32
%0 = load 0 : float32
%1 = fdiv %0 %0 : float32
%2 = sum %1 : float32
%3 = fdiv %1 %2 : float32
store 1 %3
`
	k, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int]int{0: 2, 4: 2, 3: 1, 2: 1} {
		if n := len(Phases(k, PhaseOptions{Most: most}).Temps); n != want {
			t.Errorf("%d at most: %d temporaries, want %d", most, n, want)
		}
	}
}
