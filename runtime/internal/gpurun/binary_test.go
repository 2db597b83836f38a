package gpurun

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/runtime"
)

// keeping is a fake that exports compiled shaders.
type keeping struct {
	*fake
	version string
	loaded  int
	fails   error // error of NewPipelineOf
}

func (k *keeping) Binary(p Pipeline) ([]byte, error) {
	return []byte(k.version + p.(*fakePipeline).source), nil
}

func (k *keeping) NewPipelineOf(data []byte, bindings []Binding) (Pipeline, error) {
	source, ok := strings.CutPrefix(string(data), k.version)
	switch {
	case k.fails != nil:
		return nil, k.fails
	case !ok:
		return nil, ErrBinary
	}
	k.loaded++
	return k.fake.NewPipeline(source, bindings)
}

func openKeeping(t *testing.T, version string, cache runtime.Cache) (*Runner, *keeping) {
	k := &keeping{fake: newFake(), version: version}
	d := New("fake", k, wgsl.Dialect, runtime.Config{Cache: cache})
	t.Cleanup(func() { _ = d.Close() })
	return d, k
}

// refusing is a cache that counts rejected entries.
type refusing struct {
	memoryCache
	refused map[string]int
}

func (c *refusing) Refuse(kind string, _ error) { c.refused[kind]++ }

// sortKernel has shaders that belong to no kernel.
const sortKernel = "in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n%1 = sort %0 : float32\nstore 1 %1\n"

// TestBinaries: the second process compiles nothing. An entry that its driver rejects is counted,
// compiled again and replaced.
func TestBinaries(t *testing.T) {
	cache := &refusing{memoryCache{list: map[string]string{}}, map[string]int{}}
	run := func(version string) (d *Runner, k *keeping) {
		d, k = openKeeping(t, version, cache)
		ranOn(t, d, negKernel)
		ranOn(t, d, negKernel)
		if err := d.Run([]runtime.Launch{*launch(t, d, sortKernel, 1, 4, 100)}); err != nil {
			t.Fatal(err)
		}
		if err := d.Wait(true); err != nil {
			t.Fatal(err)
		}
		return d, k
	}
	d, k := run("1")
	first := d.Stats().Compiles
	if first < 3 || k.loaded != 0 {
		t.Fatalf("%d compiles, %d loaded", first, k.loaded)
	}
	if d, k = run("1"); d.Stats().Compiles != 0 || int64(k.loaded) != first || len(cache.refused) != 0 {
		t.Errorf("warm: %d compiles, %d loaded of %d, refused %v", d.Stats().Compiles, k.loaded, first, cache.refused)
	}
	if d, k = run("2"); d.Stats().Compiles != first || int64(cache.refused[KindBinary]) != first {
		t.Errorf("another driver: %d compiles, refused %v, want %d", d.Stats().Compiles, cache.refused, first)
	}
	if d, k = run("2"); d.Stats().Compiles != 0 || int64(cache.refused[KindBinary]) != first {
		t.Errorf("once more: %d compiles, refused %v", d.Stats().Compiles, cache.refused)
	}
	// Changed or truncated entries do not reach the driver.
	changed := false
	for key, data := range cache.list {
		if strings.HasPrefix(key, KindBinary) {
			if changed = !changed; changed {
				cache.list[key] = data[:len(data)-1] + "x"
			} else {
				cache.list[key] = data[:10]
			}
		}
	}
	if d, k = run("2"); d.Stats().Compiles != first || int64(cache.refused[KindBinary]) != 2*first || k.loaded != 0 {
		t.Errorf("damaged: %d compiles, refused %v, %d loaded", d.Stats().Compiles, cache.refused, k.loaded)
	}
	// Bundles have no binaries: they are code.
	for _, n := range d.Notes() {
		if n.Kind != runtime.KindShader {
			t.Errorf("a note of kind %s", n.Kind)
		}
	}
}

// TestBinariesOfALostDevice: a fault of the device is not blamed on an entry.
func TestBinariesOfALostDevice(t *testing.T) {
	cache := &refusing{memoryCache{list: map[string]string{}}, map[string]int{}}
	d, _ := openKeeping(t, "1", cache)
	ranOn(t, d, negKernel)
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	d, k := openKeeping(t, "1", cache)
	k.fails = ErrLost
	l := launch(t, d, negKernel, 1, 100)
	if err := d.Run([]runtime.Launch{*l}); !errors.Is(err, runtime.ErrDeviceLost) || len(cache.refused) != 0 {
		t.Errorf("%v, refused %v", err, cache.refused)
	}
}
