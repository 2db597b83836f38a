package gpurun

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/runtime"
)

// negKernel is a kernel whose shader no other test uses.
const negKernel = "in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n%1 = neg %0 : float32\nstore 1 %1\n"

// shipped returns the notes of one device as another reads them from a bundle.
func shipped(d *Runner) map[string][]byte {
	list := map[string][]byte{}
	for _, n := range d.Notes() {
		list[strings.TrimPrefix(n.Key, d.caps.Scope()+"\n")] = []byte(n.Value)
	}
	return list
}

// refusals collects rejections.
type refusals struct {
	mu   sync.Mutex
	list []error
}

func (r *refusals) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, err)
}

// TestPrebuild: the next device compiles in advance the shaders that ran on the first one; a run
// then compiles nothing.
func TestPrebuild(t *testing.T) {
	first := openDevice(t, runtime.Config{})
	ranOn(t, first, copyKernel)
	ranOn(t, first, negKernel)
	ranOn(t, first, negKernel)
	entries := shipped(first)
	if len(entries) != 2 {
		t.Fatalf("%d notes of two kernels", len(entries))
	}
	var told []string
	d := openDevice(t, runtime.Config{OnCompile: func(k runtime.Kernel, _ float64, err error) { told = append(told, fmt.Sprint(k, err)) }})
	var bad refusals
	d.Prebuild(maps.All(entries), bad.add)
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	slices.Sort(told)
	if want := []string{negKernel + " <nil>", parse(t, copyKernel).String() + " <nil>"}; len(bad.list) != 0 || !slices.Equal(told, want) || d.Stats().Compiles != 2 {
		t.Fatalf("refused %v, compiled %d: %q", bad.list, d.Stats().Compiles, told)
	}
	if n := len(d.Notes()); n != 0 {
		t.Errorf("%d notes before anything ran", n)
	}
	ranOn(t, d, copyKernel)
	ranOn(t, d, negKernel)
	if n := d.Stats().Compiles; n != 2 {
		t.Errorf("%d compiles", n)
	}
	if got := shipped(d); !maps.EqualFunc(got, entries, slices.Equal) {
		t.Errorf("noted %q, want %q", got, entries)
	}
}

// TestPrebuildSorts: shaders of sorts are noted with their sort, compiled in advance like others,
// rejected if they differ from the printed text, and released.
func TestPrebuildSorts(t *testing.T) {
	sorted := func(d *Runner) *runtime.Launch {
		t.Helper()
		l := launch(t, d, sortKernel, 1, 4, 3000)
		if err := d.Run([]runtime.Launch{*l}); err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := openDevice(t, runtime.Config{})
	sorted(first)
	sorted(first)
	entries, steps := shipped(first), []string{}
	for key := range entries {
		if strings.HasPrefix(key, "sort ") {
			steps = append(steps, key)
		}
	}
	slices.Sort(steps)
	if want := []string{"sort keys float32", "sort local", "sort take", "sort wide"}; !slices.Equal(steps, want) {
		t.Fatalf("noted %q, want %q", steps, want)
	}
	if n := first.Stats().Compiles; int(n) != len(entries) {
		t.Errorf("%d compiles, %d notes", n, len(entries))
	}
	d, f := open(t, runtime.Config{})
	var bad refusals
	d.Prebuild(maps.All(entries), bad.add)
	if err := d.Wait(true); err != nil || len(bad.list) != 0 {
		t.Fatal(err, bad.list)
	}
	compiled := d.Stats().Compiles
	l := sorted(d)
	if n := d.Stats().Compiles; int(compiled) != len(entries) || n != compiled {
		t.Errorf("%d shaders of %d compiled beforehand, %d in all", compiled, len(entries), n)
	}
	if got := shipped(d); !maps.EqualFunc(got, entries, slices.Equal) {
		t.Errorf("noted %q, want %q", got, entries)
	}
	for _, v := range d.Source(l.Prog) {
		if !slices.Contains(steps, v.Class) || string(entries[v.Class]) != v.Source {
			t.Errorf("shows %q", v.Class)
		}
	}
	other := sorted(d) // another program
	for i, want := range []int{4, 0} {
		d.Forget([]runtime.Program{l.Prog, other.Prog}[i])
		d.sweep()
		got := 0
		for key := range shipped(d) {
			if strings.HasPrefix(key, "sort ") {
				got++
			}
		}
		if got != want {
			t.Errorf("%d of 2 sorts forgotten: %d notes, want %d", i+1, got, want)
		}
	}
	for _, p := range d.parts.list {
		d.Forget(p)
	}
	if d.sweep(); f.pipelines != 0 {
		t.Errorf("%d pipelines are left", f.pipelines)
	}
	// Changed entries are rejected, and compiled when they run.
	spoilt := maps.Clone(entries)
	spoilt["sort local"] = append(slices.Clone(spoilt["sort local"]), ' ')
	spoilt["sort keys int32"] = spoilt["sort keys float32"]
	spoilt["sort heap"] = spoilt["sort wide"]
	d, _ = open(t, runtime.Config{})
	d.Prebuild(maps.All(spoilt), bad.add)
	if err := d.Wait(true); err != nil || len(bad.list) != 3 || int(d.Stats().Compiles) != len(entries)-1 {
		t.Errorf("%v, refused %v, %d compiles", err, bad.list, d.Stats().Compiles)
	}
	sorted(d)
	if n := d.Stats().Compiles; int(n) != len(entries) {
		t.Errorf("%d compiles of %d", n, len(entries))
	}
}

// TestNoteLong: a shader that is too long to store runs and is not noted.
func TestNoteLong(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	ranOn(t, d, negKernel)
	k, v := parse(t, negKernel), &variant{source: strings.Repeat(" ", 1<<21)}
	d.notes.note(v, func() string { return shader.NoteKey(k, &v.Variant) })
	d.notes.forget(map[string]*variant{"": v})
	if n := len(d.Notes()); n != 1 || v.noted != notNoted {
		t.Errorf("%d notes, %q", n, v.noted)
	}
}

// TestPrebuildRefuses: a text that the printer does not write is not compiled, even if it computes
// the same; the others are.
func TestPrebuildRefuses(t *testing.T) {
	first := openDevice(t, runtime.Config{})
	ranOn(t, first, negKernel)
	for key, source := range shipped(first) {
		text := string(source)
		for name, bad := range map[string][2]string{
			"another text":    {key, strings.Replace(text, "-", "+", 1)},
			"more text":       {key, text + "\n"},
			"no text":         {key, ""},
			"another kernel":  {strings.Replace(key, "neg", "abs", 1), text},
			"another variant": {strings.Replace(key, `"Group":256`, `"Group":128`, 1), text},
			"no variant":      {key[strings.Index(key, "\n")+1:], text},
			"an absurd one":   {strings.Replace(key, `"Rank":1`, `"Rank":1000000000`, 1), text},
			"no binding":      {strings.Replace(key, `"Bindings":[`, `"Bindings":[],"X":[`, 1), text},
		} {
			if bad == [2]string{key, text} {
				t.Fatalf("%s is nothing else", name)
			}
			d := openDevice(t, runtime.Config{})
			var told refusals
			d.Prebuild(func(yield func(string, []byte) bool) {
				_ = yield(bad[0], []byte(bad[1])) && yield(key, source)
			}, told.add)
			if err := d.Wait(true); err != nil {
				t.Fatal(err)
			}
			if len(told.list) != 1 || d.Stats().Compiles != 1 {
				t.Errorf("%s: refused %v, compiled %d", name, told.list, d.Stats().Compiles)
			}
			ranOn(t, d, negKernel)
			if n := d.Stats().Compiles; n != 1 {
				t.Errorf("%s: %d compiles", name, n)
			}
		}
	}
}

// TestPrebuildEnds: there is a bound, a device being closed stops at once, and a lost device
// rejects no entries.
func TestPrebuildEnds(t *testing.T) {
	first := openDevice(t, runtime.Config{})
	ranOn(t, first, negKernel)
	entries := shipped(first)
	endless := func(each func(), read *int) func(func(string, []byte) bool) {
		return func(yield func(string, []byte) bool) {
			for {
				for key, source := range entries {
					each()
					*read++
					if !yield(key, source) {
						return
					}
				}
			}
		}
	}
	var told refusals
	d, read := openDevice(t, runtime.Config{}), 0
	d.Prebuild(endless(func() {}, &read), told.add)
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	if read != maxAhead+1 {
		t.Errorf("%d were read, the bound is %d", read, maxAhead)
	}
	d, read = openDevice(t, runtime.Config{}), 0
	begun := make(chan bool, 1)
	d.Prebuild(endless(func() {
		select {
		case begun <- true:
		default:
		}
		time.Sleep(10 * time.Millisecond)
	}, &read), told.add)
	<-begun
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if read >= maxAhead {
		t.Errorf("closing waited for %d shaders", read)
	}
	d, read = openDevice(t, runtime.Config{}), 0
	d.gpu.Lose(fmt.Errorf("a test"))
	d.Prebuild(endless(func() {}, &read), told.add)
	if err := d.Wait(true); err == nil {
		t.Error("the device did not vanish")
	}
	if read != 1 || len(told.list) != 0 {
		t.Errorf("%d were read, refused %v", read, told.list)
	}
}

// TestNotesAreForgotten: a note ends with the last program that has the shader.
func TestNotesAreForgotten(t *testing.T) {
	for forgotten, want := range []int{1, 1, 0} {
		d := openDevice(t, runtime.Config{})
		var progs []runtime.Program
		for range 2 {
			progs = append(progs, ranOn(t, d, negKernel).Prog)
		}
		for _, p := range progs[:forgotten] {
			d.Forget(p)
		}
		d.sweep()
		if got := len(d.Notes()); got != want {
			t.Errorf("%d of 2 forgotten: %d notes, want %d", forgotten, got, want)
		}
	}
}

// memoryCache is a cache of entries by kind and key.
type memoryCache struct {
	mu   sync.Mutex
	list map[string]string
	puts int // of shaders
}

// of is the number of entries of a kind.
func (c *memoryCache) of(kind string) (n int) {
	for key := range c.list {
		if strings.HasPrefix(key, kind+" ") {
			n++
		}
	}
	return n
}

func (c *memoryCache) Get(kind, key string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok := c.list[kind+" "+key]
	return []byte(value), ok
}

func (c *memoryCache) Put(kind, key string, value []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list[kind+" "+key] = string(value)
	if kind == runtime.KindShader {
		c.puts++
	}
	return nil
}

func (c *memoryCache) Refuse(string, error) {}

// fullCache stores nothing until its gate opens.
type fullCache struct {
	memoryCache
	gate    chan struct{}
	dropped int
}

func (c *fullCache) Put(kind, key string, value []byte) error {
	<-c.gate
	return c.memoryCache.Put(kind, key, value)
}

func (c *fullCache) Dropped(kind string, why error) { c.dropped++ }

// TestShadersBeforeAFullDisk: a bounded number of shaders wait, the cache is told of the others,
// and all of them run.
func TestShadersBeforeAFullDisk(t *testing.T) {
	cache := &fullCache{memoryCache: memoryCache{list: map[string]string{}}, gate: make(chan struct{})}
	d := openDevice(t, runtime.Config{Cache: cache})
	d.notes.queue.Limit = 1
	for _, op := range []string{"neg", "abs", "exp", "sin"} {
		ranOn(t, d, strings.Replace(negKernel, "neg", op, 1))
	}
	if cache.dropped < 2 { // one is being written, one waits
		t.Errorf("%d were dropped of 4", cache.dropped)
	}
	close(cache.gate)
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	if cache.puts != 4-cache.dropped || len(d.Notes()) != 4 {
		t.Errorf("%d were written, %d dropped, %d noted", cache.puts, cache.dropped, len(d.Notes()))
	}
}

// TestShadersInCache: shaders are written once, and again if the entry was changed; shaders that
// are only tried are not written.
func TestShadersInCache(t *testing.T) {
	cache := &memoryCache{list: map[string]string{}}
	for round, want := range []int{1, 1, 2} {
		d := openDevice(t, runtime.Config{Cache: cache})
		if _, err := d.Try(launch(t, d, copyKernel, 1, 100)); err != nil {
			t.Fatal(err)
		}
		if n := len(d.Notes()); n != 0 {
			t.Errorf("%d notes of what was tried", n)
		}
		ranOn(t, d, negKernel)
		if err := d.Wait(true); err != nil {
			t.Fatal(err)
		}
		notes := d.Notes()
		if len(notes) != 1 || cache.puts != want || cache.of(runtime.KindShader) != 1 {
			t.Fatalf("round %d: %d notes, written %d times, %d entries", round, len(notes), cache.puts, len(cache.list))
		}
		key := notes[0].Kind + " " + notes[0].Key
		if cache.list[key] != notes[0].Value {
			t.Errorf("round %d: %q is kept, want %q", round, cache.list[key], notes[0].Value)
		}
		if round == 1 {
			cache.list[key] += "x"
		}
	}
}
