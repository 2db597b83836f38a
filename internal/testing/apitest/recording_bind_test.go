package apitest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/ir"
)

// TestRandomBoundRecordings: random programs as bound recordings give the oracle's bits, run after
// run, for all values of their arguments. Other holders of arguments and results keep their values.
// Small programs of elementwise ops are one call if there is machine code. In some programs host
// ops copy results; each of them runs once in each run.
func TestRandomBoundRecordings(t *testing.T) {
	specs := append([]string{"ref", "cpu:compile=native,threads=1", "ref:queue=3", "cpu:compile=native,queue=2", "cpu:compile=native,fusion=off"}, specs...)
	devices := make([]*millrace.Device, len(specs))
	for i, s := range specs {
		devices[i] = openSpec(t, s)
	}
	n := count(t, "PROGRAMS", programs)
	bound := 0
	for seed := range uint64(n) {
		c := progen.Config{MaxElems: []int{8, 40, 1000}[seed%3], Groups: []progen.Group{0, rowGroups}[seed/3%2]}
		if i := seed / 2 % 3; i < 2 { // programs that may be one call
			c.MaxElems, c.Groups = []int{4, 40}[i], 0
			c.Allow = func(op ir.Op, _, _ ir.DType) bool { return op.Class() != ir.ClassReduce }
			if c.DTypes = ir.SetOf(ir.Float32, ir.Float64); i == 0 {
				c.DTypes = ir.SetOf(ir.Float64)
			}
		}
		prog := progen.New(42<<32+seed, c)
		i := int(seed) % len(specs)
		err := boundRuns(devices[i], prog, seed)
		if err == nil {
			bound++
			continue
		}
		if errors.Is(err, millrace.ErrUnsupported) {
			continue
		}
		small := progen.Shrink(prog, func(p *ir.Graph) bool {
			d, err := millrace.Open(specs[i])
			if err != nil {
				return false
			}
			defer d.Close()
			err = boundRuns(d, p, seed)
			return err != nil && !errors.Is(err, millrace.ErrUnsupported)
		})
		t.Errorf("seed %d on %s: %v\nshrunk: %v", seed, specs[i], err, small)
	}
	if bound < n*9/10 {
		t.Errorf("%d of %d programs were bound", bound, n)
	}
	runs, calls, native := int64(0), int64(0), false
	for _, d := range devices {
		s := d.Stats()
		native = native || s.Runtime.NativeKernels > 0
		runs, calls = runs+s.BoundRuns, calls+s.BoundCalls
	}
	if runs < int64(8*n) {
		t.Errorf("%d runs of %d programs", runs, n)
	}
	if native && calls < runs/80 {
		t.Errorf("%d of %d runs were one call", calls, runs)
	}
}

// boundRuns binds a program and runs it some times.
func boundRuns(dev *millrace.Device, prog *ir.Graph, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 6))
	lane := hostapi.HostLane(dev)
	var made, begun, ran atomic.Int64 // host ops: of the last recording; of all runs
	rec := millrace.NewRecording(func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		r := NewRunner(sc, prog, nil)
		r.Tensors = slices.Clone(in)
		made.Store(0)
		copied := rand.New(rand.NewPCG(seed, 7))
		for i := range prog.Nodes {
			r.Step(i)
			last := &r.Tensors[len(r.Tensors)-1]
			if seed%4 != 3 || prog.Nodes[i].Op == ir.Release || copied.IntN(5) > 0 {
				continue
			}
			made.Add(1)
			from := *last
			*last = hostapi.HostOp(lane, "copy", from, from.DType(), from.Shape(), func() func(dst, src []byte, fault error) error {
				begun.Add(1)
				return func(dst, src []byte, fault error) error {
					ran.Add(1)
					copy(dst, src)
					return fault
				}
			}).(*millrace.Tensor)
			from.Release()
		}
		var out []*millrace.Tensor
		for _, id := range prog.Outputs {
			out = append(out, r.Tensors[id])
		}
		return append(out, out[0]), nil // one of them twice
	})
	defer rec.Release()
	s := dev.NewStream()
	inputs := progen.Inputs(prog, seed)
	in := make([]*millrace.Tensor, len(inputs))
	for i, data := range inputs {
		in[i] = FromBytes([]millrace.Place{dev, s, dev.NewStream()}[rng.IntN(3)], prog.Inputs[i], data)
	}
	ids := append(slices.Clone(prog.Outputs), prog.Outputs[0])
	types := prog.Types()
	out := make([]*millrace.Tensor, len(ids))
	for i, id := range ids {
		if rng.IntN(2) == 0 {
			out[i] = FromBytes(s, types[id], make([]byte, types[id].Shape.Elems()*types[id].DT.Size()))
		}
	}
	b, err := rec.BindWith(millrace.BindOptions{On: s, Out: out}, in...)
	if err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	defer b.Close()
	type kept struct {
		t    *millrace.Tensor
		want ir.Dense
	}
	var held []kept
	for run := range 8 {
		if run > 0 {
			next := progen.Inputs(prog, seed+uint64(run))
			for i := range in {
				if rng.IntN(3) == 0 {
					continue
				}
				if inputs[i] = next[i]; prog.Inputs[i].DT == ir.Float32 && rng.IntN(3) > 0 {
					err = millrace.SetInput(b, i, float32s(next[i])...)
				} else {
					in[i].Set(FromBytes(s, prog.Inputs[i], next[i]))
					err = in[i].Err()
				}
				if err != nil {
					return fmt.Errorf("run %d, argument %d: %w", run, i, err)
				}
			}
		}
		want, err := ir.EvalTensors(prog, inputs)
		if err != nil {
			return fmt.Errorf("oracle: %w", err)
		}
		was, n := begun.Load(), 1
		if run%3 == 2 {
			n = 1 + rng.IntN(100)
			err = b.RunN(n)
		} else {
			err = b.Run()
		}
		if err != nil {
			return fmt.Errorf("run %d: %w", run, err)
		}
		if ops := begun.Load() - was; ops != int64(n)*made.Load() || begun.Load() != ran.Load() {
			return fmt.Errorf("%d of %d host ops ran in %d runs, and %d began", ran.Load(), made.Load(), n, ops)
		}
		for i, id := range ids {
			if err := compare(b.Results()[i], want[id]); err != nil {
				return fmt.Errorf("run %d, result %d: %w", run, i, err)
			}
		}
		for i, t := range in {
			if err := compare(t, want[i]); err != nil {
				return fmt.Errorf("run %d, argument %d: %w", run, i, err)
			}
		}
		for _, k := range held {
			if err := compare(k.t, k.want); err != nil {
				return fmt.Errorf("run %d, what others have: %w", run, err)
			}
		}
		if rng.IntN(4) > 0 {
			continue
		}
		i := rng.IntN(len(ids))
		x, w := b.Results()[i], want[ids[i]]
		switch rng.IntN(4) {
		case 0: // a view
			held = append(held, kept{x.Reshape(x.Shape()...), w})
		case 1: // on another stream
			held = append(held, kept{x.To(dev.NewStream()), w})
		case 2: // another handle
			y := FromBytes(s, types[ids[i]], make([]byte, len(w.Data)))
			y.Set(x)
			held = append(held, kept{y, w})
		case 3:
			for _, k := range held {
				k.t.Release()
			}
			held = nil
		}
	}
	return nil
}

// TestBoundSets: random functions that set tensors from elsewhere do the same called and bound: on
// weights of the binding's stream and of others, while other code holds old values of the weights,
// sets them, and writes arguments.
func TestBoundSets(t *testing.T) {
	for _, spec := range []string{"cpu:compile=off", "cpu:compile=native", "ref:queue=4"} {
		dev := openSpec(t, spec)
		runs, calls := 0, 0
		n := count(t, "PROGRAMS", 150)
		for seed := range uint64(n) {
			r, c := boundSets(t, dev, seed)
			runs, calls = runs+r, calls+c
			if t.Failed() {
				t.Fatalf("%s, seed %d", spec, seed)
			}
		}
		if calls > runs/3 {
			t.Errorf("%s: %d runs called the function %d times", spec, runs, calls)
		}
		if runs < 4*n {
			t.Errorf("%s: %d runs of %d programs", spec, runs, n)
		}
		if s := dev.Stats(); s.BoundRuns < int64(runs)/2 {
			t.Errorf("%s: %d bound runs of %d", spec, s.BoundRuns, runs)
		}
	}
}

func boundSets(t *testing.T, dev *millrace.Device, seed uint64) (runs, calls int) {
	rng := rand.New(rand.NewPCG(seed, 9))
	s := dev.NewStream()
	const states = 3
	var text []stepOp
	for range 1 + rng.IntN(8) {
		text = append(text, stepOp{rng.IntN(8), rng.IntN(11), rng.IntN(11), rng.IntN(states)})
	}
	outs := rng.IntN(3)
	var w [2][states]*tensor // the first are for calls, the second are bound
	for i := range states {
		at := []millrace.Place{dev, s, dev.NewStream()}[rng.IntN(3)]
		for k := range w {
			w[k][i] = millrace.FullOn(at, millrace.Float32, float64(i+1), 4)
		}
	}
	constant := millrace.FullOn(dev, millrace.Float32, 3, 4)
	f := func(k int) func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) {
		return func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) {
			calls += k
			x := append([]*tensor{in[0], in[1], constant}, w[k][:]...)
			pick := func(i int) *tensor { return x[i%len(x)] }
			for _, op := range text {
				a, b, dst := pick(op.a), pick(op.b), w[k][op.dst]
				switch op.kind {
				case 0:
					dst.Set(dst.Sub(a.MulScalar(0.5)))
				case 1:
					dst.Set(a.Maximum(b))
				case 2:
					dst.Set(a)
				case 3:
					x = append(x, a.Mul(b).Sum().Expand(4).MulScalar(0.01))
				case 4:
					x = append(x, a.Sub(b))
				case 5:
					own := a.To(sc)
					own.Set(own.AddScalar(1))
					x = append(x, own)
				case 6:
					dst.Set(millrace.FullOn(sc, millrace.Float32, 2, 4))
				case 7:
					x = append(x, a.Flip(0))
				}
			}
			return x[len(x)-outs:], nil
		}
	}
	args := []*tensor{millrace.FullOn(s, millrace.Float32, 0, 4), millrace.FullOn(s, millrace.Float32, 0, 4)}
	rec := millrace.NewRecording(f(1))
	defer rec.Release()
	b, err := rec.BindWith(millrace.BindOptions{On: s}, args...)
	if errors.Is(err, millrace.ErrUnsupported) { // it sets a tensor to another one's value
		return 0, calls
	}
	if err != nil {
		t.Errorf("bind: %v, %v", err, text)
		return 0, 0
	}
	defer b.Close()
	var held, want []*tensor
	for run := range 10 {
		x := []float32{float32(run), 1, 2, -3}
		if err := millrace.SetInput(b, 0, x...); err != nil {
			t.Error(err)
		}
		args[1].Set(millrace.FullOn(s, millrace.Float32, float64(7*run), 4))
		var direct []*tensor
		if err := s.Scope(func(sc *millrace.Scope) error {
			out, err := f(0)(sc, []*tensor{millrace.FromSliceOn(sc, x, 4), args[1].To(sc)})
			for _, y := range out {
				direct = append(direct, y.To(s))
			}
			return err
		}); err != nil {
			t.Error(err)
			return runs, calls
		}
		if err := b.Run(); err != nil {
			t.Errorf("run %d: %v, %v", run, err, text)
			return runs, calls
		}
		runs++
		got := slices.Clone(b.Results())
		for i := range states {
			direct, got = append(direct, w[0][i]), append(got, w[1][i])
		}
		for i := range direct {
			if err := sameValues(got[i], direct[i]); err != nil {
				t.Errorf("run %d, %d of %d: %v, %v", run, i, len(direct), err, text)
				return runs, calls
			}
		}
		for i := range held {
			if err := sameValues(held[i], want[i]); err != nil {
				t.Errorf("run %d: what others have: %v, %v", run, err, text)
				return runs, calls
			}
		}
		i := rng.IntN(states)
		if !slices.ContainsFunc(text, func(op stepOp) bool { return sets[op.kind] && op.dst == i }) {
			continue // tensors that the function only reads keep their recorded values
		}
		switch rng.IntN(8) {
		case 0: // another value from outside
			for k := range w {
				w[k][i].Set(millrace.FullOn(s, millrace.Float32, 5, 4))
			}
		case 1: // a view
			held, want = append(held, w[1][i].Flip(0)), append(want, w[0][i].Flip(0))
		case 2: // a value not computed yet
			held, want = append(held, w[1][i].MulScalar(2)), append(want, w[0][i].MulScalar(2))
		case 3: // the same on another stream
			held, want = append(held, w[1][i].To(dev.NewStream())), append(want, w[0][i].To(dev.NewStream()))
		case 4: // a state has another's value
			j := rng.IntN(states)
			for k := range w {
				w[k][i].Set(w[k][j])
			}
		}
	}
	return runs, calls
}

func float32s(data []byte) []float32 {
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v
}

// TestBoundShared: arguments and results may be in memory of the program, which it reads and writes
// between runs, while the collector runs.
func TestBoundShared(t *testing.T) {
	for _, spec := range []string{"cpu:compile=off", "cpu:compile=native", "cpu"} {
		dev := openSpec(t, spec)
		if !hostapi.Shares(dev, ir.Float64) {
			continue
		}
		s := dev.NewStream()
		share := func() (*tensor, []byte) {
			x, data, err := hostapi.Share(dev, ir.Float64, []int{3})
			if err != nil {
				t.Fatal(err)
			}
			return x.(*tensor), data
		}
		x, in := share()
		y, out := share()
		rec := millrace.NewRecording(func(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
			return []*tensor{in[0].MulScalar(2).AddScalar(1)}, nil
		})
		b, err := rec.BindWith(millrace.BindOptions{On: s, Out: []*tensor{y}}, x)
		if err != nil {
			t.Fatal(err)
		}
		for run := range 50 {
			for i := range 3 {
				binary.LittleEndian.PutUint64(in[8*i:], math.Float64bits(float64(run+i)))
			}
			if run%10 == 0 {
				goruntime.GC()
			}
			if err := b.Run(); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if got := math.Float64frombits(binary.LittleEndian.Uint64(out[8*i:])); got != float64(2*(run+i)+1) {
					t.Fatalf("%s, run %d: element %d is %v", spec, run, i, got)
				}
			}
		}
		// Memory with another reader is not overwritten, and cannot be moved.
		view := y.Flip(0)
		if err := b.Run(); !errors.Is(err, millrace.ErrUnsupported) {
			t.Errorf("%s: a result that is shared and read: %v", spec, err)
		}
		view.Release()
		if err := errors.Join(b.Run(), b.Close()); err != nil {
			t.Error(err)
		}
	}
}
