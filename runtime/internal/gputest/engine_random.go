package gputest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/internal/testing/apitest"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/ir"
)

// groups are the ops beyond the basic ones that the device runs.
const groups = progen.AllGroups

// programs is the number of random programs of a test; PROGRAMS overrides it.
func programs(t *testing.T, otherwise int) uint64 {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("PROGRAMS")); err == nil {
		return uint64(n)
	}
	if testing.Short() {
		otherwise /= 4
	}
	return uint64(otherwise)
}

// randomProgram runs a program, and reduces a failing one to the smallest that still fails.
func randomProgram(t *testing.T, seed uint64, prog *ir.Graph, run func(*ir.Graph) error) {
	t.Helper()
	if err := run(prog); err != nil {
		small := progen.Shrink(prog, func(p *ir.Graph) bool { return run(p) != nil })
		t.Errorf("seed %d: %v\nshrunk: %v\n%v", seed, err, run(small), small)
	}
}

// randomPrograms runs n programs with seeds from first on. A third of them have no groups of ops.
func randomPrograms(t *testing.T, n, first uint64, c progen.Config, run func(prog *ir.Graph, seed uint64) error) {
	t.Helper()
	for seed := range n {
		if c.Groups = groups; seed%3 == 0 {
			c.Groups = 0
		}
		randomProgram(t, seed, progen.New(first+seed, c), func(prog *ir.Graph) error { return run(prog, seed) })
	}
}

// testEnginePrograms runs random programs through the public API, twice over the same code. They
// compute on integers and masks, which give the same bits on every device.
func testEnginePrograms(t *testing.T) {
	d := openEngine(t)
	c := progen.Config{Ops: 12, MaxElems: 600, Groups: groups, DTypes: shader.DTypes &^ ir.Floats}
	for seed := range programs(t, 24) {
		if c.Groups = groups; seed%3 == 0 {
			c.Groups = 0
		}
		randomProgram(t, seed, progen.New(seed, c), func(prog *ir.Graph) error {
			return matches(d, prog, progen.Inputs(prog, seed), 2, func(int) {})
		})
	}
	noFallbacks(t, d)
}

// testEngineProgramsForced is TestEnginePrograms with every kernel run by another variant than the
// device would choose, alone and two together, however small the launch is; each pass uses a
// different variant.
func testEngineProgramsForced(t *testing.T) {
	defer testhook.SetChoice(-1)
	defer testhook.SetPieces(false)
	d := openEngine(t)
	n := programs(t, 48)
	for seed := range n {
		testhook.SetPieces(seed%4 > 1)
		c := progen.Config{Ops: 10, MaxElems: 1500, Groups: []progen.Group{0, groups}[seed%2], DTypes: shader.DTypes &^ ir.Floats}
		randomProgram(t, 3<<32+seed, progen.New(3<<32+seed, c), func(prog *ir.Graph) error {
			return matches(d, prog, progen.Inputs(prog, seed), 3, func(pass int) { testhook.SetChoice(int(seed)*3 + pass) })
		})
	}
	for seed := range n / 4 {
		testhook.SetChoice(int(seed) + 1)
		c := progen.Config{Ops: 10, MaxElems: 1500, DTypes: shader.DTypes, Groups: groups}
		randomProgram(t, seed, progen.New(4<<32+seed, c), func(prog *ir.Graph) error { return floatProgram(d, prog, seed) })
	}
	noFallbacks(t, d)
}

// matches runs a program in several passes, each after a call of before, and compares its results.
func matches(d *millrace.Device, prog *ir.Graph, inputs [][]byte, passes int, before func(pass int)) error {
	want, err := ir.EvalTensors(prog, inputs)
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	for pass := range passes {
		before(pass)
		tensors := apitest.Run(d, prog, inputs)
		for _, id := range prog.Outputs {
			got, err := apitest.Bytes(tensors[id])
			if err == nil {
				err = apitest.Differ(want[id].TensorType, got, want[id].Data)
			}
			if err != nil {
				return fmt.Errorf("pass %d, tensor %%%d: %w", pass, id, err)
			}
		}
	}
	return nil
}

// testEnginePadsBehindReshape: positions before the operand's first element are computed but never
// used (found by random programs).
func testEnginePadsBehindReshape(t *testing.T) {
	d := openEngine(t)
	data := make([]uint16, 6*2*2*2)
	for i := range data {
		data[i] = uint16(i + 1)
	}
	pads := make([]millrace.Padding, 5)
	pads[0], pads[1], pads[3] = millrace.Padding{After: 1, Between: 1}, millrace.Padding{Before: 1}, millrace.Padding{Before: 1}
	got, err := millrace.Values[uint16](millrace.FromSliceOn(d, data, 6, 2, 2, 2, 1).Pad(9, pads...))
	must(t, err)
	for i, v := range got {
		a, b, c, e := i/18, i/6%3, i/3%2, i%3
		want := uint16(9)
		if a%2 == 0 && b > 0 && e > 0 {
			want = data[a/2*8+(b-1)*4+c*2+e-1]
		}
		if v != want {
			t.Fatalf("element %d is %d, want %d", i, v, want)
		}
	}
	noFallbacks(t, d)
}

// testEngineFloatPrograms runs random programs on floats of all widths. Each op is compared with
// the oracle on the device's own operands, within the op's tolerance: errors of whole programs
// would grow by comparisons and cancellation.
func testEngineFloatPrograms(t *testing.T) {
	d := openEngine(t)
	randomPrograms(t, programs(t, 24), 1<<32, progen.Config{Ops: 12, MaxElems: 600, DTypes: shader.DTypes}, func(prog *ir.Graph, seed uint64) error {
		return floatProgram(d, prog, seed)
	})
	noFallbacks(t, d)
}

// floatProgram runs a program, reads some results midway and the others at the end, and then checks
// each op.
func floatProgram(d *millrace.Device, prog *ir.Graph, seed uint64) error {
	inputs := progen.Inputs(prog, seed)
	for i, in := range prog.Inputs {
		flush(ir.Dense{TensorType: in, Data: inputs[i]})
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	types := prog.Types()
	r := apitest.NewRunner(d, prog, inputs)
	data := append([][]byte(nil), inputs...)
	read := func(id int) (err error) {
		if data[id] == nil {
			b, e := apitest.Bytes(r.Tensors[id])
			data[id], err = append([]byte{}, b...), e
		}
		return err
	}
	for i := range prog.Nodes {
		if n := &prog.Nodes[i]; n.Op == ir.Release { // its value is checked below
			if err := read(int(n.Args[0].ID)); err != nil {
				return err
			}
		}
		r.Step(i)
		for len(data) < len(r.Tensors) {
			data = append(data, nil)
		}
		if id := len(data) - 1; rng.IntN(4) == 0 && id >= len(prog.Inputs) {
			if err := read(rng.IntN(len(data))); err != nil {
				return err
			}
		}
	}
	for id := range data {
		if err := read(id); err != nil {
			return fmt.Errorf("tensor %%%d: %w", id, err)
		}
	}
	id := len(prog.Inputs)
	for i := range prog.Nodes {
		n := &prog.Nodes[i]
		if n.Op.Class() == ir.ClassMark {
			continue
		}
		if err := checkNode(prog, n, types, data, id); err != nil {
			return fmt.Errorf("tensor %%%d, %v: %w", id, n.Op, err)
		}
		id++
	}
	return nil
}

// checkNode compares result id with the oracle's result for the device's operands.
func checkNode(prog *ir.Graph, n *ir.Node, types []ir.TensorType, data [][]byte, id int) error {
	one := &ir.Graph{Scalars: prog.Scalars, Nodes: []ir.Node{*n}}
	node := &one.Nodes[0]
	var in, size [][]byte
	for i, a := range n.Args[:n.NArgs] {
		if a.Scalar {
			if dt := prog.Scalars[a.ID].DT; denormal(dt, prog.Scalars[a.ID].Bits) {
				return nil
			}
			continue
		}
		x := ir.Dense{TensorType: types[a.ID], Data: data[a.ID]}
		abs := ir.NewDense(x.TensorType)
		for j := range x.Shape.Elems() {
			v := x.At(j)
			if denormal(x.DT, v) {
				return nil // the device may take it for 0
			}
			if x.DT.IsFloat() {
				v = ir.FloatBits(x.DT, math.Abs(ir.BitsFloat(x.DT, v)))
			}
			abs.Set(j, v)
		}
		node.Args[i] = ir.T(len(one.Inputs))
		one.Inputs = append(one.Inputs, x.TensorType)
		in, size = append(in, x.Data), append(size, abs.Data)
	}
	one.Outputs = []int{len(one.Inputs)}
	want, err := ir.EvalGraph(one, in)
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	got := ir.Dense{TensorType: types[id], Data: data[id]}
	w := ir.Dense{TensorType: types[id], Data: want[0]}
	tol := n.Op.Info().Tol
	var scale ir.Dense // scale of a fold's summands
	if n.Op.Info().RowOp && tol != (ir.Tolerance{}) && got.DT.IsFloat() {
		s, err := ir.EvalGraph(one, size)
		if err != nil {
			return fmt.Errorf("oracle: %w", err)
		}
		scale = ir.Dense{TensorType: types[id], Data: s[0]}
	}
	for j := range got.Shape.Elems() {
		g, v := got.At(j), w.At(j)
		if ir.SameValue(got.DT, g, v) {
			continue
		}
		if got.DT.IsFloat() {
			x, y, t := ir.BitsFloat(got.DT, g), ir.BitsFloat(got.DT, v), tol.In(got.DT)
			most := t.Abs + t.Rel*math.Abs(y)
			if scale.Data != nil {
				sum := ir.BitsFloat(got.DT, scale.At(j))
				if math.IsInf(sum, 0) || math.IsNaN(sum) {
					continue // another order overflows elsewhere
				}
				most += 1e-5 * sum
			}
			if x == y || math.Abs(x-y) <= most || denormal(got.DT, v) && x == 0 {
				continue
			}
		}
		return fmt.Errorf("element %d of %v: got %s, want %s (%#x, %#x)%s", j, got.TensorType,
			ir.FormatBits(got.DT, g), ir.FormatBits(got.DT, v), g, v, operands(one, in, j))
	}
	return nil
}

// operands prints the elements of operands of the result's shape.
func operands(p *ir.Graph, in [][]byte, at int) string {
	s := ""
	for i, t := range p.Inputs {
		if d := (ir.Dense{TensorType: t, Data: in[i]}); t.Shape.Elems() > at {
			s += fmt.Sprintf("; operand %d of %v has %s there", i, t, ir.FormatBits(t.DT, d.At(at)))
		}
	}
	return s
}

// denormal reports whether a GPU may take the number for 0. Denormals of float16 are normal numbers
// of float32.
func denormal(dt ir.DType, bits uint64) bool {
	switch dt {
	case ir.Float32:
		return bits&0x7f800000 == 0 && bits&0x7fffff != 0
	case ir.BFloat16:
		return bits&0x7f80 == 0 && bits&0x7f != 0
	}
	return false
}

func flush(d ir.Dense) {
	for i := range d.Shape.Elems() {
		if denormal(d.DT, d.At(i)) {
			d.Set(i, 0)
		}
	}
}
