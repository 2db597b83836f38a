//go:build cgo && unix

package cpu

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/runtime"
)

// Random lists that were prepared give what they give unprepared, on buffers that change
// from run to run.
func TestPreparedLists(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	was := prepares.Load()
	for _, c := range []runtime.Config{{Threads: 1, Tier: -1}, {Threads: 2, Tier: -1}} {
		d := openTest(t, c)
		for range 40 {
			k := kerneltest.Random(rng, 12, rng.IntN(3))
			kept := 2
			if k.HasRows() {
				kept = 1
			}
			h := kerneltest.NewLaunch(rng, k, []int64{1 + rng.Int64N(40), 1 + rng.Int64N(90)}, kept, kerneltest.Pattern(rng.IntN(int(kerneltest.NumPatterns))))
			again(t, d, k, h, onDevice(t, d, k, h))
		}
	}
	if n := prepares.Load() - was; n < 60 {
		t.Errorf("only %d of 80 lists were prepared", n)
	}
}

// What does not fit is refused, faults name their launch, and a list that would not run
// the same way any more says so.
func TestPreparedRefuses(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 1, Tier: -1})
	k := scaled(t)
	h := kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{100}, 1, kerneltest.Dense)
	bound(t, d, k, h, func(l *runtime.Launch) {
		p := d.Prepare([]runtime.Launch{*l, *l})
		if p == nil {
			t.Fatal("not prepared")
		}
		defer p.Close()
		small, err := d.Alloc(8)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Free(small)
		if p.Set([]runtime.Place{{Launch: 1}}, small) {
			t.Error("a buffer that is too small was taken")
		}
		shared, err := d.AllocShared(4096)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Free(shared)
		if p.Set([]runtime.Place{{Launch: 1}}, shared) {
			t.Error("memory of Go's heap was taken")
		}
		x := p.(*prepared)
		if at := x.unnoted(x.arena.size / 2); at >= 0 {
			t.Errorf("word %d was not noted", at)
		}
		kept := x.places[1][0].at
		if x.places[1][0].at = nil; x.unnoted(x.arena.size/2) < 0 {
			t.Error("an address that is not noted was not found")
		}
		x.places[1][0].at = kept
		before := d.Stats()
		for range 3 {
			if done, err := p.Run(); !done || err != nil {
				t.Fatal(done, err)
			}
		}
		if now := d.Stats(); now.Launches-before.Launches != 6 || now.Tier0-before.Tier0 != 6 || now.BytesRead == before.BytesRead {
			t.Errorf("%d launches, %d interpreted", now.Launches-before.Launches, now.Tier0-before.Tier0)
		}
		defer fault.Reset()
		fault.Set(fault.Launch, 1)
		var at *runtime.LaunchError
		if done, err := p.Run(); !done || !errors.As(err, &at) || at.Index != 0 {
			t.Errorf("a fault: %v, %v", done, err)
		}
		fault.Reset()
		d.changes.Add(1)
		if done, err := p.Run(); done || err != nil {
			t.Errorf("with other code: %v, %v", done, err)
		}
		bad := *l
		bad.Scalars = append([]uint64{1, 2, 3, 4}, bad.Scalars...)
		if d.Prepare([]runtime.Launch{bad}) != nil || d.Prepare(nil) != nil {
			t.Error("a bad list was prepared")
		}
	})
	d.Close()
	if d.Prepare([]runtime.Launch{{}}) != nil {
		t.Error("prepared on a closed device")
	}
}
