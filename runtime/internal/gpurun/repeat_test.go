package gpurun

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/millrace-go/millrace/runtime"
)

// last describes the last submission: shaders, ranges, groups and words. Buffers but those that are
// known are numbered.
func (f *fake) last(known []runtime.Buffer) (text []string) {
	names := map[Buffer]string{}
	for i, b := range known {
		names[b.(*buffer).mem] = fmt.Sprint("buffer ", i)
	}
	for _, x := range f.submitted[len(f.submitted)-1] {
		n := len(x.Bind) - 1
		words := x.Bind[n].Buf.(*fakeBuffer).memory()[x.Bind[n].Off:][:x.Bind[n].Size]
		at := ""
		for _, r := range x.Bind[:n] {
			if names[r.Buf] == "" {
				names[r.Buf] = fmt.Sprint("scratch ", len(names))
			}
			at += fmt.Sprintf(" %s %d %d", names[r.Buf], r.Off, r.Size)
		}
		text = append(text, fmt.Sprintf("%p %v%s %x", x.Pipe, x.Groups, at, words))
	}
	return text
}

const scaleKernel = "in 0 : float32\nin 1 : float32\nout 2 : float32\nscalar 0 : float32\n%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = scalar 0 : float32\n%3 = mul %0 %2 : float32\n%4 = add %3 %1 : float32\nstore 2 %4"

// TestRepeatsRandom: whatever lists come, with whatever buffers, a Run submits what an unprepared one
// does. Some have scratch memory, which is used by others in between.
func TestRepeatsRandom(t *testing.T) {
	replayed := int64(0)
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 8))
		d, f := openRecorder(t, runtime.Config{})
		kinds := []*runtime.Launch{launch(t, d, copyKernel, 1, 100), launch(t, d, scaleKernel, 1, 100), launch(t, d, negKernel, 1, 60), launch(t, d, sortKernel, 1, 2, 3000)}
		var bufs []runtime.Buffer
		for range 3 + rng.IntN(6) {
			b, err := d.Alloc(6000 * wordSize)
			if err != nil {
				t.Fatal(err)
			}
			bufs = append(bufs, b)
		}
		sometimes := func() bool { return rng.IntN(12) == 0 }
		var lists [][]runtime.Launch
		for range 1 + rng.IntN(8) {
			var list []runtime.Launch
			for range 1 + rng.IntN(6) {
				l := *kinds[rng.IntN(len(kinds))]
				l.Args, l.Scalars = slices.Clone(l.Args), slices.Clone(l.Scalars)
				list = append(list, l)
			}
			lists = append(lists, list)
		}
		for _, list := range lists {
			for i := range list {
				for j := range list[i].Args {
					list[i].Args[j].Buf = bufs[rng.IntN(len(bufs))]
				}
			}
		}
		for range 300 {
			list := lists[rng.IntN(len(lists))]
			l := &list[rng.IntN(len(list))]
			if a := &l.Args[rng.IntN(len(l.Args))]; sometimes() {
				a.Buf = bufs[rng.IntN(len(bufs))]
			}
			if l.Rank == 1 && sometimes() {
				l.Args[0].Offset = int64(4 * rng.IntN(3))
			}
			if l.Rank == 1 && sometimes() {
				l.Args[0].Stride[0] = int64(rng.IntN(3))
			}
			if len(l.Scalars) > 0 && sometimes() {
				l.Scalars[0] = uint64(rng.IntN(3))
			}
			if sometimes() {
				f.stale = 1
			}
			if err := d.Run(list); err != nil {
				t.Fatal(err)
			}
			got := f.last(bufs)
			f.stale = 0
			if err := d.dispatchAll(list, false); err != nil {
				t.Fatal(err)
			}
			if want := f.last(bufs); !slices.Equal(got, want) {
				t.Fatalf("seed %d: %v, want %v", seed, got, want)
			}
			f.submitted = nil
		}
		s := d.Stats()
		replayed += s.Replayed
		if s.Launches == 0 || s.AllocBytes != int64(len(bufs))*bufs[0].(*buffer).mem.Size()+liveOf(kinds) {
			t.Errorf("seed %d: %d bytes are in use", seed, s.AllocBytes)
		}
		for _, l := range kinds {
			d.Forget(l.Prog)
		}
		for _, p := range d.parts.list {
			d.Forget(p)
		}
		if d.sweep(); f.recordings != 0 || f.pipelines != 0 || len(d.repeats.list) != 0 {
			t.Errorf("seed %d: %d recordings, %d pipelines, %d lists are left", seed, f.recordings, f.pipelines, len(d.repeats.list))
		}
	}
	if replayed < 600 {
		t.Errorf("%d launches ran as recorded", replayed)
	}
}

func liveOf(list []*runtime.Launch) (n int64) {
	for _, l := range list {
		for _, a := range l.Args {
			n += a.Buf.(*buffer).mem.Size()
		}
	}
	return n
}

// TestRepeats: a list is prepared when it comes again, and recorded when its buffers do. Lists that
// take turns are seldom prepared in vain, and so is one whose buffers share memory in another way
// each time.
func TestRepeats(t *testing.T) {
	d, f := openRecorder(t, runtime.Config{})
	l := launch(t, d, copyKernel, 1, 100)
	run := func(list ...runtime.Launch) {
		t.Helper()
		n := len(f.submitted)
		if err := d.Run(list); err != nil {
			t.Fatal(err)
		}
		if len(f.submitted) != n+1 {
			t.Fatalf("%d submissions", len(f.submitted)-n)
		}
	}
	for i, want := range []struct{ prepared, recorded, replayed int64 }{{0, 0, 0}, {2, 0, 0}, {4, 1, 2}, {6, 1, 4}, {8, 1, 6}} {
		run(*l, *l)
		if s := d.Stats(); s.Prepared != want.prepared || s.Recorded != want.recorded || s.Replayed != want.replayed {
			t.Errorf("run %d: %d launches prepared, %d recordings, %d launches as recorded", i, s.Prepared, s.Recorded, s.Replayed)
		}
	}
	temporary := *l
	temporary.Provisional = true
	before := d.Stats().Prepared
	for range 5 {
		run(temporary)
	}
	if n := d.Stats().Prepared - before; n != 0 {
		t.Errorf("%d launches of plans that a search may replace were prepared", n)
	}
	sizes := make([]runtime.Launch, 3*maxRepeats)
	for i := range sizes {
		sizes[i] = *l
		sizes[i].Dims[0] = int64(1 + i)
	}
	const rounds = 40
	before = d.Stats().Prepared
	for range rounds {
		for _, x := range sizes {
			run(x)
		}
	}
	s := d.Stats()
	if s.Unsteady > rounds || len(d.repeats.list) > maxRepeats {
		t.Errorf("%d of %d launches that take turns were prepared, %d lists in vain, %d are kept", s.Prepared-before, rounds*len(sizes), s.Unsteady, len(d.repeats.list))
	}
	both := *l
	both.Args = slices.Clone(l.Args)
	both.Dims[0] = 99
	before, unsteady := s.Prepared, s.Unsteady
	for i := range 200 {
		if both.Args[1].Buf = l.Args[i%2].Buf; i%2 == 0 {
			both.Args[0].Buf = l.Args[0].Buf
		}
		run(both)
	}
	if s := d.Stats(); s.Prepared-before > 30 || s.Unsteady == unsteady || s.Unsteady > unsteady+4 {
		t.Errorf("%d launches were prepared whose buffers share memory in another way each time, %d lists", s.Prepared-before, s.Unsteady-unsteady)
	}
	for range d.repeats.often + 3 { // a loop begins
		run(*l, *l, *l)
	}
	before = d.Stats().Replayed
	for range 10 {
		run(*l, *l, *l)
	}
	if n := d.Stats().Replayed - before; n != 30 {
		t.Errorf("%d of 30 launches ran as recorded", n)
	}
	long := slices.Repeat([]runtime.Launch{*l}, maxRepeated)
	for range d.repeats.often + 3 {
		run(long...)
	}
	if n := d.repeats.dispatches(); n > maxRepeated {
		t.Errorf("%d dispatches are kept", n)
	}
}

// TestRepeatsTogether: goroutines run equal lists, of which one at a time is prepared, while their
// programs are forgotten.
func TestRepeatsTogether(t *testing.T) {
	d, f := openRecorder(t, runtime.Config{})
	var group sync.WaitGroup
	var kinds []*runtime.Launch
	for i := range 4 {
		kinds = append(kinds, launch(t, d, copyKernel, 1, int64(100+i)))
	}
	for range 4 {
		group.Go(func() {
			for i := range 500 {
				l := kinds[i/7%4]
				if err := d.Run([]runtime.Launch{*l, *l}); err != nil {
					t.Error(err)
				}
				if i%40 == 0 {
					d.Forget(l.Prog)
				}
			}
		})
	}
	group.Wait()
	for _, l := range kinds {
		d.Forget(l.Prog)
	}
	if d.sweep(); f.recordings != 0 || f.pipelines != 0 || len(d.repeats.list) != 0 {
		t.Errorf("%d recordings, %d pipelines, %d lists are left", f.recordings, f.pipelines, len(d.repeats.list))
	}
	if s := d.Stats(); s.Launches != 4*500*2 {
		t.Errorf("%d launches of %d", s.Launches, 4*500*2)
	}
}

// TestRepeatsFaults: an index out of range is found whether its list is prepared or not.
func TestRepeatsFaults(t *testing.T) {
	d, f := openRecorder(t, runtime.Config{})
	l := launch(t, d, lookKernel, 1, 100)
	l.Args[0].Stride[0], l.Args[0].IndexStride, l.Args[0].IndexSize = 0, 1, 100
	fine := launch(t, d, copyKernel, 1, 100)
	for i := range 8 {
		bad := i%3 == 2
		f.afterwards = func(list []Dispatch) {
			if faults := list[1].Bind[len(list[1].Bind)-2]; bad {
				copy(faults.Buf.(*fakeBuffer).memory(), bytes.Repeat([]byte{1}, int(faults.Size)))
			}
		}
		err := d.Run([]runtime.Launch{*fine, *l})
		if le, ok := err.(*runtime.LaunchError); ok != bad || ok && le.Index != 1 {
			t.Errorf("run %d: %v", i, err)
		}
	}
	if s := d.Stats(); s.Waits != 8 || s.Prepared != 2*5 || s.Recorded != 1 { // runs that fail are not counted
		t.Errorf("%d waits, %d launches prepared, %d recordings", s.Waits, s.Prepared, s.Recorded)
	}
}
