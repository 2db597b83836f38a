package fusion

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// execute runs a plan on host memory with the reference interpreter and returns every written
// tensor, dense. views is the layout of the inputs (nil: dense). With reuse, outputs take over the
// memory of tensors that end with the step, wherever the plan offers it.
func execute(seg *segment.Segment, p *Plan, inputs [][]byte, views []View, reuse bool) (map[int][]byte, error) {
	if err := p.Verify(seg); err != nil {
		return nil, err
	}
	mem := make([][]byte, len(seg.Tensors))
	for i, in := range inputs {
		mem[i] = bytes.Clone(in)
	}
	l, err := p.Layout(seg, views)
	for indexed := (*IndexedViewError)(nil); errors.As(err, &indexed); l, err = p.Layout(seg, views) {
		views = slices.Clone(views)
		t := indexed.Tensor
		mem[t], views[t] = gather(seg, t, mem[t], &views[t]), View{}
	}
	if err != nil {
		return nil, err
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		for k, o := range s.Operands {
			if s.Kernel.Operands[k].Kind == codegen.Output && (mem[o.Tensor] == nil || !o.pieced(seg)) {
				mem[o.Tensor] = bytes.Repeat([]byte{0xa5}, int(l.Elems[o.Tensor])*seg.Tensors[o.Tensor].DT.Size())
			}
		}
		if reuse {
			takeOver(seg, p, i, mem)
		}
		la := &l.Launches[i]
		args := make([]codegen.HostArg, len(s.Operands))
		for k, o := range s.Operands {
			args[k].Access = la.Args[k]
			if s.Kernel.Operands[k].Kind != codegen.Index {
				args[k].Data = mem[o.Tensor]
			}
		}
		var scalars []uint64
		for _, sc := range s.Scalars {
			scalars = append(scalars, seg.Scalars[sc].Bits)
		}
		if err := codegen.Interpret(s.Kernel, la.Dims[:la.Rank], la.Kept, args, scalars); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
	}
	out := map[int][]byte{}
	for t := range seg.Tensors {
		if seg.Tensors[t].Life == segment.LifeWrite {
			out[t] = mem[t]
		}
	}
	for i, a := range p.Aliases {
		out[a.Tensor] = gather(seg, a.Tensor, mem[a.Of], &l.Views[i])
	}
	return out, nil
}

// takeOver gives outputs of step i the memory of inputs that the step is the last to read.
func takeOver(seg *segment.Segment, p *Plan, i int, mem [][]byte) {
	pinned := map[int]bool{}
	for _, a := range p.Aliases {
		pinned[a.Of] = true
	}
	s := &p.Steps[i]
	given := map[int]bool{}
	for _, ip := range s.InPlace {
		in, out := s.Operands[ip.In].Tensor, s.Operands[ip.Out].Tensor
		dies := seg.Tensors[in].Life == segment.LifeInputDying || seg.Tensors[in].Def >= 0 && seg.Tensors[in].Life != segment.LifeWrite
		if dies && !pinned[in] && p.Uses().Read[in] == i && !given[in] && !given[out] {
			mem[out] = mem[in]
			given[in], given[out] = true, true
		}
	}
}

// gather copies a view's elements into dense memory.
func gather(seg *segment.Segment, t int, data []byte, v *View) []byte {
	size := seg.Tensors[t].DT.Size()
	var out []byte
	eachElement(seg.Tensors[t].Shape, v, func(_, at int) {
		out = append(out, data[at*size:(at+1)*size]...)
	})
	return out
}

// eachElement calls f with the row-major number of every element and its place in the view.
func eachElement(shape ir.Shape, v *View, f func(i, at int)) {
	a := runtime.Access{Offset: v.Offset, Stages: v.Stages}
	for d := range shape {
		if v.Stride != nil {
			a.Stride[d] = v.Stride[d]
		} else {
			a.Stride[d] = int64(shape.RowMajor()[d])
		}
	}
	point := make([]int64, len(shape))
	for i := range shape.Elems() {
		for d, n := len(shape)-1, i; d >= 0; d-- {
			point[d] = int64(n % shape[d])
			n /= shape[d]
		}
		f(i, int(codegen.Position(&a, point)))
	}
}

// scatter stores inputs as views of larger buffers. A view has every third element; if reversed,
// its first dim is the innermost. Every second input goes through a stage. Half of these stages
// split even dims in two and store the halves interleaved.
func scatter(seg *segment.Segment, inputs [][]byte, reversed bool) ([][]byte, []View) {
	views := make([]View, len(seg.Tensors))
	var out [][]byte
	for t, data := range inputs {
		shape, size := seg.Tensors[t].Shape, seg.Tensors[t].DT.Size()
		stage := runtime.Stage{Offset: 2, Dims: make([]int64, len(shape)), Stride: make([]int64, len(shape))}
		step := int64(3)
		for d := range shape {
			if !reversed {
				d = len(shape) - 1 - d
			}
			stage.Dims[d], stage.Stride[d] = int64(shape[d]), step
			step *= int64(shape[d])
		}
		v := View{Offset: stage.Offset, Stride: stage.Stride}
		if t%2 == 1 {
			if t%4 == 3 {
				halved(&stage)
			}
			v = View{Stages: []runtime.Stage{stage}}
		}
		buf := bytes.Repeat([]byte{0xa5}, (int(step)+2)*size)
		eachElement(shape, &v, func(i, at int) { copy(buf[at*size:], data[i*size:(i+1)*size]) })
		views[t] = v
		out = append(out, buf)
	}
	return out, views
}

// halved splits each even dim of a stage in two; the inner dim has the longer stride.
func halved(s *runtime.Stage) {
	var dims, stride []int64
	for d, n := range s.Dims {
		if n%2 != 0 {
			dims, stride = append(dims, n), append(stride, s.Stride[d])
			continue
		}
		dims, stride = append(dims, 2, n/2), append(stride, s.Stride[d], 2*s.Stride[d])
	}
	s.Dims, s.Stride = dims, stride
}

// randomInputs fills inputs with small numbers and some special values.
func randomInputs(r *rand.Rand, p *ir.Graph) [][]byte {
	specials := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1e-40, 3.4e38}
	var out [][]byte
	for _, in := range p.Inputs {
		d := ir.NewDense(in)
		for i := range in.Shape.Elems() {
			v := float64(r.IntN(64)) - 20
			if in.DT.IsFloat() {
				v /= 8
				if r.IntN(40) == 0 {
					v = specials[r.IntN(len(specials))]
				}
			}
			d.Set(i, bitsOf(in.DT, v))
		}
		out = append(out, d.Data)
	}
	return out
}

func bitsOf(dt ir.DType, v float64) uint64 {
	switch dt {
	case ir.Bool:
		return uint64(int64(v)) & 1
	case ir.Uint8:
		return uint64(uint8(int64(v)))
	case ir.Int32:
		return uint64(uint32(int32(v)))
	case ir.Float32:
		return uint64(math.Float32bits(float32(v)))
	case ir.Float64:
		return math.Float64bits(v)
	}
	return uint64(int64(v))
}

// compare runs a program by its plan and compares the results with the oracle's.
func compare(t *testing.T, p *ir.Graph, caps *runtime.Caps, opt Options) {
	t.Helper()
	seg := segmentOf(p)
	plan, err := Explore(seg, caps, opt)
	if err != nil {
		t.Fatalf("%v\n%s", err, p)
	}
	// Half of the plans are read from their text, as another process does.
	if len(p.Nodes)%2 == 0 {
		again, err := ParsePlan(plan.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, plan)
		}
		if err := again.Verify(seg); err != nil {
			t.Fatalf("%v\n%s", err, plan)
		}
		if again, err = again.Replay(seg, caps, Options{Mode: plan.Mode}); err != nil {
			t.Fatalf("%+v: %v\n%s\n%s", opt, err, p, plan)
		}
		plan = again
	}
	checkPlan(t, p, seg, plan)
}

// checkPlan runs a plan for a program's segment and compares the results with the oracle's.
func checkPlan(t *testing.T, p *ir.Graph, seg *segment.Segment, plan *Plan) {
	t.Helper()
	for i := range plan.Steps {
		contraction(t, plan, plan.Steps[i].Kernel)
	}
	inputs := randomInputs(rand.New(rand.NewPCG(1, 1)), p)
	want, err := ir.EvalTensors(p, inputs)
	if errors.Is(err, ir.ErrIndex) {
		return
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, p)
	}
	for _, how := range []string{"plain", "reuse", "reversed", "spaced"} {
		in, views := inputs, []View(nil)
		if how == "reversed" || how == "spaced" {
			in, views = scatter(seg, inputs, how == "reversed")
		}
		got, err := execute(seg, plan, in, views, how == "reuse")
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, p, plan)
		}
		for id, data := range got {
			if i := differs(want[id], data); i >= 0 {
				t.Fatalf("%s: tensor %d differs at element %d\n%s\n%s", how, id, i, p, plan)
			}
		}
	}
}

// contraction checks that the code that runs contractions can split a kernel into its phases: at
// most two phases that compute operands and one phase after the contraction.
func contraction(t *testing.T, plan *Plan, k *codegen.Kernel) {
	t.Helper()
	if !slices.ContainsFunc(k.Body, func(in ir.Instr) bool { return in.Op == ir.Dot }) {
		return
	}
	k, err := codegen.Lower(k)
	if err != nil {
		t.Fatal(err)
	}
	s := codegen.Phases(k, codegen.PhaseOptions{})
	if !s.Contraction() || len(s.Phases) > 3 || len(s.Temps) != 1 || len(s.Phases) == 3 && s.Phases[2].Level != codegen.Row {
		t.Fatalf("no phases of a contraction:\n%s\n%s", s, plan)
	}
}

// differs is the first element with different bits, -1 if there is none. All NaNs are equal.
func differs(want ir.Dense, got []byte) int {
	if len(want.Data) != len(got) {
		return 0
	}
	g := ir.Dense{TensorType: want.TensorType, Data: got}
	for i := range want.Shape.Elems() {
		a, b := want.At(i), g.At(i)
		if a != b && !(isNaN(want.DT, a) && isNaN(want.DT, b)) {
			return i
		}
	}
	return -1
}

func isNaN(dt ir.DType, bits uint64) bool {
	switch dt {
	case ir.Float32:
		f := math.Float32frombits(uint32(bits))
		return f != f
	case ir.Float64:
		f := math.Float64frombits(bits)
		return f != f
	}
	return false
}
