//go:build cgo && unix

package cpu

import (
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/runtime"
)

// runCached runs one kernel on a new device and closes it.
func runCached(t *testing.T, cache *mapCache) runtime.Stats {
	t.Helper()
	d, err := open(byC(runtime.Config{Compile: runtime.CompileWait, Threads: 1, Cache: cache, OnError: func(err error) { t.Error(err) }}))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	k := scaled(t)
	h := kernels.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{100}, 1, kernels.Dense)
	compare(t, "from the cache", k, onDevice(t, d, k, h), reference(t, k, h))
	if err := d.Wait(true); err != nil {
		t.Error(err)
	}
	return d.Stats()
}

// TestObjectsOutliveTheDevice checks that the next device loads a compiled object without a
// compiler.
func TestObjectsOutliveTheDevice(t *testing.T) {
	needCompiler(t)
	cache := &mapCache{entries: map[string][]byte{}}
	if s := runCached(t, cache); s.Compiles != 1 || len(cache.entries) != 2 || cache.hits != 0 {
		t.Fatalf("cold: %d compiles, %d entries, %d hits", s.Compiles, len(cache.entries), cache.hits)
	}
	fault.Set(fault.Compile, -1)
	defer fault.Reset()
	s := runCached(t, cache)
	if s.Compiles != 0 || s.CompileFails != 0 || s.Tier0 != 0 || s.Fallbacks != 0 || cache.hits != 2 || cache.refused != 0 {
		t.Errorf("warm: %+v, %d hits, %d refused", s, cache.hits, cache.refused)
	}
}

// cut returns the first half of the object in a cache.
func cut(c *mapCache) []byte {
	for key, value := range c.entries {
		if strings.HasPrefix(key, "object") {
			return value[:len(value)/2]
		}
	}
	return nil
}

// TestRefusedObjects checks that an entry that is no object, or one with wrong arithmetic, is
// refused and compiled again, and that unknown flags are refused.
func TestRefusedObjects(t *testing.T) {
	cc, dir := strings.Fields(needCompiler(t)), t.TempDir()
	object := func(source string) []byte {
		path := filepath.Join(dir, "x.so")
		args := append(cc[1:len(cc):len(cc)], "-fPIC", "-shared", "-x", "c", "-o", path, "-")
		cmd := exec.CommandContext(t.Context(), cc[0], args...)
		cmd.Stdin = strings.NewReader(source)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	good := &mapCache{entries: map[string][]byte{}}
	runCached(t, good)
	for name, bad := range map[string][]byte{
		"empty":     nil,
		"rubbish":   []byte("rubbish"),
		"contracts": object("int mr_probe(void) { return 1; } void mr_kernel(void) {}"),
		"cut short": cut(good),
		"another":   object("int mr_probe(void) { return 0; } void mr_other(void) {}"),
	} {
		cache := &mapCache{entries: maps.Clone(good.entries)}
		for key := range cache.entries {
			if strings.HasPrefix(key, "object") {
				cache.entries[key] = bad
			}
		}
		if s := runCached(t, cache); s.Compiles != 1 || s.CompileFails != 0 || cache.refused != 1 {
			t.Errorf("%s: %d compiles, %d refused", name, s.Compiles, cache.refused)
		}
		if s := runCached(t, cache); s.Compiles != 0 {
			t.Errorf("%s: %d compiles after it was replaced", name, s.Compiles)
		}
	}
	for _, flags := range []string{"", "x", "-1 12", "3 12", "-fplugin=x"} {
		cache := &mapCache{entries: maps.Clone(good.entries)}
		for key := range cache.entries {
			if strings.HasPrefix(key, "compiler") {
				cache.entries[key] = []byte(flags)
			}
		}
		if s := runCached(t, cache); s.Compiles != 0 || cache.refused != 1 {
			t.Errorf("flags %q: %d compiles, %d refused", flags, s.Compiles, cache.refused)
		}
	}
}
