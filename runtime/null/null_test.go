package null

import (
	"errors"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

const addKernel = "in 0 : float32\nin 1 : float32\nout 2 : float32\n%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = add %0 %1 : float32\nstore 2 %2"

func parse(t *testing.T, src string) *codegen.Kernel {
	t.Helper()
	k, err := codegen.Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// addLaunch adds a row to each row of a (3,4) tensor.
func addLaunch(t *testing.T, d runtime.Device) *runtime.Launch {
	t.Helper()
	p, err := d.Build(parse(t, addKernel))
	if err != nil {
		t.Fatal(err)
	}
	l := &runtime.Launch{Prog: p, Rank: 2, Kept: 2, Args: make([]runtime.Access, 3)}
	l.Dims[0], l.Dims[1] = 3, 4
	for i, bytes := range []int64{48, 16, 48} {
		if l.Args[i].Buf, err = d.Alloc(bytes); err != nil {
			t.Fatal(err)
		}
		l.Args[i].Stride[1] = 1
		if i != 1 {
			l.Args[i].Stride[0] = 4
		}
	}
	return l
}

func TestCounters(t *testing.T) {
	d := New(Options{})
	l := addLaunch(t, d)
	if err := d.Run([]runtime.Launch{*l, *l}); err != nil {
		t.Fatal(err)
	}
	s := d.Stats()
	want := runtime.Stats{Launches: 2, BytesRead: 2 * (48 + 16), BytesWritten: 2 * 48, Compiles: 1, Allocs: 3, AllocBytes: 112, PeakBytes: 112}
	if s != want {
		t.Errorf("stats %+v\nwant  %+v", s, want)
	}
	if d.Runs() != 1 {
		t.Errorf("%d runs, want 1", d.Runs())
	}
	d.Free(l.Args[0].Buf)
	d.Free(l.Args[0].Buf)
	if n := d.Stats().AllocBytes; n != 64 {
		t.Errorf("%d bytes live, want 64", n)
	}
}

func TestReadsZeros(t *testing.T) {
	d := New(Options{})
	b, err := d.Alloc(8)
	if err != nil {
		t.Fatal(err)
	}
	got := []byte{1, 2, 3, 4}
	if err := d.Write(b, ir.Float32, 1, got); err != nil {
		t.Fatal(err)
	}
	if err := d.Read(got, ir.Float32, b, 1); err != nil {
		t.Fatal(err)
	}
	if string(got) != "\x00\x00\x00\x00" {
		t.Errorf("read %v", got)
	}
	if err := d.Read(got, ir.Float32, b, 2); err == nil {
		t.Error("a read past the end succeeded")
	}
}

// TestBadLaunches: what would corrupt memory elsewhere is an error here.
func TestBadLaunches(t *testing.T) {
	d, other := New(Options{}), New(Options{})
	good := addLaunch(t, d)
	for name, spoil := range map[string]func(*runtime.Launch){
		"no program":         func(l *runtime.Launch) { l.Prog = nil },
		"another's program":  func(l *runtime.Launch) { l.Prog = addLaunch(t, other).Prog },
		"few args":           func(l *runtime.Launch) { l.Args = l.Args[:2] },
		"scalars":            func(l *runtime.Launch) { l.Scalars = []uint64{1} },
		"no buffer":          func(l *runtime.Launch) { l.Args[0].Buf = nil },
		"another's buffer":   func(l *runtime.Launch) { l.Args[0].Buf = addLaunch(t, other).Args[0].Buf },
		"past the end":       func(l *runtime.Launch) { l.Dims[0] = 4 },
		"before the start":   func(l *runtime.Launch) { l.Args[2].Stride[1] = -1 },
		"rank":               func(l *runtime.Launch) { l.Rank = runtime.MaxRank + 1 },
		"nothing is reduced": func(l *runtime.Launch) { l.Kept = 1 },
		"stage": func(l *runtime.Launch) {
			l.Args[0].Stages = []runtime.Stage{{Dims: []int64{12}, Stride: []int64{2}}}
		},
	} {
		bad := *good
		bad.Args = append([]runtime.Access(nil), good.Args...)
		spoil(&bad)
		var le *runtime.LaunchError
		if err := d.Run([]runtime.Launch{*good, bad}); !errors.As(err, &le) || le.Index != 1 {
			t.Errorf("%s: %v, want a LaunchError of launch 1", name, err)
		}
	}
	if d.Runs() != 0 {
		t.Errorf("%d runs counted that failed", d.Runs())
	}
}

// A guarded load may reach beyond its memory, any other may not; an index
// reaches what it may name.
func TestGuardedAndIndexed(t *testing.T) {
	d := New(Options{})
	run := func(text string, offset, stride, size int64) error {
		p, err := d.Build(parse(t, text))
		if err != nil {
			t.Fatal(err)
		}
		l := runtime.Launch{Prog: p, Rank: 1, Kept: 1, Args: make([]runtime.Access, 3)}
		l.Dims[0] = 4
		for i := range l.Args {
			if l.Args[i].Buf, err = d.Alloc(16); err != nil {
				t.Fatal(err)
			}
			l.Args[i].Stride[0] = 1
		}
		l.Args[0].Offset, l.Args[0].IndexStride, l.Args[0].IndexSize = offset, stride, size
		return d.Run([]runtime.Launch{l})
	}
	const head = "in 0 : float32\nin 1 : int32\nout 2 : float32\n%0 = load 1 : int32\n"
	const guarded = head + "%1 = lt %0 %0 : bool\n%2 = load 0 %1 : float32\nstore 2 %2"
	if err := run(guarded, -2, 0, 0); err != nil {
		t.Error(err)
	}
	const indexed = head + "%1 = loadat 0 error %0 : float32\nstore 2 %1"
	if err := run(indexed, -4, 4, 1); err == nil {
		t.Error("an index before the memory went unnoticed")
	}
	if err := run(indexed, 0, 1, 2); err == nil {
		t.Error("an index past the end went unnoticed")
	}
	if err := run(indexed, 0, 0, 9); err != nil {
		t.Error(err)
	}
}

func TestReduction(t *testing.T) {
	d := New(Options{})
	p, err := d.Build(parse(t, "in 0 : float32\nout 1 : float32 row\n%0 = load 0 : float32\n%1 = sum %0 : float32\nstore 1 %1"))
	if err != nil {
		t.Fatal(err)
	}
	l := runtime.Launch{Prog: p, Rank: 2, Kept: 1, Args: make([]runtime.Access, 2)}
	l.Dims[0], l.Dims[1] = 3, 4
	for i, bytes := range []int64{48, 12} {
		if l.Args[i].Buf, err = d.Alloc(bytes); err != nil {
			t.Fatal(err)
		}
	}
	l.Args[0].Stride[0], l.Args[0].Stride[1], l.Args[1].Stride[0] = 4, 1, 1
	if err := d.Run([]runtime.Launch{l}); err != nil {
		t.Fatal(err)
	}
	if s := d.Stats(); s.BytesRead != 48 || s.BytesWritten != 12 {
		t.Errorf("%d bytes read and %d written, want 48 and 12", s.BytesRead, s.BytesWritten)
	}
	l.Args[1].Stride[0], l.Args[1].Stride[1] = 0, 1
	if err := d.Run([]runtime.Launch{l}); err == nil {
		t.Error("an output that moves along a reduced dim was accepted")
	}
}

func TestLimits(t *testing.T) {
	for name, set := range map[string]func(*runtime.Caps){
		"operands":     func(c *runtime.Caps) { c.MaxOperands = 2 },
		"slots":        func(c *runtime.Caps) { c.MaxSlots = 2 },
		"instructions": func(c *runtime.Caps) { c.MaxBody = 2 },
		"dtypes":       func(c *runtime.Caps) { c.DTypes = ir.SetOf(ir.Int32) },
	} {
		d := New(Options{Caps: set})
		var ce *runtime.CompileError
		if _, err := d.Build(parse(t, addKernel)); !errors.As(err, &ce) {
			t.Errorf("%s: %v, want a CompileError", name, err)
		}
		if d.Stats().CompileFails != 1 {
			t.Errorf("%s: the failure was not counted", name)
		}
	}
	d := New(Options{MemoryLimit: 100})
	if _, err := d.Alloc(60); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Alloc(60); !errors.Is(err, runtime.ErrOutOfMemory) {
		t.Errorf("above the limit: %v", err)
	}
	if _, err := d.Alloc(-1); !errors.Is(err, runtime.ErrOutOfMemory) {
		t.Errorf("negative size: %v", err)
	}
}

func TestFaults(t *testing.T) {
	defer fault.Reset()
	d := New(Options{})
	l := addLaunch(t, d)
	for point, call := range map[string]func() error{
		fault.Alloc:   func() error { _, err := d.Alloc(1); return err },
		fault.Compile: func() error { _, err := d.Build(parse(t, addKernel)); return err },
		fault.Launch:  func() error { return d.Run([]runtime.Launch{*l}) },
	} {
		fault.Set(point, 1)
		var fe *fault.Error
		if err := call(); !errors.As(err, &fe) || fe.Point != point {
			t.Errorf("%s: %v", point, err)
		}
		if err := call(); err != nil {
			t.Errorf("%s again: %v", point, err)
		}
	}
}

func TestClosed(t *testing.T) {
	drv, err := runtime.Lookup("null")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := drv.Probe(); text == "" || err != nil {
		t.Errorf("probe: %q, %v", text, err)
	}
	d, err := drv.Open(runtime.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l := addLaunch(t, d)
	if err := d.Wait(true); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"alloc": func() error { _, err := d.Alloc(1); return err },
		"write": func() error { return d.Write(l.Args[0].Buf, ir.Float32, 0, nil) },
		"read":  func() error { return d.Read(nil, ir.Float32, l.Args[0].Buf, 0) },
		"build": func() error { _, err := d.Build(parse(t, addKernel)); return err },
		"run":   func() error { return d.Run(nil) },
		"wait":  func() error { return d.Wait(false) },
		"close": d.Close,
	} {
		if err := call(); !errors.Is(err, runtime.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
}
