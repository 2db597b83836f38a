package apitest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/stream"
)

// TestShippedPlans: a process with the plans of another one explores nothing, with an empty cache
// and without one, with other threads and with compiled kernels, and computes the same.
func TestShippedPlans(t *testing.T) {
	bundle := filepath.Join(t.TempDir(), "app.plans")
	recorded := process(t, "cpu:compile=off,cache=off", chainExports+"="+bundle)
	if recorded.Stats.Explorations == 0 {
		t.Fatalf("%+v", recorded.Stats)
	}
	for _, spec := range []string{
		"cpu:compile=off,cache=off",
		"cpu:compile=off,cache=" + t.TempDir(),
		"cpu:threads=1,compile=off,cache=off",
		"cpu:compile=wait,cache=off",
		"cpu:cache=off",
	} {
		t.Run(spec, func(t *testing.T) {
			r := process(t, spec, chainUses+"="+bundle)
			s := r.Stats
			if s.Explorations != 0 || s.PlanHits != s.Segments || s.Cache.Bundled == 0 || s.Cache.Foreign+s.Cache.Damaged+s.Cache.Refused != 0 {
				t.Errorf("%d explorations, %d of %d segments hit, %+v", s.Explorations, s.PlanHits, s.Segments, s.Cache)
			}
			if !slices.Equal(r.Values, recorded.Values) {
				t.Error("values differ with and without the bundle")
			}
			t.Logf("open %v first %v hot %v, %d compiles", r.Open, r.First, r.Hot, s.Runtime.Compiles)
		})
	}
	if s := process(t, "cpu:compile=off,fusion=greedy,cache=off", chainUses+"="+bundle).Stats; s.Cache.Foreign == 0 || s.Cache.Bundled != 0 {
		t.Errorf("another mode: %+v", s.Cache)
	}
}

// TestRandomProgramsCached: random programs give the oracle's bits from a cold cache, on another
// device from a warm one, and on a third, without a cache, from the bundle exported of the cache.
// The last two devices read everything.
func TestRandomProgramsCached(t *testing.T) {
	dir := t.TempDir()
	n := count(t, "PROGRAMS", programs) / 3
	specs := []string{"cpu:compile=off,threads=2,", "cpu:compile=off,fusion=greedy,", "ref:"}
	cache := func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
	run := func(t *testing.T, i int, where string) (s millrace.Stats) {
		dev := openSpec(t, specs[i]+"cache="+where)
		for seed := range uint64(n) {
			c := progen.Config{MaxElems: 1000, Groups: []progen.Group{0, rowGroups}[seed%2]}
			randomProgram(t, 5<<32+seed, c, func(*rand.Rand) (*millrace.Device, string) { return dev, specs[i] + "cache=off" })
		}
		if err := dev.Wait(); err != nil {
			t.Fatal(err)
		}
		s = dev.Stats()
		if s.Cache.Damaged+s.Cache.Failed+s.Cache.Refused != 0 {
			t.Errorf("%s: %+v", specs[i], s.Cache)
		}
		t.Logf("%s: %d explorations, %+v", specs[i], s.Explorations, s.Cache)
		return s
	}
	var warm [3]millrace.Stats
	for _, pass := range []string{"cold", "warm"} {
		t.Run(pass, func(t *testing.T) {
			for i := range specs {
				warm[i] = run(t, i, cache(i))
				if hits := warm[i].Cache.Hits; pass == "warm" && hits == 0 {
					t.Errorf("%s: nothing came from the cache", specs[i])
				}
			}
		})
	}
	t.Run("shipped", func(t *testing.T) {
		defer stream.ForgetBundles()
		for i := range specs {
			var bundle bytes.Buffer
			device, _, _ := strings.Cut(specs[i], ":")
			if err := millrace.ExportPlans(&bundle, millrace.PlanFilter{Device: device, Cache: cache(i)}); err != nil {
				t.Fatal(err)
			}
			stream.ForgetBundles()
			if err := millrace.UsePlans(bundle.Bytes()); err != nil {
				t.Error(err)
			}
			if s := run(t, i, "off"); s.Cache.Bundled == 0 || s.Explorations > warm[i].Explorations {
				t.Errorf("%s: %d explorations, %d with the cache that the bundle is of; %+v", specs[i], s.Explorations, warm[i].Explorations, s.Cache)
			}
		}
	})
}
