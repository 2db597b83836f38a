package gputest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// testEngineWarm: the second pass of a program explores and compiles nothing. If the driver exports
// binaries, the next process compiles nothing at all; else it compiles the shaders before they are
// requested. Damaged files on disk are misses.
func testEngineWarm(t *testing.T) {
	dir := t.TempDir()
	data := make([]float32, 6*32)
	for i := range data {
		data[i] = float32(i*7%13) / 4
	}
	pass := func(d *millrace.Device) []float32 {
		t.Helper()
		x := millrace.FromSliceOn(d, data, 6, 32)
		v := values(t, x.Sub(x.MeanKeep(1)).Softmax(1).MulScalar(3).Sort(1).MatMul(x.T()))
		return v
	}
	opened := func() *millrace.Device {
		t.Helper()
		d, err := millrace.Open(under.device("tune=off,explore=wait,cache=" + dir))
		if err != nil {
			missing(t, err)
		}
		return d
	}
	process := func() (d *millrace.Device, first, second []float32) {
		t.Helper()
		d = opened()
		first = pass(d)
		before := d.Stats()
		second = pass(d)
		if s := d.Stats(); s.Explorations != before.Explorations || s.Runtime.Compiles != before.Runtime.Compiles {
			t.Errorf("the second pass: %d explorations, %d compiles", s.Explorations-before.Explorations, s.Runtime.Compiles-before.Runtime.Compiles)
		}
		must(t, d.Wait())
		return d, first, second
	}
	d, want, again := process()
	cold := d.Stats().Runtime.Compiles
	d.Close()
	if cold == 0 || !slices.Equal(want, again) {
		t.Errorf("%d compiles, %v and %v", cold, want, again)
	}
	g, err := under.Open("")
	if err != nil {
		missing(t, err)
	}
	defer g.Close()
	if _, ok := g.(gpurun.Keeper); !ok {
		d := opened()
		defer d.Close()
		must(t, d.Wait())
		ahead := d.Stats().Runtime.Compiles
		got := pass(d)
		if s := d.Stats(); ahead != cold || s.Runtime.Compiles != ahead || !slices.Equal(got, want) {
			t.Errorf("%d of %d shaders were compiled beforehand, %d in all, %v, want %v", ahead, cold, s.Runtime.Compiles, got, want)
		}
		return
	}
	d, got, _ := process()
	if s := d.Stats(); s.Runtime.Compiles != 0 || s.Explorations != 0 || !slices.Equal(got, want) {
		t.Errorf("warm: %d compiles, %d explorations, %v, want %v", s.Runtime.Compiles, s.Explorations, got, want)
	}
	d.Close()
	damage(t, dir)
	d, got, _ = process()
	if s := d.Stats(); s.Runtime.Compiles != cold || s.Cache.Damaged == 0 || !slices.Equal(got, want) {
		t.Errorf("damaged: %d compiles of %d, %+v", s.Runtime.Compiles, cold, s.Cache)
	}
	d.Close()
}

// damage changes a byte of every binary of a cache.
func damage(t *testing.T, dir string) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, f os.DirEntry, err error) error {
		if err != nil || f.IsDir() || !strings.HasPrefix(filepath.Base(path), gpurun.KindBinary) {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n++
		b[len(b)-len(b)/4] ^= 1
		return os.WriteFile(path, b, 0o600)
	})
	if err != nil || n == 0 {
		t.Fatalf("%d binaries damaged, %v", n, err)
	}
}
