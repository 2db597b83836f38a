package cpu

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// TestPreparedLists checks that prepared random lists give the results of unprepared ones, with
// buffers that change from run to run.
func TestPreparedLists(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	was := prepares.Load()
	for _, c := range []runtime.Config{{Threads: 1, Tier: -1}, {Threads: 2, Tier: -1}} {
		d := openTest(t, c)
		for range 40 {
			k := kernels.Random(rng, 12, rng.IntN(3))
			kept := 2
			if k.HasRows() {
				kept = 1
			}
			h := kernels.NewLaunch(rng, k, []int64{1 + rng.Int64N(40), 1 + rng.Int64N(90)}, kept, kernels.Pattern(rng.IntN(int(kernels.NumPatterns))))
			again(t, d, k, h, onDevice(t, d, k, h))
		}
	}
	if n := prepares.Load() - was; n < 60 {
		t.Errorf("only %d of 80 lists were prepared", n)
	}
}

// TestPreparedRefuses checks that unsuitable buffers are refused, and that errors name their
// launch.
func TestPreparedRefuses(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 1, Tier: -1})
	k := scaled(t)
	h := kernels.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{100}, 1, kernels.Dense)
	bound(t, d, k, h, func(l *runtime.Launch) {
		p := d.Prepare([]runtime.Launch{*l, *l}, nil)
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
		before := d.Stats()
		for range 3 {
			if err := p.Run(); err != nil {
				t.Fatal(err)
			}
		}
		if now := d.Stats(); now.Launches-before.Launches != 6 || now.Tier0-before.Tier0 != 6 || now.BytesRead == before.BytesRead {
			t.Errorf("%d launches, %d interpreted", now.Launches-before.Launches, now.Tier0-before.Tier0)
		}
		defer fault.Reset()
		fault.Set(fault.Launch, 1)
		var at *runtime.LaunchError
		if err := p.Run(); !errors.As(err, &at) || at.Index != 0 {
			t.Errorf("a fault: %v", err)
		}
		fault.Reset()
		d.changes.Add(1) // as if other code had been compiled
		if err := p.Run(); err != nil {
			t.Errorf("with code of others: %v", err)
		}
		bad := *l
		bad.Scalars = append([]uint64{1, 2, 3, 4}, bad.Scalars...)
		if d.Prepare([]runtime.Launch{bad}, nil) != nil || d.Prepare(nil, nil) != nil {
			t.Error("a bad list was prepared")
		}
	})
	d.Close()
	if d.Prepare([]runtime.Launch{{}}, nil) != nil {
		t.Error("prepared on a closed device")
	}
}

// TestPreparedCall checks that Call tells which lists are one function, and that only runs count.
func TestPreparedCall(t *testing.T) {
	k := scaled(t)
	for _, tier := range []int{-1, 0} {
		d := openTest(t, runtime.Config{Threads: 1, Tier: tier})
		if tier == 0 && !d.machine {
			continue // C is compiled in the background, so such a list is prepared later
		}
		h := kernels.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{100}, 1, kernels.Dense)
		bound(t, d, k, h, func(l *runtime.Launch) {
			p := d.Prepare([]runtime.Launch{*l, *l}, nil)
			if p == nil {
				t.Fatal("not prepared")
			}
			defer p.Close()
			one := tier == 0
			for _, n := range []int64{0, 3} {
				before := d.Stats().Launches
				if got := p.Call(int(n)); got != one {
					t.Errorf("tier %d: Call(%d) is %v", tier, n, got)
				}
				want := int64(0)
				if one {
					want = 2 * n
				}
				if p.Count(); d.Stats().Launches-before != want {
					t.Errorf("tier %d: Call(%d) counted %d launches, want %d", tier, n, d.Stats().Launches-before, want)
				}
			}
		})
	}
}

// TestPreparedWaves checks that lists with parallel launches give the results of one launch at a
// time, prepared and with some buffers moved.
func TestPreparedWaves(t *testing.T) {
	lists := 60
	if testing.Short() {
		lists = 15
	}
	one, many := openTest(t, runtime.Config{Tier: -1, Threads: 1}), openTest(t, runtime.Config{Tier: -1, Threads: 4})
	for seed := range lists {
		want := waveRun(t, one, uint64(seed))
		got := waveRunBy(t, many, uint64(seed), func(list []runtime.Launch, bufs [][]runtime.Buffer, rng *rand.Rand) {
			p := many.Prepare(list, nil)
			if p == nil {
				t.Fatalf("list %d was not prepared", seed)
			}
			defer p.Close()
			for _, some := range bufs {
				for i := range some {
					if rng.IntN(2) == 0 {
						some[i] = moved(t, many, p, list, some[i])
					}
				}
			}
			if err := p.Run(); err != nil {
				t.Fatalf("list %d: %v", seed, err)
			}
		})
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("list %d: buffer %d is not what launches in order leave there", seed, i)
			}
		}
	}
	if s := many.Stats(); s.Grouped < int64(lists) || s.Prepared != s.Launches {
		t.Errorf("%d of %d launches ran prepared, %d beside others", s.Prepared, s.Launches, s.Grouped)
	}
}

// moved replaces a buffer by a copy, in a prepared list.
func moved(t *testing.T, d *device, p runtime.Prepared, list []runtime.Launch, from runtime.Buffer) runtime.Buffer {
	t.Helper()
	to, err := d.Alloc(from.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Free(to) })
	data := make([]byte, from.Bytes())
	if err := errors.Join(d.Read(data, ir.Uint8, from, 0), d.Write(to, ir.Uint8, 0, data)); err != nil {
		t.Fatal(err)
	}
	var places []runtime.Place
	for i := range list {
		for j := range list[i].Args {
			if list[i].Args[j].Buf == from {
				places = append(places, runtime.Place{Launch: int32(i), Arg: int32(j)})
			}
		}
	}
	if !p.Set(places, to) {
		t.Fatal("a copy of a buffer will not do")
	}
	return to
}
