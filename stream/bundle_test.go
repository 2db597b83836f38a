package stream

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/testing/refdev"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/plancache/lookup"
	"github.com/millrace-go/millrace/runtime"
)

// exported returns a bundle of everything that one device has.
func exported(t testing.TB, d *Device) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := exportOf(&buf, planstore.PlanFilter{}, []*Device{d}); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// use makes one device use a bundle, as UsePlans does for all devices.
func use(t testing.TB, d *Device, data []byte) {
	t.Helper()
	b, err := plancache.ReadBundle(data)
	if err != nil {
		t.Fatal(err)
	}
	process.Lock()
	tell := d.finder.Attach(b)
	process.Unlock()
	tell()
}

// bundleOf returns a bundle of everything that a device without a cache has after a run.
func bundleOf(t *testing.T, run func(e *env)) []byte {
	t.Helper()
	e := open(t)
	run(e)
	return exported(t, e.d)
}

// edited returns the bundle with changed entries.
func edited(t testing.TB, data []byte, edit func(e *plancache.Entry)) []byte {
	t.Helper()
	b, err := plancache.ReadBundle(data)
	if err != nil {
		t.Fatal(err)
	}
	var es []plancache.Entry
	for e, err := range b.All() {
		if err != nil {
			t.Fatal(err)
		}
		edit(&e)
		es = append(es, e)
	}
	var buf bytes.Buffer
	if err := plancache.WriteBundle(&buf, "a test", es); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// shipped runs on a new device that uses a bundle. The device has no cache unless change adds
// one.
func shipped(t *testing.T, data []byte, run func(e *env), change ...func(*device.Options)) device.Stats {
	t.Helper()
	e := open(t, change...)
	use(t, e.d, data)
	run(e)
	if err := e.d.Close(); err != nil {
		t.Error(err)
	}
	return e.d.Stats()
}

// A device with a bundle explores nothing that the bundle has, with or without a cache. It then
// exports the same bundle.
func TestBundles(t *testing.T) {
	data := bundleOf(t, mixed)
	dir := t.TempDir()
	full := another(t, dir, mixed)
	for name, change := range map[string]func(*device.Options){
		"no cache": func(*device.Options) {}, "an empty cache": cached(t.TempDir()), "a full cache": cached(dir),
	} {
		e := open(t, change)
		use(t, e.d, data)
		mixed(e)
		mixed(e)
		s := e.d.Stats()
		if s.Explorations != 0 || s.PlanHits != s.Segments || s.Cache.Bundled != full.Explorations || s.Cache.Foreign != 0 {
			t.Errorf("%s: %d explorations, %d of %d segments hit, %+v", name, s.Explorations, s.PlanHits, s.Segments, s.Cache)
		}
		if c := s.Cache; c.Hits+c.Misses+c.Written+c.Damaged+c.Refused+c.Failed != 0 {
			t.Errorf("%s: the disk was asked: %+v", name, c)
		}
		if again := exported(t, e.d); !bytes.Equal(again, data) {
			t.Errorf("%s: another bundle was exported:\n%q\n%q", name, again, data)
		}
		if err := e.d.ForeignPlans(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Explain gives the same text for a plan from a bundle.
func TestExplainOfABundle(t *testing.T) {
	var texts []string
	explain := func(e *env) {
		x := e.host(e.place(), ir.Shape{2, 3}, 1, 2, 3, 4, 5, 6)
		sum := e.record(ir.Sum, nil, &ir.Attr{Axes: []int{0}}, t1(x))
		texts = append(texts, Explain(e.record(ir.Sort, nil, &ir.Attr{Axes: []int{0}}, t1(sum))))
	}
	if s := shipped(t, bundleOf(t, explain), explain); s.Explorations != 0 {
		t.Errorf("%d explorations", s.Explorations)
	}
	if texts[0] != texts[1] || !strings.Contains(texts[0], "%1 = sum") {
		t.Errorf("explored:\n%s\nfrom a bundle:\n%s", texts[0], texts[1])
	}
}

// A step may have the iteration domain of a row op whose result is not needed. The bundle
// restores such a step as it was.
func TestBundledStepOfADeadRow(t *testing.T) {
	f := func(e *env) {
		x := e.host(e.place(), ir.Shape{1, 3}, 3, 1, 2)
		low := e.record(ir.CumMin, nil, &ir.Attr{Axes: []int{0}}, t1(x))
		w := e.host(e.place(), ir.Shape{1, 3}, 4, 5, 6)
		e.want(e.record(ir.Assign, nil, &ir.Attr{Start: []int{0, 0}, Step: []int{1, 1}}, t1(low), t1(w)), 4, 5, 6)
	}
	if s := shipped(t, bundleOf(t, f), f); s.Explorations != 0 || s.Cache.Refused != 0 {
		t.Errorf("%d explorations, %+v", s.Explorations, s.Cache)
	}
}

// A plan that is in no bundle is looked up on the disk. If it is not there either, it is explored
// and written to the disk.
func TestBundlesAndCache(t *testing.T) {
	dir := t.TempDir()
	data := bundleOf(t, func(e *env) { halves(e, 4) })
	both := func(e *env) { halves(e, 4); mixed(e) }
	cold := shipped(t, data, both, cached(dir))
	if cold.Cache.Bundled != 1 || cold.Explorations == 0 || cold.Cache.Written != cold.Explorations || cold.Cache.Misses != cold.Explorations {
		t.Errorf("cold: %d explorations, %+v", cold.Explorations, cold.Cache)
	}
	if warm := shipped(t, data, both, cached(dir)); warm.Cache.Bundled != 1 || warm.Explorations != 0 || warm.Cache.Hits != cold.Explorations {
		t.Errorf("warm: %d explorations, %+v", warm.Explorations, warm.Cache)
	}
}

// Guards, wanted results and other sizes work as with a cache.
func TestBundledPlansFit(t *testing.T) {
	erfs := func(e *env, a, b float32) {
		x := e.host(e.place(), ir.Shape{1}, 0)
		e.want(e.op(ir.Add, t1(e.op(ir.Erf, t1(mul(e, x, a)))), t1(e.op(ir.Erf, t1(mul(e, x, b))))), 0)
	}
	costly := func(e *env) {
		x := e.host(e.place(), ir.Shape{2, 3}, 1, 2, 3, 4, 5, 6)
		sum := e.record(ir.Sum, nil, &ir.Attr{Axes: []int{1}, Keep: true}, t1(x))
		e.want(e.op(ir.Sub, t1(x), t1(sum)), -5, -4, -3, -11, -10, -9)
		e.want(sum, 6, 15)
	}
	data := bundleOf(t, func(e *env) { erfs(e, 2, 2); erfs(e, 2, 3); costly(e); costly(e); halves(e, 4) })
	s := shipped(t, data, func(e *env) {
		erfs(e, 4, 5)
		erfs(e, 7, 7)
		erfs(e, 2, 3)
		costly(e)
		halves(e, 9)
	})
	if s.Explorations != 0 || s.Recomputes != 0 {
		t.Errorf("%d explorations, computed again %d times, %+v", s.Explorations, s.Recomputes, s.Cache)
	}
	only := bundleOf(t, func(e *env) { erfs(e, 2, 2) })
	if s := shipped(t, only, func(e *env) { erfs(e, 2, 2); erfs(e, 2, 3) }); s.Explorations != 1 {
		t.Errorf("%d explorations for scalars that the only plan is not for", s.Explorations)
	}
}

// A temporary plan that turned out to be the best one is exported as the best. The export waits
// for the search if a temporary plan may still be replaced.
func TestExportWaitsForSearches(t *testing.T) {
	e := open(t, func(o *device.Options) { o.Explore = device.ExploreBackground })
	e.d.plans.Quick = 1
	mixed(e)
	s := shipped(t, exported(t, e.d), mixed)
	if s.Explorations != 0 {
		t.Errorf("%d explorations, %+v", s.Explorations, s.Cache)
	}
	if e.d.Stats().Searches == 0 {
		t.Error("nothing was searched for in the background")
	}
}

// UsePlans reaches the devices opened before and after it. A bundle given twice counts once.
func TestUsePlans(t *testing.T) {
	defer ForgetBundles()
	data := bundleOf(t, mixed)
	early := open(t)
	for range 2 {
		if err := UsePlans(bytes.Clone(data)); err != nil {
			t.Fatal(err)
		}
	}
	late := open(t)
	for _, e := range []*env{early, late} {
		mixed(e)
		if s := e.d.Stats(); s.Explorations != 0 || s.Cache.Bundled == 0 || len(e.d.finder.Sources()) != 1 {
			t.Errorf("%d explorations, %+v", s.Explorations, s.Cache)
		}
	}
	var buf bytes.Buffer
	if err := ExportPlans(&buf, planstore.PlanFilter{Device: "ref"}); err != nil || buf.Len() == 0 {
		t.Errorf("%d bytes, %v", buf.Len(), err)
	}
	ForgetBundles()
	gone := open(t)
	mixed(gone)
	if s := gone.d.Stats(); s.Explorations == 0 || s.Cache.Bundled != 0 {
		t.Errorf("forgotten: %+v", s.Cache)
	}
}

// TestUsePlansWithNotes checks a bundle of an earlier version, in which notes of kernels are beside
// the plans. It is used without an error, and the notes are not exported again.
func TestUsePlansWithNotes(t *testing.T) {
	defer ForgetBundles()
	data := bundleOf(t, mixed)
	b, err := plancache.ReadBundle(data)
	if err != nil {
		t.Fatal(err)
	}
	es := []plancache.Entry{{Kind: lookup.KindKernel, Key: "device=ref\nccc\nkernel"}, {Kind: lookup.KindKernel, Key: "device=cpu\nccc\nkernel"}}
	for e, err := range b.All() {
		if err != nil {
			t.Fatal(err)
		}
		es = append(es, e)
	}
	var buf bytes.Buffer
	if err := plancache.WriteBundle(&buf, "a test", es); err != nil {
		t.Fatal(err)
	}
	if err := UsePlans(buf.Bytes()); err != nil {
		t.Error(err)
	}
	e := open(t)
	mixed(e)
	if s := e.d.Stats(); s.Explorations != 0 || s.Cache.Bundled == 0 || s.Cache.Foreign != 0 {
		t.Errorf("%d explorations, %+v", s.Explorations, s.Cache)
	}
	if err := e.d.ForeignPlans(); err != nil {
		t.Error(err)
	}
	if again := exported(t, e.d); !bytes.Equal(again, data) {
		t.Errorf("exported\n%q\nnot\n%q", again, data)
	}
}

// Data that is not a bundle gives an error and has no other effect.
func TestUsePlansErrors(t *testing.T) {
	defer ForgetBundles()
	data := bundleOf(t, mixed)
	old := edited(t, data, func(e *plancache.Entry) { e.Key = strings.Replace(e.Key, "fusion=", "fusion=0", 1) })
	code := edited(t, data, func(e *plancache.Entry) { e.Kind = "object" })
	for _, c := range []struct {
		what string
		data []byte
		says string
	}{
		{"nothing", nil, "bundle of 0 bytes"},
		{"text", []byte("hello, this is no bundle at all, I am afraid"), "does not begin as a bundle does"},
		{"cut", data[:len(data)-1], "length"},
		{"another version", old, "plans of version 0" + fusion.Version()},
		{"code", code, "may not hold entries of kind object"},
	} {
		err := UsePlans(c.data)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.what, err, c.says)
		}
	}
	e := open(t)
	mixed(e)
	if s := e.d.Stats(); s.Explorations == 0 || s.Cache.Bundled != 0 || s.Cache.Foreign == 0 {
		t.Errorf("%d explorations, %+v", s.Explorations, s.Cache)
	}
}

// Entries for another version, another adapter or another mode are counted and not used, and the
// error gives the reason. Entries of another driver are ignored.
func TestForeignPlans(t *testing.T) {
	data := bundleOf(t, mixed)
	n := int64(0)
	edited(t, data, func(*plancache.Entry) { n++ })
	for _, c := range []struct {
		what, from, to string
		says           string
	}{
		{"version", "fusion=", "fusion=0", "plans of version 0"},
		{"adapter", "bandwidth=1e+10", "bandwidth=2e+11", "moves 2e+11 bytes a second"},
		{"limits", "operands=32", "operands=33", "up to 33 operands, here 32"},
		{"mode", "mode=best", "mode=greedy", "mode greedy"},
	} {
		var told []string
		faults := 0
		e := open(t, func(o *device.Options) {
			o.Trace = &device.Trace{
				Cache: func(ev device.CacheEvent) { told = append(told, fmt.Sprint(ev.Kind, " ", ev.Outcome, ": ", ev.Err)) },
				Error: func(error) { faults++ },
			}
		})
		use(t, e.d, edited(t, data, func(e *plancache.Entry) {
			key := strings.Replace(e.Key, c.from, c.to, 1)
			if key == e.Key {
				t.Fatalf("no %q in %q", c.from, e.Key)
			}
			e.Key = key
		}))
		mixed(e)
		s := e.d.Stats()
		if s.Cache.Foreign != n || s.Cache.Bundled != 0 || s.Explorations != n {
			t.Errorf("%s: %d explorations, %+v", c.what, s.Explorations, s.Cache)
		}
		if len(told) != 1 || !strings.HasPrefix(told[0], "plan foreign: ") || !strings.Contains(told[0], c.says) || faults != 0 {
			t.Errorf("%s: told %q, %d faults", c.what, told, faults)
		}
		if err := e.d.ForeignPlans(); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), fmt.Sprint(n, " entries of kind plan")) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	other := edited(t, data, func(e *plancache.Entry) { e.Key = strings.Replace(e.Key, "device=ref", "device=abacus", 1) })
	if s := shipped(t, other, mixed); s.Cache.Foreign != 0 || s.Cache.Bundled != 0 || s.Explorations != n {
		t.Errorf("another driver: %d explorations, %+v", s.Explorations, s.Cache)
	}
}

// Plans made under lower limits are used under higher limits.
func TestPlansOfLowerLimits(t *testing.T) {
	drv := refdev.New(runtime.Config{})
	few := *drv.Caps()
	few.MaxOperands, few.MaxScalars, few.MaxBody = 4, 5, 100
	d, err := OpenOn(&withCaps{drv, &few}, device.Options{Explore: device.ExploreWait})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	mixed(&env{t, d})
	s := shipped(t, exported(t, d), mixed)
	if s.Explorations != 0 || s.Cache.Bundled == 0 || s.Cache.Foreign != 0 {
		t.Errorf("%d explorations, %+v", s.Explorations, s.Cache)
	}
}

// A changed byte in the body of a bundle costs time and is counted. It never changes a value.
func TestDamagedBundles(t *testing.T) {
	data := bundleOf(t, mixed)
	b, err := plancache.ReadBundle(data)
	if err != nil {
		t.Fatal(err)
	}
	bodies := 0
	for e := range b.All() {
		_, rest := plancache.SplitKey(e.Key)
		bodies += len(rest) + len(e.Value)
	}
	for i := len(data) - bodies; i < len(data); i += 41 {
		bad := bytes.Clone(data)
		bad[i] ^= 0x20
		s := shipped(t, bad, mixed)
		if s.Explorations != 1 || s.Cache.Damaged != 1 || s.Cache.Bundled != int64(b.Len()-1) || s.Fallbacks != 0 {
			t.Errorf("byte %d: %d explorations, %+v", i, s.Explorations, s.Cache)
		}
	}
}

// A bundle may have the right hashes and yet no valid plans. The test removes each line of each
// plan, or changes its numbers: nothing panics, the values are right, and refused plans are
// explored.
func TestHostileBundles(t *testing.T) {
	data := bundleOf(t, mixed)
	b, err := plancache.ReadBundle(data)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	var values [][]string
	for e := range b.All() {
		keys = append(keys, e.Key)
		values = append(values, strings.SplitAfter(string(e.Value), "\n"))
	}
	refused, explored := int64(0), int64(0)
	for k := range keys {
		for i, line := range values[k] {
			for _, by := range []string{"", strings.ReplaceAll(line, "1", "0"), strings.ReplaceAll(line, "0", "1"), strings.ReplaceAll(line, "0", "65535")} {
				if by == line || strings.HasPrefix(line, "| %") && by != "" {
					continue // the segment's text is only for people
				}
				s := shipped(t, edited(t, data, func(e *plancache.Entry) {
					if e.Key == keys[k] {
						e.Value = []byte(strings.Join(values[k][:i], "") + by + strings.Join(values[k][i+1:], ""))
					}
				}), mixed)
				refused += s.Cache.Refused
				explored += s.Explorations
			}
		}
	}
	if refused < 20 || explored < refused {
		t.Errorf("%d refused, %d explored", refused, explored)
	}
	swapped := edited(t, data, func(e *plancache.Entry) { // each plan is that of another segment
		e.Value = []byte(strings.Join(values[(slices.Index(keys, e.Key)+1)%len(keys)], ""))
	})
	if s := shipped(t, swapped, mixed); s.Cache.Refused == 0 {
		t.Errorf("plans of other segments: %+v", s.Cache)
	}
}

// Tunings are shipped like plans. Tunings for another processor are foreign, and tunings with
// choices that the device does not have are refused.
func TestBundledTunings(t *testing.T) {
	takes := []time.Duration{10 * tms, 12 * tms, 7 * tms}
	first := openTunable(t, &tunable{takes: takes}, nil)
	halves(first, 5)
	data := exported(t, first.d)
	run := func(data []byte, dev *tunable) device.Stats {
		t.Helper()
		e := openTunable(t, dev, nil)
		use(t, e.d, data)
		halves(e, 5)
		return e.d.Stats()
	}
	dev := &tunable{takes: takes}
	if s := run(data, dev); s.Tunings != 0 || s.Explorations != 0 || s.Cache.Bundled != 2 || dev.tries != 0 || !slices.Equal(dev.taken(), []uint64{2}) {
		t.Errorf("%d tunings, %d tries, %+v", s.Tunings, dev.tries, s.Cache)
	}
	if s := run(data, &tunable{takes: takes[:2]}); s.Tunings != 1 || s.Cache.Refused != 1 {
		t.Errorf("other candidates: %d tunings, %+v", s.Tunings, s.Cache)
	}
	elsewhere := edited(t, data, func(e *plancache.Entry) { e.Key = strings.Replace(e.Key, "fingerprint ref", "fingerprint fer", 1) })
	if s := run(elsewhere, &tunable{takes: takes}); s.Tunings != 1 || s.Cache.Foreign != 1 || s.Explorations != 0 {
		t.Errorf("another processor: %d tunings, %+v", s.Tunings, s.Cache)
	}
	off := shipped(t, elsewhere, func(e *env) { halves(e, 5) }, func(o *device.Options) { o.Tune = device.TuneOff })
	if off.Cache.Foreign != 0 || off.Explorations != 0 {
		t.Errorf("without tuning: %+v", off.Cache)
	}
}

// A filter chooses devices, and it also applies to the entries of a cache directory.
func TestExportFilter(t *testing.T) {
	dir := t.TempDir()
	another(t, dir, mixed)
	if err := os.WriteFile(filepath.Join(dir, "v1", "plan-0000000000000000"), []byte("no entry"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := open(t)
	halves(e, 4)
	export := func(f planstore.PlanFilter) (int, error) {
		t.Helper()
		var buf bytes.Buffer
		if err := exportOf(&buf, f, []*Device{e.d}); err != nil {
			return 0, err
		}
		b, err := plancache.ReadBundle(buf.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		return b.Len(), nil
	}
	inDir := len(entryFiles(t, dir)) - 1
	for _, c := range []struct {
		f    planstore.PlanFilter
		want int
	}{
		{planstore.PlanFilter{}, 1},
		{planstore.PlanFilter{Device: "ref"}, 1},
		{planstore.PlanFilter{Cache: dir}, 1 + inDir},
		{planstore.PlanFilter{Device: "ref", Cache: dir}, 1 + inDir},
		{planstore.PlanFilter{Cache: dir, Since: time.Now().Add(-2 * time.Hour)}, 1 + inDir},
		{planstore.PlanFilter{Cache: dir, Since: time.Now().Add(time.Hour)}, 1},
	} {
		if n, err := export(c.f); n != c.want || err != nil {
			t.Errorf("%+v: %d entries, %v, want %d", c.f, n, err, c.want)
		}
	}
	for _, f := range []planstore.PlanFilter{{Device: "cpu"}, {Device: "cpu", Cache: dir}} {
		if n, err := export(f); !errors.Is(err, planstore.ErrNoPlans) {
			t.Errorf("%+v: %d entries, %v", f, n, err)
		}
	}
	if n, err := export(planstore.PlanFilter{Cache: filepath.Join(dir, "none")}); err == nil || !strings.Contains(err.Error(), "no cache in") {
		t.Errorf("no such directory: %d entries, %v", n, err)
	}
	var buf bytes.Buffer
	if err := planstore.ExportPlans(&buf, planstore.PlanFilter{Cache: dir}, nil); err != nil {
		t.Fatal(err)
	}
	if s := shipped(t, buf.Bytes(), mixed); s.Explorations != 0 {
		t.Errorf("from a directory alone: %d explorations, %+v", s.Explorations, s.Cache)
	}
}

// Entries of a directory that the process did not use are exported too, each plan once.
func TestExportMerges(t *testing.T) {
	dir := t.TempDir()
	erfs := func(a, b float32) func(e *env) {
		return func(e *env) {
			x := e.host(e.place(), ir.Shape{1}, 0)
			e.want(e.op(ir.Add, t1(e.op(ir.Erf, t1(mul(e, x, a)))), t1(e.op(ir.Erf, t1(mul(e, x, b))))), 0)
		}
	}
	another(t, dir, func(e *env) { erfs(2, 2)(e); erfs(2, 3)(e) })
	e := open(t, cached(dir))
	erfs(2, 3)(e)
	for _, devices := range [][]*Device{{e.d}, nil} {
		var buf bytes.Buffer
		if err := exportOf(&buf, planstore.PlanFilter{Cache: dir}, devices); err != nil {
			t.Fatal(err)
		}
		edited(t, buf.Bytes(), func(e *plancache.Entry) {
			if rs, err := fusion.ParseRecords(string(e.Value)); err != nil || len(rs) != 2 {
				t.Errorf("%d records, %v", len(rs), err)
			}
		})
		if s := shipped(t, buf.Bytes(), func(e *env) { erfs(4, 4)(e); erfs(4, 5)(e) }); s.Explorations != 0 {
			t.Errorf("%d explorations, %+v", s.Explorations, s.Cache)
		}
	}
}

// BenchmarkOpenWithBundle opens a device with a bundle of 1,000 plans, and a device without one.
func BenchmarkOpenWithBundle(b *testing.B) {
	defer ForgetBundles()
	e := device.Options{Device: "ref"}
	d, err := Open(e)
	if err != nil {
		b.Fatal(err)
	}
	scope := d.finder.Scope
	d.Close()
	var es []plancache.Entry
	for i := range 1000 {
		es = append(es, plancache.Entry{Kind: lookup.KindPlan, Key: plancache.JoinKey(scope, fmt.Sprint(i)), Value: make([]byte, 8<<10)})
	}
	var buf bytes.Buffer
	if err := plancache.WriteBundle(&buf, "", es); err != nil {
		b.Fatal(err)
	}
	for _, with := range []bool{false, true} {
		b.Run(fmt.Sprint(with), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if with {
					if err := UsePlans(buf.Bytes()); err != nil {
						b.Fatal(err)
					}
				}
				d, err := Open(e)
				if err != nil {
					b.Fatal(err)
				}
				d.Close()
				ForgetBundles()
			}
		})
	}
}

// TestBundleHammer opens, runs and closes devices, gives them bundles and exports bundles, all at
// the same time.
func TestBundleHammer(t *testing.T) {
	defer ForgetBundles()
	data := bundleOf(t, mixed)
	other := bundleOf(t, func(e *env) { halves(e, 4) })
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 20 {
				e := open(t)
				switch (g + i) % 4 {
				case 0:
					if err := UsePlans(data); err != nil {
						t.Error(err)
					}
				case 1:
					if err := UsePlans(other); err != nil {
						t.Error(err)
					}
				case 2:
					ForgetBundles()
				}
				mixed(e)
				halves(e, 4+i)
				var buf bytes.Buffer
				if err := ExportPlans(&buf, planstore.PlanFilter{}); err != nil {
					t.Error(err)
				}
				if _, err := plancache.ReadBundle(buf.Bytes()); err != nil {
					t.Error(err)
				}
				if s := e.d.Stats(); s.Explorations+s.Cache.Bundled < 3 || s.Cache.Damaged+s.Cache.Refused+s.Cache.Foreign != 0 {
					t.Errorf("%d explorations, %+v", s.Explorations, s.Cache)
				}
				e.d.Close()
			}
		})
	}
	all.Wait()
}
