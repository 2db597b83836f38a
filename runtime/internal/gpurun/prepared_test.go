package gpurun

import (
	"errors"
	"slices"
	"testing"

	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
)

// fakeRecording is a fake's.
type fakeRecording struct {
	dev  *fake
	zero Range
	list []Dispatch
}

// fakeRecorder is a fake with recordings.
type fakeRecorder struct {
	*fake
	recordings int // made and not released
	fresh      int // submissions before those that will fail
	stale      int // submissions that will fail
	replays    int // of recordings
}

func (f *fakeRecorder) Record(zero Range, list []Dispatch) (Recording, error) {
	end, err := f.call()
	defer end()
	if err == nil {
		err = f.lacks("Record")
	}
	if err != nil {
		return nil, err
	}
	f.recordings++
	r := &fakeRecording{dev: f.fake, zero: zero}
	for _, x := range list {
		x.Bind = slices.Clone(x.Bind)
		r.list = append(r.list, x)
	}
	return recordingOf{r, f}, nil
}

type recordingOf struct {
	*fakeRecording
	by *fakeRecorder
}

// Play makes one submission of all work.
func (f *fakeRecorder) Play(list []Work) error {
	var all []Dispatch
	for _, w := range list {
		if r, ok := w.Rec.(recordingOf); ok {
			if f.fresh > 0 {
				f.fresh--
			} else if f.stale > 0 {
				f.stale--
				return ErrStale
			}
			f.replays++
			w.Zero, w.List = r.zero, r.list
		}
		if w.Zero.Size > 0 {
			clear(w.Zero.Buf.(*fakeBuffer).memory()[:w.Zero.Size])
		}
		all = append(all, w.List...)
	}
	return f.Submit(all, all[0].Bind[len(all[0].Bind)-1].Buf, nil)
}

func (r recordingOf) Release() { r.by.recordings-- }

func openRecorder(t *testing.T, c runtime.Config) (*Runner, *fakeRecorder) {
	f := &fakeRecorder{fake: newFake()}
	if c.MemoryLimit == 0 {
		f.most = 1 << 30
	}
	d := New("fake", f, wgsl.Dialect, c)
	t.Cleanup(func() { _ = d.Close() })
	return d, f
}

// TestPreparedRecords: buffers that come twice are recorded, and a later run with them is one
// submission. All that is made is released.
func TestPreparedRecords(t *testing.T) {
	d, f := openRecorder(t, runtime.Config{})
	l := launch(t, d, copyKernel, 1, 100)
	list := []runtime.Launch{*l, *l}
	if err := d.Run(list); err != nil {
		t.Fatal(err)
	}
	buffers, pipes := f.buffers, f.pipelines
	p := d.Prepare(list, nil)
	if p == nil {
		t.Fatal("not prepared")
	}
	out := []runtime.Place{{Launch: 0, Arg: 1}, {Launch: 1, Arg: 1}}
	bufs := []runtime.Buffer{l.Args[1].Buf}
	for range maxTakes + 3 {
		b, err := d.Alloc(l.Args[1].Buf.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		bufs = append(bufs, b)
	}
	run := func(i int) {
		t.Helper()
		n := len(f.submitted)
		if !p.Set(out, bufs[i]) {
			t.Fatal("refused")
		}
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
		if len(f.submitted) != n+1 {
			t.Fatalf("%d submissions", len(f.submitted)-n)
		}
		for _, x := range f.submitted[n] {
			if x.Bind[1].Buf != bufs[i].(*buffer).mem {
				t.Fatalf("run with buffer %d binds another one", i)
			}
		}
	}
	for i, want := range []struct{ buf, recorded, replays int }{
		{0, 1, 1}, {0, 1, 2}, {1, 1, 2}, {0, 1, 3}, {1, 2, 4}, {0, 2, 5}, {1, 2, 6}, {2, 2, 6},
	} {
		run(want.buf)
		if s := d.Stats(); int(s.Recorded) != want.recorded || f.replays != want.replays || int(s.Prepared) != 2*(i+1) {
			t.Errorf("run %d: %d recordings, %d replays, %d launches prepared", i, s.Recorded, f.replays, s.Prepared)
		}
	}
	for range 2 {
		for i := range bufs { // more than are remembered: none is seen again
			run(i)
		}
	}
	if f.recordings > maxTakes {
		t.Errorf("%d recordings are kept", f.recordings)
	}
	// A recording whose memory is gone is made anew.
	for range maxOften { // recordings were made in vain: now a set of buffers must come more often
		run(0)
	}
	f.stale = 1
	before := d.Stats().Recorded
	for range 3 {
		run(0)
	}
	if n := d.Stats().Recorded - before; n != 1 {
		t.Errorf("%d recordings after a stale one", n)
	}
	p.Close()
	for _, b := range bufs[1:] {
		d.Free(b)
	}
	d.memory.mu.Lock()
	d.memory.trim(0)
	d.memory.mu.Unlock()
	if f.recordings != 0 || f.buffers > buffers || f.pipelines != pipes || d.Stats().AllocBytes == 0 {
		t.Errorf("%d recordings, %d buffers of %d and %d pipelines of %d are left", f.recordings, f.buffers, buffers, f.pipelines, pipes)
	}
}

// TestPreparedPartStale: a list of two submissions, of which only the second cannot be submitted again,
// runs whole, and is recorded anew later.
func TestPreparedPartStale(t *testing.T) {
	d, f := openRecorder(t, runtime.Config{})
	look := launch(t, d, lookKernel, 1, 100)
	look.Args[0].Stride[0], look.Args[0].IndexStride, look.Args[0].IndexSize = 0, 1, 100
	over := launch(t, d, copyKernel, 1, 100)
	over.Args[1].Buf = look.Args[0].Buf // overwrites what the launch before reads, which may fail
	p := d.Prepare([]runtime.Launch{*look, *over}, nil)
	if p == nil {
		t.Fatal("not prepared")
	}
	defer p.Close()
	run := func() {
		t.Helper()
		n := len(f.submitted)
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
		if len(f.submitted) != n+2 {
			t.Fatalf("%d submissions of 2", len(f.submitted)-n)
		}
	}
	run()
	f.fresh, f.stale = 1, 1
	run()
	run()
	if s := d.Stats(); f.stale != 0 || s.Recorded != 2 {
		t.Errorf("%d submissions were left to refuse, %d recordings", f.stale, s.Recorded)
	}
}

// TestSkips: on a Device that skips dispatches after a fault, a list is one submission. A launch that
// overwrites what a failing one reads looks at its words, and those that follow heed them.
func TestSkips(t *testing.T) {
	for _, skips := range []bool{false, true} {
		f := &fakeRecorder{fake: newFake()}
		f.info.Skips = skips
		d := New("fake", f, wgsl.Dialect, runtime.Config{})
		look := launch(t, d, lookKernel, 1, 100)
		look.Args[0].Stride[0], look.Args[0].IndexStride, look.Args[0].IndexSize = 0, 1, 100
		over, after := *launch(t, d, copyKernel, 1, 100), *launch(t, d, copyKernel, 1, 100)
		over.Args[1].Buf, after.Args[1].Buf = look.Args[0].Buf, look.Args[0].Buf
		list := []runtime.Launch{after, *look, over, after, *look, over, *look}
		p := d.Prepare(list, nil)
		if p == nil {
			t.Fatal("not prepared")
		}
		for _, run := range []func() error{func() error { return d.dispatchAll(list, false) }, p.Run} {
			f.submitted = nil
			if err := run(); err != nil {
				t.Fatal(err)
			}
			if n := len(f.submitted); skips && n != 1 || !skips && n != 3 {
				t.Fatalf("%d submissions", n)
			}
			text := ""
			for _, list := range f.submitted {
				for _, x := range list {
					if heeds := x.Unless.Buf != nil; heeds && x.Look {
						text += " look"
					} else if heeds {
						text += " heed"
					} else if text += " run"; x.Look {
						t.Error("a dispatch looks at no words")
					}
				}
			}
			if want := " run run look heed heed look heed"; skips && text != want {
				t.Errorf("%s, want%s", text, want)
			}
		}
		p.Close()
	}
}

// TestPreparedFalls: lists that cannot be prepared or recorded run as by Run, with the same errors.
func TestPreparedFalls(t *testing.T) {
	d, f := openRecorder(t, runtime.Config{})
	l := launch(t, d, copyKernel, 1, 100)
	list := []runtime.Launch{*l}
	p := d.Prepare(list, nil)
	if p == nil {
		t.Fatal("not prepared")
	}
	defer p.Close()
	f.short = map[string]int{"Record": 1}
	for range 3 {
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
	}
	if s := d.Stats(); s.Recorded != 0 || s.Replayed != 0 || s.Prepared != 3 {
		t.Errorf("%d recordings, %d launches as recorded and %d prepared without memory for recordings", s.Recorded, s.Replayed, s.Prepared)
	}
	// Operands that were apart become one: other dispatches.
	if !p.Set([]runtime.Place{{Arg: 1}}, l.Args[0].Buf) {
		t.Fatal("refused")
	}
	for range 3 {
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
	}
	if x := f.submitted[len(f.submitted)-1][0]; len(x.Bind) != 2 || x.Bind[0].Buf != l.Args[0].Buf.(*buffer).mem {
		t.Errorf("bindings %v", x.Bind)
	}
	small, err := d.Alloc(16)
	if err != nil {
		t.Fatal(err)
	}
	var le *runtime.LaunchError
	p.Set([]runtime.Place{{Arg: 1}}, small)
	if err := p.Run(); !errors.As(err, &le) {
		t.Errorf("with a small buffer: %v", err)
	}
	d.Free(small)
	if err := p.Run(); !errors.As(err, &le) {
		t.Errorf("with a freed buffer: %v", err)
	}
	if p.Set([]runtime.Place{{Arg: 1}}, small) {
		t.Error("a freed buffer was taken")
	}
	defer fault.Reset()
	fault.Set(fault.Launch, 1)
	if err := p.Run(); !errors.As(err, &le) {
		t.Errorf("a fault: %v", err)
	}
	fault.Reset()
	if d.Prepare(nil, nil) != nil || d.Prepare([]runtime.Launch{{Prog: list[0].Prog}}, nil) != nil {
		t.Error("a bad list was prepared")
	}
	other := openDevice(t, runtime.Config{})
	if l := launch(t, other, copyKernel, 1, 100); other.Prepare([]runtime.Launch{*l}, nil) != nil {
		t.Error("prepared on a Device without recordings")
	}
	f.Lose(errors.New("a test"))
	if err := p.Run(); !errors.Is(err, runtime.ErrDeviceLost) {
		t.Errorf("on a lost device: %v", err)
	}
}
