package stream

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/testing/refdev"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// builder is a device that records its builds and launches, and can delay builds.
type builder struct {
	runtime.Device
	gate func(n int) error // called with the number of the build, from 1; nil delays none

	builds      atomic.Int32
	mu          sync.Mutex
	provisional []bool // per launch
	forgotten   []runtime.Program
}

func (b *builder) Build(k runtime.Kernel) (runtime.Program, error) {
	if n := int(b.builds.Add(1)); b.gate != nil {
		if err := b.gate(n); err != nil {
			return nil, err
		}
	}
	return b.Device.Build(k)
}

func (b *builder) Run(ls []runtime.Launch) error {
	b.mu.Lock()
	for i := range ls {
		b.provisional = append(b.provisional, ls[i].Provisional)
	}
	b.mu.Unlock()
	return b.Device.Run(ls)
}

func (b *builder) launches() []bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.provisional
}

// searching opens a device that ends no search in the foreground. It also returns the plans of
// the flushes so far.
func searching(t *testing.T, gate func(int) error, change ...func(*device.Options)) (*env, *builder, *[]string) {
	t.Helper()
	b := &builder{Device: refdev.New(runtime.Config{}), gate: gate}
	made := new([]string)
	o := device.Options{Trace: &device.Trace{Flush: func(ev device.FlushEvent) {
		how := ev.Plan
		if ev.Hit {
			how += " again"
		}
		*made = append(*made, how)
	}}}
	for _, f := range change {
		f(&o)
	}
	d, err := OpenOn(b, o)
	if err != nil {
		t.Fatal(err)
	}
	d.plans.Quick = 1
	t.Cleanup(func() { d.Close() })
	return &env{t, d}, b, made
}

// twice runs a program whose best plan is better than its greedy plan if the scalars are equal:
// it then computes one exponential instead of two.
func (e *env) twice(a, b float32) {
	e.t.Helper()
	x := e.host(e.place(), ir.Shape{2}, 0, 0)
	y := e.op(ir.Add, t1(e.op(ir.Exp, t1(mul(e, x, a)))), t1(e.op(ir.Exp, t1(mul(e, x, b)))))
	e.want(y, 2, 2)
}

func (e *env) idle() {
	e.t.Helper()
	if err := e.d.Wait(); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) explored(when string, all, background int64) {
	e.t.Helper()
	if s := e.d.Stats(); s.Explorations != all || s.Searches != background {
		e.t.Errorf("%s: %d explorations, %d of them in the background, want %d and %d", when, s.Explorations, s.Searches, all, background)
	}
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("flushes by %q, want %q", got, want)
	}
}

// The first run uses the greedy plan, and later runs use the best plan after it was found. The
// greedy plan stays for segments that the best plan does not serve.
func TestBackgroundSearch(t *testing.T) {
	e, _, made := searching(t, nil)
	e.twice(3, 3)
	e.idle()
	e.explored("first", 2, 1)
	e.twice(3, 3)
	e.twice(5, 5)
	e.explored("known", 2, 1)
	same(t, *made, "greedy", "best again", "best again")
	*made = nil
	e.twice(3, 4) // the greedy plan has no guard
	e.idle()
	e.explored("other scalars", 3, 2)
	e.twice(3, 4)
	e.twice(3, 3)
	e.idle()
	e.explored("nothing better", 3, 2)
	same(t, *made, "greedy again", "greedy again", "best again")
	if n := e.d.Stats().Plans; n != 1 {
		t.Errorf("%d leaves", n)
	}
}

// If the program waits for searches, there is one exploration, which finds the best plan.
func TestForegroundSearch(t *testing.T) {
	for _, change := range []func(*device.Options){
		func(o *device.Options) { o.Explore = device.ExploreWait },
		func(o *device.Options) { o.Compile = runtime.CompileWait },
		func(o *device.Options) { o.Tier = device.TierCompiled },
	} {
		e, _, made := searching(t, nil, change)
		e.twice(3, 3)
		e.idle()
		e.twice(3, 3)
		e.explored("known", 1, 0)
		same(t, *made, "best", "best again")
	}
}

// A device that builds kernels slowly builds none that will be replaced.
func TestSlowBuildSearchesAtOnce(t *testing.T) {
	e, b, made := searching(t, nil)
	b.Caps().SlowBuild = true
	e.twice(3, 3)
	e.idle()
	e.explored("first", 1, 0)
	same(t, *made, "best")
	if n := b.builds.Load(); n != 1 {
		t.Errorf("%d kernels built", n)
	}
}

// The effort bound of a search decides whether the program waits for it.
func TestQuickSearchIsAwaited(t *testing.T) {
	e, _, made := searching(t, nil)
	e.d.plans.Quick = planstore.QuickEffort
	e.twice(3, 3)
	e.idle()
	e.explored("first", 1, 0)
	same(t, *made, "best")
}

// Launches of a plan that is about to be replaced are marked, because compiling their kernels
// would be wasted. They are no longer marked if no better plan was found.
func TestProvisionalLaunches(t *testing.T) {
	hold := make(chan struct{})
	e, b, made := searching(t, func(n int) error {
		if n == 2 {
			<-hold
		}
		return nil
	})
	e.twice(3, 3)
	e.twice(3, 3)
	close(hold)
	e.idle()
	e.twice(3, 3)
	same(t, *made, "greedy", "greedy again", "best again")
	if got, want := fmt.Sprint(b.launches()), fmt.Sprint([]bool{true, true, false}); got != want {
		t.Errorf("provisional launches %v, want %v", got, want)
	}
}

// A failed search leaves the greedy plan in use for good, and is counted.
func TestFailedSearch(t *testing.T) {
	var hooks atomic.Int32
	e, b, made := searching(t, func(n int) error {
		if n == 2 {
			return runtime.ErrOutOfMemory
		}
		return nil
	}, func(o *device.Options) { o.Trace.Error = func(error) { hooks.Add(1) } })
	e.twice(3, 3)
	e.idle()
	e.twice(3, 3)
	e.idle()
	e.twice(3, 3)
	same(t, *made, "greedy", "greedy again", "greedy again")
	if n := b.builds.Load(); n != 2 {
		t.Errorf("%d builds, want 2: one for each plan", n)
	}
	if p := b.launches(); p[1] || p[2] {
		t.Errorf("launches are provisional though the search has ended: %v", p)
	}
	if n, told := e.d.Stats().Fallbacks, hooks.Load(); n != 1 || told != 1 {
		t.Errorf("%d fallbacks, %d told of", n, told)
	}
}

// heldUp returns an option change that delays each background search, after it found a plan,
// until the channel is closed.
func heldUp(hold chan struct{}) func(*device.Options) {
	return func(o *device.Options) {
		o.Trace.Explore = func(ev device.ExploreEvent) {
			if ev.Background {
				<-hold
			}
		}
	}
}

// Close waits for the running search and drops the other ones.
func TestCloseEndsSearches(t *testing.T) {
	hold := make(chan struct{})
	e, _, _ := searching(t, nil, heldUp(hold))
	e.twice(3, 3)
	for e.d.Stats().Searches == 0 {
		goruntime.Gosched()
	}
	x := e.host(e.place(), ir.Shape{2}, 0, 0)
	e.want(e.op(ir.Sub, t1(e.op(ir.Exp, t1(mul(e, x, 2)))), t1(e.op(ir.Exp, t1(mul(e, x, 2))))), 0, 0)
	closed := make(chan struct{})
	go func() {
		e.d.Close()
		close(closed)
	}()
	for !e.d.plans.Search.Ended.Load() {
		goruntime.Gosched()
	}
	select {
	case <-closed:
		t.Error("closed while a search runs")
	default:
	}
	close(hold)
	<-closed
	e.explored("closed", 3, 1)
	if _, err := e.read(mul(e, x, 2)); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// The recipe of a greedy plan recomputed a costly result. The plan that replaces the greedy plan
// writes this result, whether the search ends before or after the recomputation.
func TestReplayReachesTheBetterPlan(t *testing.T) {
	for _, first := range []string{"replay", "search"} {
		hold := make(chan struct{})
		e, _, made := searching(t, nil, heldUp(hold))
		run := func() *Value {
			x := e.host(e.place(), ir.Shape{2, 2}, 0, 0, 0, 0)
			sum := e.record(ir.Sum, nil, &ir.Attr{Axes: []int{1}, Keep: true}, t1(x))
			y := e.op(ir.Add, t1(e.op(ir.Exp, t1(mul(e, x, 3)))), t1(e.op(ir.Exp, t1(mul(e, x, 3)))))
			e.want(e.op(ir.Sub, t1(y), t1(sum)), 2, 2, 2, 2)
			return sum
		}
		sum := run()
		if first == "replay" {
			e.want(sum, 0, 0)
		}
		close(hold)
		e.idle()
		if first == "search" {
			e.want(sum, 0, 0)
		}
		if n := e.d.Stats().Recomputes; n != 1 {
			t.Fatalf("%s first: computed again %d times, want 1", first, n)
		}
		for range 3 {
			e.want(run(), 0, 0)
			e.idle()
		}
		if n := e.d.Stats().Recomputes; n != 1 {
			t.Errorf("%s first: computed again %d times, want 1, by plans %q", first, n, *made)
		}
		if last := (*made)[len(*made)-1]; last != "best again" {
			t.Errorf("%s first: the last flush is by %q", first, *made)
		}
	}
}

// Programs that never repeat are explored greedily. If one repeats, its best plan is searched
// for.
func TestGreedyPlansThatComeBack(t *testing.T) {
	for _, mode := range []device.ExploreMode{device.ExploreWait, device.ExploreBackground} {
		e, _, made := searching(t, nil, func(o *device.Options) { o.Explore = mode })
		for n := range planstore.GreedyAfter {
			y := e.host(e.place(), ir.Shape{1}, 1)
			for range n + 1 {
				y = mul(e, y, 1)
			}
			e.want(y, 1)
		}
		e.idle()
		before := e.d.Stats()
		*made = nil
		e.twice(3, 3)
		e.idle()
		if s := e.d.Stats(); s.Explorations != before.Explorations+1 || s.Searches != before.Searches {
			t.Errorf("%v: a program that may never come again is searched for its best plan", mode)
		}
		e.twice(3, 3)
		e.idle()
		e.twice(3, 3)
		want := []string{"greedy", "greedy again", "best again"}
		if mode == device.ExploreWait {
			want[1] = "best"
		}
		same(t, *made, want...)
		if s := e.d.Stats(); s.Explorations != before.Explorations+2 {
			t.Errorf("%v: %d explorations, want 2", mode, s.Explorations-before.Explorations)
		}
	}
}

// After a few segments that did not come again, a search waits until its segment does.
func TestSearchesWaitForSegmentsThatComeBack(t *testing.T) {
	e, _, made := searching(t, nil)
	for n := range planstore.SearchAfter {
		y := e.host(e.place(), ir.Shape{1}, 1)
		for range n + 1 {
			y = mul(e, y, 1)
		}
		e.want(y, 1)
	}
	e.idle()
	before := e.d.Stats().Searches
	*made = nil
	e.twice(3, 3)
	e.idle()
	if n := e.d.Stats().Searches - before; n != 0 {
		t.Errorf("%d searches for a segment that ran once", n)
	}
	e.twice(3, 3)
	e.idle()
	e.twice(3, 3)
	same(t, *made, "greedy", "greedy again", "best again")
}

// The plan that a background search found outlives the process. The temporary plan does not.
func TestSearchedPlansAreSaved(t *testing.T) {
	dir := t.TempDir()
	for turn, want := range []string{"greedy", "best again"} {
		e, _, made := searching(t, nil, cached(dir))
		e.twice(3, 3)
		same(t, *made, want)
		if n := e.d.Stats().Explorations; turn > 0 && n != 0 {
			t.Errorf("%d explorations with a warm cache", n)
		}
		if err := e.d.Wait(); err != nil { // the plan is on the disk afterwards
			t.Fatal(err)
		}
		if n := e.d.Stats().Cache.Written; n != int64(1-turn) {
			t.Errorf("turn %d: %d plans written", turn, n)
		}
	}
}

func (b *builder) Forget(p runtime.Program) {
	b.mu.Lock()
	b.forgotten = append(b.forgotten, p)
	b.mu.Unlock()
}

// The driver is told which programs no plan uses any more, and no others.
func TestForgottenPrograms(t *testing.T) {
	e, b, _ := searching(t, nil)
	e.d.plans.Trie = segment.NewTrie[queue.Key, *planstore.Known](2, queue.Legal)
	e.d.plans.Trie.OnDrop(e.d.plans.Retired)
	forgotten := func(when string, want int) {
		t.Helper()
		b.mu.Lock()
		defer b.mu.Unlock()
		if n := len(b.forgotten); n != want {
			t.Errorf("%s: %d programs forgotten, want %d", when, n, want)
		}
	}
	s := e.d.NewStream() // uses the new trie
	run := func(read bool, factors int) {
		y := e.host(Place{S: s}, ir.Shape{1}, 1)
		for range factors {
			y = mul(e, y, 1)
		}
		if !read {
			if err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		e.want(y, 1)
		e.idle() // the search finds the greedy plan again; its programs are shared and stay
	}
	run(true, 1)
	run(false, 1) // another plan with the same kernel
	forgotten("two plans", 0)
	run(true, 2)
	forgotten("a third one took the place of the first", 0)
	run(true, 3)
	forgotten("a fourth one took the place of the second", 1)
	run(true, 4)
	forgotten("a fifth one took the place of the third", 2)
	run(true, 4)
	forgotten("nothing new", 2)
	if builds := b.builds.Load(); builds != 4 {
		t.Errorf("%d kernels built, want 4", builds)
	}
}

// The place of a cut does not depend on which results are in memory. That depends on plans, and
// plans change while a program runs.
func TestCutsDoNotDependOnRecipes(t *testing.T) {
	cuts := func(written bool) (at []int, recomputes int64) {
		e := open(t, func(o *device.Options) { o.QueueCap = 12 })
		x := e.host(e.place(), ir.Shape{2}, 1, 2)
		var olds []*Value
		for i := range 24 {
			y := mul(e, x, float32(i))
			e.want(add(e, y, 1), float32(i)+1, 2*float32(i)+1)
			if written {
				e.want(y, float32(i), 2*float32(i))
			}
			olds = append(olds, y)
		}
		before := e.d.Stats().Recomputes
		ops := []ir.Op{ir.Abs, ir.Neg, ir.Square, ir.Sqrt, ir.Relu, ir.Floor}
		v, segments := x, e.d.Stats().Segments
		for i := range 96 {
			if i%4 == 1 {
				v = e.op(ir.Maximum, t1(v), t1(olds[i/4]))
			} else if i < 48 {
				v = e.op(ops[i*i/3%len(ops)], t1(v)) // the ops never repeat
			} else {
				v = e.op(ops[i%4], t1(v))
			}
			if n := e.d.Stats().Segments; n > segments {
				at, segments = append(at, i), n
			}
		}
		return at, e.d.Stats().Recomputes - before
	}
	want, none := cuts(true)
	got, some := cuts(false)
	if none != 0 || some != 24 || len(want) < 3 {
		t.Errorf("%d and %d recomputes, cuts at %v: nothing was tested", none, some, want)
	}
	if !slices.Equal(got, want) {
		t.Errorf("cuts at %v with recipes, at %v without", got, want)
	}
}
