package gpurun

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/runtime"
)

// process runs kernels, one after another, on a device that it then closes.
func process(t *testing.T, cache runtime.Cache, ops ...string) {
	t.Helper()
	d, _ := open(t, runtime.Config{Cache: cache})
	for _, op := range ops {
		ranOn(t, d, opKernel(op))
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// madeFor returns the ops of the shaders that a fake compiled.
func madeFor(f *fake) (ops []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for source := range f.made {
		for _, op := range []string{"sqrt", "abs", "exp", "ceil"} {
			if strings.Contains(source, op+"(") {
				ops = append(ops, op)
			}
		}
	}
	slices.Sort(ops)
	return ops
}

func newRefusing() *refusing {
	return &refusing{memoryCache{list: map[string]string{}}, map[string]int{}}
}

// TestAhead: a device with a cache compiles in advance the shaders that the program ran last time,
// and no others of the cache.
func TestAhead(t *testing.T) {
	cache := newRefusing()
	for round, c := range []struct {
		ahead, runs []string
		compiles    int64 // in addition to those made in advance
	}{
		{nil, []string{"sqrt", "abs", "exp"}, 3},
		{[]string{"abs", "exp", "sqrt"}, []string{"sqrt", "abs"}, 0}, // less than before
		{[]string{"abs", "sqrt"}, []string{"exp", "ceil"}, 2},        // something else, all of it known
		{[]string{"ceil", "exp"}, nil, 0},                            // nothing: the entry stays
		{[]string{"ceil", "exp"}, []string{"exp", "ceil", "abs"}, 1},
		{[]string{"abs", "ceil", "exp"}, []string{"exp"}, 0},
	} {
		var told int
		d, f := open(t, runtime.Config{Cache: cache, OnCompile: func(runtime.Kernel, float64, error) { told++ }})
		if err := d.Wait(true); err != nil {
			t.Fatal(err)
		}
		if got := madeFor(f); !slices.Equal(got, c.ahead) || told != len(c.ahead) || f.Backlog() != 0 {
			t.Errorf("round %d: compiled for %v and told of %d, want %v", round, got, told, c.ahead)
		}
		before := d.Stats().Compiles
		for _, op := range c.runs {
			ranOn(t, d, opKernel(op))
		}
		if n := d.Stats().Compiles - before; n != c.compiles {
			t.Errorf("round %d: %d compiles, want %d", round, n, c.compiles)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(cache.refused) > 0 {
		t.Errorf("refused %v", cache.refused)
	}
	if d, f := open(t, runtime.Config{}); d.Wait(true) != nil || len(f.made) > 0 {
		t.Errorf("without a cache %d shaders were compiled", len(f.made))
	}
}

// TestAheadUnclosed: a process that does not close its device writes its list as soon as it differs
// from the last one.
func TestAheadUnclosed(t *testing.T) {
	cache := newRefusing()
	process(t, cache, "sqrt", "abs", "exp")
	order := func(d *Runner) string {
		t.Helper()
		if err := d.Wait(true); err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, key := range d.notes.readOrder() {
			_, kernel, _ := strings.Cut(key, "%1 = ")
			op, _, _ := strings.Cut(kernel, " ")
			words = append(words, op)
		}
		return strings.Join(words, " ")
	}
	d := openDevice(t, runtime.Config{Cache: cache})
	for _, step := range [][2]string{{"sqrt", "sqrt abs exp"}, {"abs", "sqrt abs exp"}, {"ceil", "sqrt abs ceil"}, {"exp", "sqrt abs ceil exp"}, {"abs", "sqrt abs ceil exp"}} {
		ranOn(t, d, opKernel(step[0]))
		if got := order(d); got != step[1] {
			t.Errorf("after %s: %q, want %q", step[0], got, step[1])
		}
	}
}

// TestAheadEnds: compiling in advance ends with the first Run, which waits for no shader that it
// does not need.
func TestAheadEnds(t *testing.T) {
	cache := newRefusing()
	process(t, cache, "sqrt", "abs", "exp")
	f := newFake()
	g, opened := shut(t, f, "sqrt(")
	d := New("fake", f, openDevice(t, runtime.Config{}).lang, runtime.Config{Cache: cache})
	defer d.Close()
	<-g.arrived
	soon(t, "a Run", func() { ranOn(t, d, opKernel("exp")) })
	opened()
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	if got := madeFor(f); !slices.Equal(got, []string{"exp", "sqrt"}) {
		t.Errorf("compiled for %v: it went on behind the first Run", got)
	}
}

// TestAheadRefuses: invalid lists of keys, and texts that the printer does not write, are counted
// and compiled when they run.
func TestAheadRefuses(t *testing.T) {
	many, _ := json.Marshal(make([]string, maxAhead+1))
	for _, list := range []string{"", "{", `{"a":1}`, `[1,2]`, string(many), `["` + strings.Repeat("x", maxAheadBytes) + `"]`} {
		cache := newRefusing()
		process(t, cache, "sqrt")
		for key := range cache.list {
			if strings.HasPrefix(key, KindAhead+" ") {
				cache.list[key] = list
			}
		}
		d, f := open(t, runtime.Config{Cache: cache})
		if err := d.Wait(true); err != nil || cache.refused[KindAhead] != 1 || len(f.made) != 0 {
			t.Errorf("%.20q: %v, refused %v, %d compiled", list, err, cache.refused, len(f.made))
		}
		ranOn(t, d, opKernel("sqrt"))
		if err := d.Wait(true); err != nil || len(d.notes.readOrder()) != 1 {
			t.Errorf("%.20q: it was not replaced", list)
		}
	}
	cache := newRefusing()
	process(t, cache, "sqrt", "abs")
	for key, text := range cache.list {
		if strings.HasPrefix(key, runtime.KindShader+" ") && strings.Contains(text, "sqrt(") {
			cache.list[key] = text + " "
		}
	}
	d, f := open(t, runtime.Config{Cache: cache})
	if err := d.Wait(true); err != nil || cache.refused[runtime.KindShader] != 1 || !slices.Equal(madeFor(f), []string{"abs"}) {
		t.Errorf("%v, refused %v, compiled for %v", err, cache.refused, madeFor(f))
	}
}

// TestAheadBound: of a program with very many shaders the first are stored.
func TestAheadBound(t *testing.T) {
	cache := newRefusing()
	d, _ := open(t, runtime.Config{Cache: cache})
	for n := range maxAhead + 20 {
		d.notes.tellNext(fmt.Sprint(n))
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if keys := d.notes.readOrder(); len(keys) != maxAhead || keys[0] != "0" {
		t.Errorf("%d keys", len(keys))
	}
	for n := range 4 {
		d.notes.order = append(d.notes.order[:n], strings.Repeat(fmt.Sprint(n), maxAheadBytes/3))
	}
	d.notes.saveOrder()
	if keys := d.notes.readOrder(); len(keys) != 2 || keys[0][0] != '0' {
		t.Errorf("%d long keys", len(keys))
	}
}

// TestAheadOfBinaries: the driver's binaries are loaded when a Run needs them.
func TestAheadOfBinaries(t *testing.T) {
	cache := newRefusing()
	for round := range 2 {
		d, k := openKeeping(t, "1", cache)
		if err := d.Wait(true); err != nil || k.loaded+len(k.made) != 0 {
			t.Errorf("round %d: %v, %d loaded, %d compiled beforehand", round, err, k.loaded, len(k.made))
		}
		ranOn(t, d, opKernel("sqrt"))
		if err := d.Close(); err != nil || k.loaded != round {
			t.Errorf("round %d: %v, %d loaded", round, err, k.loaded)
		}
	}
}
