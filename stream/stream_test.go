package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/exec"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/operror"
	_ "github.com/millrace-go/millrace/internal/testing/refdev"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// env is a device with helpers that keep tests short.
type env struct {
	t *testing.T
	d *Device
}

func open(t *testing.T, change ...func(*device.Options)) *env {
	t.Helper()
	o := device.Options{Device: "ref", Explore: device.ExploreWait}
	for _, f := range change {
		f(&o)
	}
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return &env{t, d}
}

func (e *env) place() Place { return Place{S: e.d.Default()} }

func (e *env) host(p Place, shape ir.Shape, vals ...float32) *Value {
	data := make([]byte, 0, 4*len(vals))
	for _, x := range vals {
		data = binary.NativeEndian.AppendUint32(data, math.Float32bits(x))
	}
	v := new(Value)
	FromHost(v, p, ir.Float32, shape, data)
	return v
}

func (e *env) op(op ir.Op, args ...Arg) *Value {
	v := new(Value)
	Apply(v, op, args)
	return v
}

// recordNode records a node of a program in the way the public ops do.
func recordNode(v *Value, p Place, n *ir.Node, args []Arg) {
	if info := n.Op.Info(); info.Class == ir.ClassElementwise && info.Out != ir.OutAttr && info.Out != ir.OutWidth {
		Apply(v, n.Op, args)
	} else {
		Record(v, p, n.Op, n.DT, n.Shape, n.Attr, args)
	}
}

func t1(v *Value) Arg                        { return Arg{V: v} }
func f1(x float32) Arg                       { return Arg{Bits: uint64(math.Float32bits(x))} }
func mul(e *env, v *Value, x float32) *Value { return e.op(ir.Mul, t1(v), f1(x)) }
func add(e *env, v *Value, x float32) *Value { return e.op(ir.Add, t1(v), f1(x)) }

func (e *env) want(v *Value, want ...float32) {
	e.t.Helper()
	got, err := e.read(v)
	if err != nil {
		e.t.Fatal(err)
	}
	if len(got) != len(want) {
		e.t.Fatalf("got %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			e.t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func (e *env) read(v *Value) ([]float32, error) {
	dst := make([]byte, v.Shape().Elems()*4)
	if err := Read(v, dst); err != nil {
		return nil, err
	}
	out := make([]float32, len(dst)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.NativeEndian.Uint32(dst[4*i:]))
	}
	return out, nil
}

// A chain is one kernel. The second pass finds the plan, and so does a pass of another size.
func TestChainHitsItsPlan(t *testing.T) {
	e := open(t)
	for turn, n := range []int{3, 3, 5, 1} {
		vals := make([]float32, n)
		want := make([]float32, n)
		for i := range vals {
			vals[i] = float32(i)
			want[i] = (float32(i)*2 + float32(turn)) * 3
		}
		x := e.host(e.place(), ir.Shape{n}, vals...)
		y := mul(e, add(e, mul(e, x, 2), float32(turn)), 3)
		before := e.d.Stats()
		e.want(y, want...)
		after := e.d.Stats()
		if got := after.Kernels - before.Kernels; got != 1 {
			t.Errorf("turn %d: %d kernels, want 1", turn, got)
		}
		if hit := after.PlanHits > before.PlanHits; hit != (turn > 0) {
			t.Errorf("turn %d: plan hit %v", turn, hit)
		}
	}
	if n := e.d.Stats().Explorations; n != 1 {
		t.Errorf("%d explorations, want 1", n)
	}
}

// An operand of size 1 is broadcast along the batch. The plan made for larger batches also serves
// a batch of one.
func TestBatchOneUsesTheSamePlan(t *testing.T) {
	e := open(t)
	for _, n := range []int{4, 3, 1} {
		x := e.host(e.place(), ir.Shape{n, 2}, make([]float32, 2*n)...)
		b := e.host(e.place(), ir.Shape{1, 2}, 1, 2)
		y := e.op(ir.Add, t1(x), t1(b))
		want := make([]float32, 2*n)
		for i := range want {
			want[i] = float32(1 + i%2)
		}
		e.want(y, want...)
	}
	if n := e.d.Stats().Explorations; n != 1 {
		t.Errorf("%d explorations, want 1", n)
	}
}

// An intermediate result that was not written is recomputed when the program needs it, once.
func TestVirtualIsRecomputedAndWritten(t *testing.T) {
	e := open(t)
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	y := mul(e, x, 2)
	z := add(e, y, 1)
	e.want(z, 3, 5)
	if y.state != stVirtual {
		t.Fatalf("state of the intermediate is %d", y.state)
	}
	e.want(y, 2, 4)
	e.want(y, 2, 4)
	if n := e.d.Stats().Recomputes; n != 1 {
		t.Errorf("%d recomputes, want 1", n)
	}
	w := mul(e, y, 10)
	e.want(w, 20, 40)
}

// A virtual value that an op reads is recomputed in the kernel of that op.
func TestVirtualFusesIntoItsConsumer(t *testing.T) {
	e := open(t)
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	y := mul(e, x, 2)
	e.want(add(e, y, 1), 3, 5)
	before := e.d.Stats().Kernels
	e.want(mul(e, y, 3), 6, 12)
	if got := e.d.Stats().Kernels - before; got != 1 {
		t.Errorf("%d kernels, want 1", got)
	}
	if y.state != stReady {
		t.Errorf("the intermediate was not written")
	}
}

func TestReleasedOperandIsOverwritten(t *testing.T) {
	e := open(t)
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	y := mul(e, x, 2)
	Release(x)
	e.want(y, 2, 4)
	if n := e.d.Stats().InPlace; n != 1 {
		t.Errorf("%d in-place results, want 1", n)
	}
	if _, err := e.read(x); !errors.Is(err, operror.ErrReleased) {
		t.Errorf("reading a released tensor: %v", err)
	}
}

// A recipe reads the operand, so the operand must not be overwritten.
func TestRecipePreventsOverwriting(t *testing.T) {
	e := open(t)
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	y := mul(e, x, 2)
	z := add(e, y, 1)
	Release(x)
	e.want(z, 3, 5)
	if n := e.d.Stats().InPlace; n != 0 {
		t.Errorf("%d in-place results, want 0", n)
	}
	e.want(y, 2, 4)
	if n := e.d.Stats().PinnedBytes; n != 0 {
		t.Errorf("%d bytes still pinned", n)
	}
}

func TestScopeReleasesByDescent(t *testing.T) {
	e := open(t)
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	sc := e.d.Default().OpenScope()
	k := e.host(Place{S: e.d.Default(), Scope: sc}, ir.Shape{2}, 10, 20)
	y := e.op(ir.Add, t1(x), t1(k)) // in the scope, because k is
	z := mul(e, y, 2)
	free := mul(e, x, 5) // not in the scope
	sc.Keep(z)
	sc.Close()
	e.want(z, 22, 44)
	e.want(free, 5, 10)
	for _, v := range []*Value{k, y} {
		if _, err := e.read(v); !errors.Is(err, operror.ErrReleased) || !strings.Contains(err.Error(), "scope") {
			t.Errorf("after the scope: %v", err)
		}
	}
	if live := e.d.Stats().LiveBytes; live != 3*8 { // x, z, free
		t.Errorf("%d live bytes", live)
	}
}

// A scope that stays open does not keep released values alive.
func TestScopeForgetsTheReleased(t *testing.T) {
	e := open(t)
	sc := e.d.Default().OpenScope()
	x := e.host(Place{S: e.d.Default(), Scope: sc}, ir.Shape{2}, 0, 0)
	first := x
	for range 2000 {
		y := add(e, x, 1)
		Release(x)
		x = y
	}
	if n := len(sc.owned); n > 500 {
		t.Errorf("the scope holds %d values", n)
	}
	e.want(x, 2000, 2000)
	sc.Close()
	if _, err := e.read(first); !errors.Is(err, operror.ErrReleased) || strings.Contains(err.Error(), "scope") {
		t.Errorf("released before the scope ended: %v", err)
	}
	if live := e.d.Stats().LiveBytes; live != 0 {
		t.Errorf("%d live bytes", live)
	}
}

func TestSetRebindsInPlace(t *testing.T) {
	e := open(t)
	w := e.host(e.place(), ir.Shape{2}, 1, 2)
	for range 5 {
		sc := e.d.Default().OpenScope()
		g := e.host(Place{S: e.d.Default(), Scope: sc}, ir.Shape{2}, 1, 1)
		Set(w, e.op(ir.Add, t1(w), t1(g)))
		if err := Flush(w); err != nil {
			t.Fatal(err)
		}
		sc.Close()
	}
	e.want(w, 6, 7)
	st := e.d.Stats()
	if st.InPlace != 5 || st.Explorations > 2 {
		t.Errorf("%d in place, %d explorations", st.InPlace, st.Explorations)
	}
	if st.LiveBytes != 8 {
		t.Errorf("%d live bytes", st.LiveBytes)
	}
}

// A second Set of the same handles changes nothing.
func TestSetTwice(t *testing.T) {
	e := open(t)
	w := e.host(e.place(), ir.Shape{2}, 1, 2)
	u := mul(e, w, 2)
	Set(w, u)
	Set(w, u)
	e.want(w, 2, 4)
	e.want(u, 2, 4)
	Release(u)
	e.want(w, 2, 4)
	Set(w, u)
	if _, err := e.read(w); !errors.Is(err, operror.ErrReleased) {
		t.Errorf("set to a released tensor: %v", err)
	}
}

func TestStreamsShareOperands(t *testing.T) {
	e := open(t)
	w := e.host(e.place(), ir.Shape{2}, 3, 4)
	a, b := e.d.NewStream(), e.d.NewStream()
	x := e.host(Place{S: a}, ir.Shape{2}, 1, 2)
	y := e.op(ir.Mul, t1(w), t1(x)) // on a, because w is on the default stream
	if y.Home() != a {
		t.Fatalf("the result is not on the operand's stream")
	}
	z := mul(e, y, 2)
	other := e.host(Place{S: b}, ir.Shape{2}, 1, 1)
	sum := e.op(ir.Add, t1(other), t1(y)) // y is pending on a, so a is cut there
	e.want(sum, 4, 9)
	e.want(z, 6, 16)
	Release(w)
	e.want(e.op(ir.Add, t1(other), t1(y)), 4, 9)
}

// After a cut behind the producing op, the later ops are recorded again.
func TestHandOverKeepsTheRest(t *testing.T) {
	e := open(t)
	a, b := e.d.NewStream(), e.d.NewStream()
	x := e.host(Place{S: a}, ir.Shape{2}, 1, 2)
	y := mul(e, x, 2)
	u := add(e, y, 1)
	p := mul(e, u, 3)
	Release(u)
	q := e.op(ir.Add, t1(p), t1(x))
	Release(x)
	got := new(Value)
	To(got, Place{S: b}, y)
	e.want(got, 2, 4)
	e.want(q, 10, 17)
	e.want(p, 9, 15)
	e.want(y, 2, 4)
}

func TestLoopWithoutReadsIsCut(t *testing.T) {
	e := open(t)
	x := e.host(e.place(), ir.Shape{2}, 0, 1)
	want := []float32{0, 1}
	for range 500 {
		x = add(e, mul(e, x, 0.5), 1)
		for i := range want {
			want[i] = want[i]*0.5 + 1
		}
	}
	e.want(x, want...)
	st := e.d.Stats()
	if st.Segments < 8 {
		t.Errorf("%d segments", st.Segments)
	}
	if st.Explorations > 4 {
		t.Errorf("%d explorations", st.Explorations)
	}
}

func TestErrorsCarryTheCallersLine(t *testing.T) {
	e := open(t)
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	y := e.host(e.place(), ir.Shape{3}, 1, 2, 3)
	z := e.op(ir.Add, t1(x), t1(y))
	w := mul(e, z, 2)
	_, err := e.read(w)
	var oe *operror.Error
	if !errors.As(err, &oe) || !errors.Is(err, ir.ErrShape) || !strings.Contains(oe.Caller, "stream_test.go") || oe.Op != "add" {
		t.Fatalf("got %v", err)
	}
	if err := e.d.Default().Err(); err != nil {
		t.Errorf("an error that was seen is reported again: %v", err)
	}
	e.want(mul(e, x, 2), 2, 4) // the stream stays usable
}

func TestErrReportsWhatNobodyRead(t *testing.T) {
	var hooks int
	e := open(t, func(o *device.Options) { o.Trace = &device.Trace{Error: func(error) { hooks++ }} })
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	y := e.host(e.place(), ir.Shape{3}, 1, 2, 3)
	mul(e, e.op(ir.Add, t1(x), t1(y)), 2)
	if err := e.d.Default().Sync(context.Background()); !errors.Is(err, ir.ErrShape) {
		t.Errorf("Sync: %v", err)
	}
	if err := e.d.Default().Err(); err != nil {
		t.Errorf("second time: %v", err)
	}
	if hooks != 1 {
		t.Errorf("%d hook calls", hooks)
	}
}

func TestLaunchFaultFallsBackOpByOp(t *testing.T) {
	e := open(t)
	defer fault.Reset()
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	y := mul(e, add(e, x, 1), 3)
	fault.Set("launch", 1)
	e.want(y, 6, 9)
	if n := e.d.Stats().Fallbacks; n != 1 {
		t.Errorf("%d fallbacks", n)
	}
}

func TestAllocFaultPoisonsAndRecovers(t *testing.T) {
	e := open(t)
	defer fault.Reset()
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	y := mul(e, x, 2)
	fault.Set(fault.Alloc, -1)
	_, err := e.read(y)
	var oe *operror.Error
	if !errors.As(err, &oe) || !errors.Is(err, runtime.ErrOutOfMemory) || oe.Op != "mul" || !strings.Contains(oe.Caller, "stream_test.go") {
		t.Errorf("with no memory to be had: %v", err)
	}
	fault.Reset()
	if _, again := e.read(y); !errors.Is(again, runtime.ErrOutOfMemory) {
		t.Errorf("the value lost its error: %v", again)
	}
	e.want(mul(e, x, 3), 3, 6)
}

func TestDropsAreCollected(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // only forced collections
	e := open(t, func(o *device.Options) { o.MemoryLimit = 1 << 20 })
	for i := range 100 {
		x := e.host(e.place(), ir.Shape{1 << 14}, make([]float32, 1<<14)...)
		y := add(e, x, float32(i))
		if err := Flush(y); err != nil {
			t.Fatalf("turn %d: %v", i, err)
		}
	}
	if n := e.d.Stats().Collections; n == 0 {
		t.Error("no collection was forced")
	}
}

func TestClosedDevice(t *testing.T) {
	e := open(t)
	x := e.host(e.place(), ir.Shape{1}, 1)
	e.d.Close()
	if _, err := e.read(mul(e, x, 2)); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Check finds a plan whose kernels do not compute what its ops mean.
func TestCheckNamesTheOpThatDiffers(t *testing.T) {
	e := open(t, func(o *device.Options) { o.Check = true })
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	y := mul(e, add(e, x, 1), 3)
	s := e.d.Default()
	s.mu.Lock()
	end := segment.End{Reason: segment.ReasonRead, ID: y.id}
	seg := s.segment(end)
	ent, err := e.d.plans.Explore(seg, fusion.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ent.Plan.Steps[0].Scalars[0] = ent.Plan.Steps[0].Scalars[1] // x*3... instead of x+1
	s.query(seg, end).Add(ent)
	for i := range s.q.Items { // the queue was not in the trie before
		if i == 0 {
			s.node = e.d.plans.Trie.Root()
		}
		s.step(&s.q.Items[i])
	}
	s.mu.Unlock()
	_, err = e.read(y)
	if !errors.Is(err, exec.ErrMismatch) || !strings.Contains(err.Error(), "mul") {
		t.Fatalf("got %v", err)
	}
}

// An error is reported even if an earlier error had not been read when it happened.
func TestErrTellsEveryErrorOnce(t *testing.T) {
	e := open(t)
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	y := e.host(e.place(), ir.Shape{3}, 1, 2, 3)
	first := e.op(ir.Add, t1(x), t1(y))
	e.op(ir.Mul, t1(x), t1(y))
	e.op(ir.Sub, t1(x), t1(y))
	if _, err := e.read(first); err == nil {
		t.Fatal("no error")
	}
	s := e.d.Default()
	for _, op := range []string{"mul", "sub"} {
		var oe *operror.Error
		if err := s.Err(); !errors.As(err, &oe) || oe.Op != op {
			t.Errorf("got %v, want that of %s", err, op)
		}
	}
	if err := s.Err(); err != nil {
		t.Errorf("got %v", err)
	}
}

// Values of a closed stream stay readable, including those with recipes.
func TestClosedStream(t *testing.T) {
	e := open(t)
	s := e.d.NewStream()
	x := e.host(Place{S: s}, ir.Shape{2}, 1, 2)
	y := mul(e, x, 2)
	z := add(e, y, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	e.want(z, 3, 5)
	e.want(y, 2, 4)
	if _, err := e.read(mul(e, x, 2)); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("recording on it: %v", err)
	}
}

// Ops that were queued when their device closed report it.
func TestCloseWithOpsQueued(t *testing.T) {
	e := open(t)
	a := e.d.NewStream()
	x := e.host(Place{S: a}, ir.Shape{2}, 1, 2)
	y := mul(e, x, 2)
	e.d.Close()
	to := new(Value)
	To(to, Place{S: e.d.NewStream()}, y)
	for _, v := range []*Value{to, y} {
		if _, err := e.read(v); !errors.Is(err, runtime.ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	if err := a.Sync(context.Background()); !errors.Is(err, runtime.ErrClosed) && err != nil {
		t.Errorf("Sync: %v", err)
	}
}

// Handing over a value that has to be recomputed leaves no memory in use.
func TestHandOverOfVirtualLeavesNothing(t *testing.T) {
	e := open(t)
	a, b := e.d.NewStream(), e.d.NewStream()
	x := e.host(Place{S: a}, ir.Shape{2}, 1, 2)
	y := mul(e, add(e, mul(e, x, 2), 1), 3)
	e.want(add(e, y, 1), 10, 16)
	to := new(Value)
	To(to, Place{S: b}, y)
	if n := len(a.q.Items); n != 0 {
		t.Errorf("%d entries queued", n)
	}
	before := e.d.Stats()
	e.want(to, 9, 15)
	if err := a.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	after := e.d.Stats()
	if after.Kernels != before.Kernels || after.Recomputes != 1 {
		t.Errorf("%d kernels more, %d recomputes", after.Kernels-before.Kernels, after.Recomputes)
	}
}

// With sizes of 0, different groups of dims look equal. The plan of a larger segment must not
// serve such a segment.
func TestEmptyAfterALargerOne(t *testing.T) {
	e := open(t)
	sum := func(from, to ir.Shape, vals ...float32) *Value {
		x := e.host(e.place(), from, vals...)
		r, s := new(Value), new(Value)
		Record(r, Place{}, ir.Reshape, ir.Invalid, to, nil, []Arg{t1(mul(e, x, 2))})
		Record(s, Place{}, ir.Sum, ir.Invalid, nil, &ir.Attr{Axes: []int{0}}, []Arg{t1(r)})
		return add(e, s, 1)
	}
	e.want(sum(ir.Shape{2, 2}, ir.Shape{2, 2}, 1, 2, 3, 4), 9, 13)
	e.want(sum(ir.Shape{0, 2}, ir.Shape{0, 3}), 1, 1, 1)
	e.want(sum(ir.Shape{2, 2}, ir.Shape{2, 2}, 1, 2, 3, 4), 9, 13)
	if n := e.d.Stats().PlanHits; n != 1 {
		t.Errorf("%d plans found", n)
	}
}
