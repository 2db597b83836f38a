package stream

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/testing/refdev"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

func cached(dir string) func(*device.Options) { return func(o *device.Options) { o.Cache = dir } }

// another does the work of another process: it opens a device with the cache, runs on it and
// closes it, which writes all entries.
func another(t *testing.T, dir string, run func(e *env)) device.Stats {
	t.Helper()
	e := open(t, cached(dir))
	run(e)
	if err := e.d.Wait(); err != nil {
		t.Fatal(err)
	}
	s := e.d.Stats()
	if err := e.d.Close(); err != nil {
		t.Error(err)
	}
	return s
}

// mixed runs a few segments: a chain with equal scalars, a broadcast, and row ops.
func mixed(e *env) {
	e.t.Helper()
	x := e.host(e.place(), ir.Shape{2, 3}, 1, 2, 3, 4, 5, 6)
	b := e.host(e.place(), ir.Shape{1, 3}, 10, 20, 30)
	e.want(add(e, mul(e, e.op(ir.Add, t1(x), t1(b)), 2), 2), 24, 46, 68, 30, 52, 74)
	sum := e.record(ir.Sum, nil, &ir.Attr{Axes: []int{1}, Keep: true}, t1(x))
	e.want(e.op(ir.Sub, t1(x), t1(sum)), -5, -4, -3, -11, -10, -9)
	e.want(e.record(ir.Permute, nil, &ir.Attr{Axes: []int{1, 0}}, t1(mul(e, x, 3))), 3, 12, 6, 15, 9, 18)
}

func TestPlansOutliveTheirDevice(t *testing.T) {
	dir := t.TempDir()
	first := another(t, dir, mixed)
	if first.Explorations == 0 || first.Cache.Hits != 0 || first.Cache.Written != first.Explorations || first.Cache.Misses != first.Explorations {
		t.Errorf("cold: %d explorations, %+v", first.Explorations, first.Cache)
	}
	again := another(t, dir, func(e *env) { mixed(e); mixed(e) })
	if again.Explorations != 0 || again.Cache.Hits != first.Explorations || again.PlanHits != again.Segments || again.Cache.Written != 0 {
		t.Errorf("warm: %d explorations, %d of %d segments hit, %+v", again.Explorations, again.PlanHits, again.Segments, again.Cache)
	}
	if again.Kernels != 2*first.Kernels {
		t.Errorf("%d kernels, %d before", again.Kernels, first.Kernels)
	}
}

// A plan from the cache serves other sizes like a plan made here: a batch of one, and others. If
// a batch of one comes first, it gets a plan of its own, which is made once.
func TestPlansOfOtherSizesAreFound(t *testing.T) {
	dir := t.TempDir()
	run := func(n int) func(e *env) {
		return func(e *env) {
			e.t.Helper()
			ones := make([]float32, n*2)
			x := e.host(e.place(), ir.Shape{n, 2}, ones...)
			b := e.host(e.place(), ir.Shape{1, 2}, 1, 2)
			var want []float32
			for range n {
				want = append(want, 3, 6)
			}
			e.want(mul(e, e.op(ir.Add, t1(x), t1(b)), 3), want...)
		}
	}
	if s := another(t, dir, run(4)); s.Explorations != 1 {
		t.Errorf("%d explorations", s.Explorations)
	}
	if s := another(t, dir, func(e *env) { run(7)(e); run(1)(e); run(4)(e) }); s.Explorations != 0 || s.Cache.Hits != 1 {
		t.Errorf("of seven, one and four: %d explorations, %+v", s.Explorations, s.Cache)
	}
	for pass := range 2 {
		s := another(t, dir, func(e *env) { run(1)(e); run(7)(e); run(1)(e) })
		if s.Explorations != int64(1-pass) {
			t.Errorf("of one, seven and one, pass %d: %d explorations, %+v", pass, s.Explorations, s.Cache)
		}
	}
}

// Guards on scalars also hold in the next process. Each of two plans is found for the scalars
// that it fits.
func TestGuardsOutliveTheirDevice(t *testing.T) {
	dir := t.TempDir()
	erfs := func(e *env, a, b float32) {
		x := e.host(e.place(), ir.Shape{1}, 0)
		y := e.op(ir.Add, t1(e.op(ir.Erf, t1(mul(e, x, a)))), t1(e.op(ir.Erf, t1(mul(e, x, b)))))
		e.want(y, 0)
	}
	if s := another(t, dir, func(e *env) { erfs(e, 2, 2); erfs(e, 2, 3) }); s.Explorations != 2 {
		t.Errorf("%d explorations, want one for equal scalars and one for others", s.Explorations)
	}
	s := another(t, dir, func(e *env) { erfs(e, 4, 5); erfs(e, 7, 7); erfs(e, 2, 3) })
	if s.Explorations != 0 {
		t.Errorf("%d explorations", s.Explorations)
	}
}

// A plan writes a costly result because the program needed it. The next process uses this plan
// from the start.
func TestWantsOutliveTheirDevice(t *testing.T) {
	dir := t.TempDir()
	turn := func(e *env) {
		x := e.host(e.place(), ir.Shape{2, 3}, 1, 2, 3, 4, 5, 6)
		sum := e.record(ir.Sum, nil, &ir.Attr{Axes: []int{1}, Keep: true}, t1(x))
		e.want(e.op(ir.Sub, t1(x), t1(sum)), -5, -4, -3, -11, -10, -9)
		e.want(sum, 6, 15)
	}
	if s := another(t, dir, func(e *env) { turn(e); turn(e) }); s.Explorations != 3 || s.Recomputes != 1 {
		t.Errorf("cold: %d explorations, computed again %d times", s.Explorations, s.Recomputes)
	}
	if s := another(t, dir, turn); s.Explorations != 0 || s.Recomputes != 0 {
		t.Errorf("warm: %d explorations, computed again %d times", s.Explorations, s.Recomputes)
	}
}

// Explain gives the same text for a plan from the cache.
func TestExplainOnAHit(t *testing.T) {
	dir := t.TempDir()
	var texts []string
	for range 2 {
		another(t, dir, func(e *env) {
			x := e.host(e.place(), ir.Shape{2, 3}, 1, 2, 3, 4, 5, 6)
			sum := e.record(ir.Sum, nil, &ir.Attr{Axes: []int{0}}, t1(x))
			texts = append(texts, Explain(e.record(ir.Sort, nil, &ir.Attr{Axes: []int{0}}, t1(sum))))
		})
	}
	if texts[0] != texts[1] || !strings.Contains(texts[0], "%1 = sum") {
		t.Errorf("cold:\n%s\nwarm:\n%s", texts[0], texts[1])
	}
}

// entryFiles returns the files of a cache.
func entryFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "v*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files
}

// A damaged file counts as a miss: the plan is made and written again.
func TestDamagedPlans(t *testing.T) {
	dir := t.TempDir()
	cold := another(t, dir, mixed)
	for _, cut := range []float64{0, 0.1, 0.9, 1} {
		for _, f := range entryFiles(t, dir) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if cut == 1 {
				data[len(data)/2] ^= 4
			} else {
				data = data[:int(cut*float64(len(data)))]
			}
			if err := os.WriteFile(f, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := another(t, dir, mixed)
		if s.Explorations != cold.Explorations || s.Cache.Damaged != cold.Explorations || s.Cache.Written != cold.Explorations {
			t.Errorf("cut to %v: %d explorations, %+v", cut, s.Explorations, s.Cache)
		}
	}
	if s := another(t, dir, mixed); s.Explorations != 0 {
		t.Errorf("repaired: %d explorations", s.Explorations)
	}
}

// A cache entry may have the right hash and yet no valid plan. The test removes each line of each
// plan, or changes its numbers: nothing panics, and refused plans are explored and replaced.
func TestHostilePlans(t *testing.T) {
	dir := t.TempDir()
	another(t, dir, mixed)
	refused, found := int64(0), int64(0)
	try := func(entry plancache.Entry, text string) {
		c, err := plancache.Open(dir, plancache.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Put(entry.Kind, entry.Key, []byte(text)); err != nil {
			t.Fatal(err)
		}
		c.Close()
		s := another(t, dir, mixed)
		refused += s.Cache.Refused
		found += s.Cache.Hits
	}
	c, err := plancache.Open(dir, plancache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	files, err := c.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		entry, err := c.Read(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(entry.Value), "\n")
		for i := range lines {
			for _, by := range []string{"", strings.ReplaceAll(lines[i], "1", "0"), strings.ReplaceAll(lines[i], "0", "1"), strings.ReplaceAll(lines[i], "0", "65535")} {
				if by == lines[i] || strings.HasPrefix(lines[i], "| %") && !strings.HasPrefix(lines[i], "|   |") && by != "" {
					continue // the segment's text is only for people
				}
				try(entry, strings.Join(lines[:i], "")+by+strings.Join(lines[i+1:], ""))
			}
		}
		try(entry, string(entry.Value)) // the original entry
	}
	if refused < 20 || found == 0 {
		t.Errorf("%d refused, %d found", refused, found)
	}
}

// Faults of the cache cost time and never change a result.
func TestCacheFaults(t *testing.T) {
	defer fault.Reset()
	dir := t.TempDir()
	for pass := range 30 {
		fault.SetAfter(fault.File, pass, 1+pass%3)
		s := another(t, dir, mixed)
		fault.Reset()
		if s.Fallbacks != 0 {
			t.Errorf("after %d operations: %+v", pass, s)
		}
	}
	fault.Set(fault.File, -1) // the disk is gone
	s := another(t, dir, mixed)
	fault.Reset()
	if s.Cache.Failed == 0 || s.Explorations == 0 {
		t.Errorf("%+v", s)
	}
	if s := another(t, dir, mixed); s.Explorations != 0 {
		t.Errorf("when it is back: %d explorations, %+v", s.Explorations, s.Cache)
	}
}

// A directory that is deleted during a run, or that is not writable, costs explorations and
// nothing else. The next device creates it again.
func TestCacheDeletedWhileRunning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	e := open(t, cached(dir))
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	e.want(mul(e, x, 3), 3, 6)
	if err := e.d.Wait(); err != nil {
		t.Fatal(err)
	}
	if s := e.d.Stats().Cache; s.Written == 0 {
		t.Fatalf("%+v", s)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for pass := range 2 {
		mixed(e)
		if err := e.d.Wait(); err != nil {
			t.Error(err)
		}
		if s := e.d.Stats(); s.Fallbacks != 0 || s.Cache.Failed == 0 || s.Cache.Damaged+s.Cache.Refused != 0 || pass == 1 && s.PlanHits < s.Segments/2 {
			t.Errorf("%d of %d segments hit, %+v", s.PlanHits, s.Segments, s)
		}
	}
	if err := e.d.Close(); err != nil {
		t.Error(err)
	}
	another(t, dir, mixed)
	if s := another(t, dir, mixed); s.Explorations != 0 {
		t.Errorf("%d explorations with a new directory", s.Explorations)
	}
}

// A device whose cache directory is refused has no cache. It reports this once and counts it.
func TestRefusedCache(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(dir, dir+"/link"); err != nil {
		t.Skip(err)
	}
	var told, events []string
	e := open(t, cached(dir+"/link"), func(o *device.Options) {
		o.Trace = &device.Trace{
			Error: func(err error) { told = append(told, err.Error()) },
			Cache: func(ev device.CacheEvent) { events = append(events, ev.Outcome) },
		}
	})
	mixed(e)
	if s := e.d.Stats(); s.Cache.Refused != 1 || s.Explorations == 0 || s.Cache.Written != 0 {
		t.Errorf("%+v", s)
	}
	if len(told) != 1 || !strings.Contains(told[0], "symbolic link") || !strings.Contains(told[0], plancache.Variable) || fmt.Sprint(events) != "[refused]" {
		t.Errorf("told %q, events %v", told, events)
	}
}

// withCaps is a device that reports other Caps.
type withCaps struct {
	*refdev.Device
	caps *runtime.Caps
}

func (d *withCaps) Caps() *runtime.Caps { return d.caps }

// Entries for another device or other options are not used.
func TestPlansOfOtherDevices(t *testing.T) {
	dir := t.TempDir()
	cold := another(t, dir, mixed)
	greedy := open(t, cached(dir), func(o *device.Options) { o.Fusion = device.FusionGreedy })
	mixed(greedy)
	if s := greedy.d.Stats(); s.Cache.Hits != 0 || s.Explorations != cold.Explorations {
		t.Errorf("greedy: %d explorations, %+v", s.Explorations, s.Cache)
	}
	drv := refdev.New(runtime.Config{})
	few := *drv.Caps()
	few.MaxOperands = 3
	d, err := OpenOn(&withCaps{drv, &few}, device.Options{Cache: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	mixed(&env{t, d})
	if s := d.Stats(); s.Cache.Hits != 0 {
		t.Errorf("with three operands: %+v", s.Cache)
	}
}

// hopeful is a device that is told which kernels will probably be built.
type hopeful struct {
	*refdev.Device
	expected, dropped int
}

func (d *hopeful) Expect(ks []runtime.Kernel) func() {
	d.expected += len(ks)
	return func() { d.dropped += len(ks) }
}

// A device builds the kernels of a cached plan in advance. It is told if the plan is not used
// after all.
func TestWhatAPlanPromisesIsDropped(t *testing.T) {
	dev := &hopeful{Device: refdev.New(runtime.Config{})}
	d, err := OpenOn(dev, device.Options{Device: "ref"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	halves(&env{t, d}, 5)
	e, geo := onlyGeometry(t, d)
	r := e.Record(nil)
	for _, bad := range []bool{false, true} {
		dev.expected, dev.dropped = 0, 0
		want := 0
		if bad {
			r.Plan = strings.ReplaceAll(r.Plan, "= add ", "= sub ") // the segment does not do this
		}
		seg := geo.Seg
		seg.Scalars = []segment.Scalar{{DT: ir.Float32, Bits: 1}, {DT: ir.Float32, Bits: 2}}
		plan, err := d.plans.ReadPlan(&r, &seg, false)
		if (err != nil) != bad || (plan == nil) != bad {
			t.Errorf("bad %v: %v", bad, err)
		}
		if bad {
			want = dev.expected
		}
		if dev.expected == 0 || dev.dropped != want {
			t.Errorf("bad %v: of %d kernels %d were dropped, want %d", bad, dev.expected, dev.dropped, want)
		}
	}
}
