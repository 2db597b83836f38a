package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/ir"
)

// groups are the op groups that programs use beyond the basic ops, in turn.
var groups = []progen.Group{0, progen.AllGroups}

// TestRandomPrograms runs random programs on the reference device under random options, with
// random reads, syncs, scopes and streams, and compares every output with the oracle's bits. Each
// program runs twice on one device, so the second run uses the plans of the first.
func TestRandomPrograms(t *testing.T) {
	n := 150
	if testing.Short() {
		n = 60
	}
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			p := progen.New(uint64(seed), progen.Config{Groups: groups[seed%2]})
			if err := runRandom(p, uint64(seed)); err != nil {
				small := progen.Shrink(p, func(q *ir.Graph) bool { return runRandom(q, uint64(seed)) != nil })
				t.Fatalf("%v\nshrunk to (%v):\n%v", err, runRandom(small, uint64(seed)), small)
			}
		})
	}
}

// runRandom runs p as a user's program would: with handles, and with operands from any stream.
func runRandom(p *ir.Graph, seed uint64) error {
	inputs := progen.Inputs(p, seed)
	denormals := ir.Denormals(seed / 2 % 3 % 2)
	if denormals == ir.FlushDenormals {
		inputs = progen.TinyInputs(p, seed)
	}
	want, err := denormals.EvalGraph(p, inputs)
	if err != nil {
		return nil // other tests check errors at record time
	}
	rnd := rand.New(rand.NewPCG(seed, 7))
	o := device.Options{Device: "ref", Fusion: device.FusionMode(rnd.IntN(3)), Denormals: denormals}
	if rnd.IntN(3) == 0 {
		o.QueueCap = 1 + rnd.IntN(12)
	}
	if rnd.IntN(4) == 0 {
		o.PinnedLimit = 1
	}
	o.Check = rnd.IntN(3) == 0
	o.Explore = device.ExploreMode(rnd.IntN(2))
	d, err := Open(o)
	if err != nil {
		return err
	}
	defer d.Close()
	d.plans.Quick = 1 + rnd.IntN(planstore.QuickEffort) // a better plan may replace a plan at any moment
	if rnd.IntN(2) == 0 {                               // results are written unasked
		d.plans.Foresight = planstore.Foresight{Work: 1 + rnd.IntN(30), Results: 1 + rnd.IntN(8)}
	}
	for turn := range 2 {
		if err := runOnce(d, p, inputs, want, rnd); err != nil {
			return fmt.Errorf("turn %d, options %+v: %w", turn, o, err)
		}
	}
	if err := d.Wait(); err != nil {
		return err
	}
	if live := d.Stats().LiveBytes; live != 0 {
		return fmt.Errorf("%d bytes live after everything was released, options %+v", live, o)
	}
	if pinned := d.Stats().PinnedBytes; pinned != 0 {
		return fmt.Errorf("%d bytes pinned after everything was released, options %+v", pinned, o)
	}
	return nil
}

func runOnce(d *Device, p *ir.Graph, inputs [][]byte, want [][]byte, rnd *rand.Rand) error {
	streams := []*Stream{d.Default()}
	if rnd.IntN(2) == 0 {
		streams = append(streams, d.NewStream(), d.NewStream())
	}
	any := func() *Stream { return streams[rnd.IntN(len(streams))] }
	var scope *Scope
	if rnd.IntN(2) == 0 {
		scope = d.Default().OpenScope()
	}
	vals := make([]*Value, 0, len(p.Inputs)+len(p.Nodes))
	gone := map[int]bool{}
	for i, in := range p.Inputs {
		v := new(Value)
		pl := Place{S: any()}
		if scope != nil && rnd.IntN(2) == 0 {
			pl.Scope = scope
		}
		FromHost(v, pl, in.DT, in.Shape, inputs[i])
		vals = append(vals, v)
	}
	var shared []*Value
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Op == ir.Release {
			Release(vals[n.Args[0].ID])
			gone[int(n.Args[0].ID)] = true
			continue
		}
		if n.Op == ir.Keep {
			continue
		}
		v := new(Value)
		recordNode(v, Place{S: any()}, n, argsOf(p, n, vals))
		vals = append(vals, v)
		switch rnd.IntN(24) {
		case 0:
			if err := any().Sync(context.Background()); err != nil {
				return fmt.Errorf("sync: %w", err)
			}
		case 1:
			k := rnd.IntN(len(vals))
			if !gone[k] {
				if err := Flush(vals[k]); err != nil {
					return fmt.Errorf("flush of %%%d: %w", k, err)
				}
			}
		case 2: // another handle names the value too
			u := new(Value)
			Set(u, v)
			if rnd.IntN(2) == 0 {
				u, v = v, u
				vals[len(vals)-1] = v
			}
			if rnd.IntN(2) == 0 {
				Release(u)
			} else {
				shared = append(shared, u)
			}
		}
	}
	for i, id := range p.Outputs {
		v := vals[id]
		if v.Shape().Elems()*v.DType().Size() != len(want[i]) {
			return fmt.Errorf("output %d is %v of %v", i, v.Shape(), v.DType())
		}
		got := make([]byte, len(want[i]))
		if err := Read(v, got); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
		if err := sameBits(v.DType(), got, want[i]); err != nil {
			return fmt.Errorf("output %d (%%%d): %w", i, id, err)
		}
	}
	if scope != nil {
		scope.Close()
	}
	for _, v := range append(vals, shared...) {
		Release(v)
	}
	return d.Default().Err()
}

// sameBits compares elements. Any NaN equals any NaN.
func sameBits(dt ir.DType, got, want []byte) error {
	size := dt.Size()
	for i := 0; i < len(want); i += size {
		g, w := got[i:i+size], want[i:i+size]
		if string(g) == string(w) || isNaN(dt, g) && isNaN(dt, w) {
			continue
		}
		return fmt.Errorf("element %d is % x, want % x (%v)", i/size, g, w, dt)
	}
	return nil
}

func isNaN(dt ir.DType, b []byte) bool {
	switch dt {
	case ir.Float32:
		f := math.Float32frombits(binary.NativeEndian.Uint32(b))
		return f != f
	case ir.Float64:
		return math.IsNaN(math.Float64frombits(binary.NativeEndian.Uint64(b)))
	}
	return false
}

// TestRandomFaults runs random programs while allocations and launches fail at random. Results
// without the fault must be right, and no memory may stay live after all handles were released.
// No test runs beside it, because faults are armed for the whole process.
func TestRandomFaults(t *testing.T) {
	n := 200
	switch {
	case os.Getenv("MILLRACE_LONG") != "":
		n = 1000
	case testing.Short():
		n = 80
	}
	defer fault.Reset()
	faults := 0
	for seed := range uint64(n) {
		p := progen.New(seed, progen.Config{Groups: groups[seed%2]})
		failed, err := runFaulty(p, seed)
		if err != nil {
			small := progen.Shrink(p, func(q *ir.Graph) bool { _, err := runFaulty(q, seed); return err != nil })
			_, last := runFaulty(small, seed)
			t.Fatalf("seed %d: %v\nshrunk to (%v):\n%v", seed, err, last, small)
		}
		faults += failed
	}
	if faults == 0 {
		t.Error("no fault reached anybody")
	}
}

// runFaulty runs p once, with faults, and returns the number of outputs that have an error.
func runFaulty(p *ir.Graph, seed uint64) (failed int, err error) {
	inputs := progen.Inputs(p, seed)
	want, err := ir.EvalGraph(p, inputs)
	if err != nil {
		return 0, nil
	}
	rnd := rand.New(rand.NewPCG(seed, 11))
	var hooks atomic.Int64
	o := device.Options{Device: "ref", Fusion: device.FusionMode(rnd.IntN(3)), Trace: &device.Trace{Error: func(error) { hooks.Add(1) }}}
	if rnd.IntN(2) == 0 {
		o.QueueCap = 1 + rnd.IntN(12)
	}
	d, err := Open(o)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	defer fault.Reset()
	streams := []*Stream{d.Default(), d.NewStream(), d.NewStream()}
	var vals []*Value
	for i, in := range p.Inputs {
		v := new(Value)
		FromHost(v, Place{S: streams[rnd.IntN(3)]}, in.DT, in.Shape, inputs[i])
		vals = append(vals, v)
	}
	for i := range p.Nodes {
		if rnd.IntN(4) == 0 {
			point := []string{fault.Alloc, fault.Launch}[rnd.IntN(2)]
			fault.Set(point, 1+rnd.IntN(3))
		}
		n := &p.Nodes[i]
		switch n.Op {
		case ir.Release:
			Release(vals[n.Args[0].ID])
			continue
		case ir.Keep:
			continue
		}
		var args [3]Arg
		for k, a := range n.Args[:n.NArgs] {
			if a.Scalar {
				args[k].Bits = p.Scalars[a.ID].Bits
			} else {
				args[k].V = vals[a.ID]
			}
		}
		v := new(Value)
		recordNode(v, Place{S: streams[rnd.IntN(3)]}, n, args[:n.NArgs])
		vals = append(vals, v)
		if rnd.IntN(12) == 0 {
			_ = Flush(v) // the fault is reported again below
		}
	}
	for i, id := range p.Outputs {
		got := make([]byte, len(want[i]))
		if err := Read(vals[id], got); err != nil {
			var oe *operror.Error
			if !errors.As(err, &oe) || !strings.Contains(err.Error(), "injected") || !strings.Contains(oe.Caller, "_test.go") {
				return failed, fmt.Errorf("output %d carries %w", i, err)
			}
			failed++
			continue
		}
		if err := sameBits(vals[id].DType(), got, want[i]); err != nil {
			return failed, fmt.Errorf("output %d (%%%d): %w", i, id, err)
		}
	}
	fault.Reset()
	for _, v := range vals {
		Release(v)
	}
	for _, s := range streams {
		_ = s.Sync(context.Background()) // faults of values that are never read
	}
	if failed > 0 && hooks.Load() == 0 {
		return failed, errors.New("the hook told of no fault")
	}
	if st := d.Stats(); st.LiveBytes != 0 || st.PinnedBytes != 0 {
		return failed, fmt.Errorf("%d bytes live, %d pinned, options %+v", st.LiveBytes, st.PinnedBytes, o)
	}
	return failed, nil
}

// argsOf returns the arguments of a program's node, from the values so far.
func argsOf(p *ir.Graph, n *ir.Node, vals []*Value) []Arg {
	args := make([]Arg, n.NArgs)
	for k, a := range n.Args[:n.NArgs] {
		if a.Scalar {
			args[k].Bits = p.Scalars[a.ID].Bits
		} else {
			args[k].V = vals[a.ID]
		}
	}
	return args
}
