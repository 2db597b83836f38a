package gputest

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

func copyLaunch(t *testing.T, d *device) *runtime.Launch {
	x := newTrial(parse(t, copyKernel), 1, 100)
	x.fillInputs(rand.New(rand.NewPCG(1, 2)))
	return x.launch(t, d)
}

// calls are all methods that reach the adapter.
func calls(t *testing.T, d *device, l *runtime.Launch) map[string]func() error {
	return map[string]func() error{
		"alloc": func() error { _, err := d.Alloc(16); return err },
		"write": func() error { return d.Write(l.Args[0].Buf, ir.Float32, 0, make([]byte, 4)) },
		"read":  func() error { return d.Read(make([]byte, 4), ir.Float32, l.Args[0].Buf, 0) },
		"build": func() error { _, err := d.Build(parse(t, copyKernel)); return err },
		"run":   func() error { return d.Run([]runtime.Launch{*l}) },
		"wait":  func() error { return d.Wait(true) },
	}
}

func testClosed(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	l := copyLaunch(t, d)
	must(t, d.Close())
	for name, call := range calls(t, d, l) {
		if err := call(); !errors.Is(err, runtime.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
	if err := d.Close(); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
}

func testLost(t *testing.T) {
	defer fault.Reset()
	other := openDevice(t, runtime.Config{})
	d := openDevice(t, runtime.Config{})
	l := copyLaunch(t, d)
	fault.Set(under.Name+"-lost", 1)
	if err := d.Run([]runtime.Launch{*l}); !errors.Is(err, runtime.ErrDeviceLost) {
		t.Fatalf("run: %v, want ErrDeviceLost", err)
	}
	for name, call := range calls(t, d, l) {
		if err := call(); !errors.Is(err, runtime.ErrDeviceLost) {
			t.Errorf("%s: %v, want ErrDeviceLost", name, err)
		}
	}
	if err := other.Run([]runtime.Launch{*copyLaunch(t, other)}); err != nil {
		t.Errorf("another device: %v", err)
	}
}

// testLaunchError: the launches before an invalid one have run.
func testLaunchError(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	x := newTrial(parse(t, copyKernel), 1, 100)
	x.fillInputs(rand.New(rand.NewPCG(1, 2)))
	l := x.launch(t, d)
	for name, spoil := range map[string]func(*runtime.Launch){
		"no program":   func(l *runtime.Launch) { l.Prog = nil },
		"no args":      func(l *runtime.Launch) { l.Args = nil },
		"no buffer":    func(l *runtime.Launch) { l.Args[0].Buf = nil },
		"past the end": func(l *runtime.Launch) { l.Dims[0] = 1000 },
		"before it":    func(l *runtime.Launch) { l.Args[1].Offset = -1 },
		"rank":         func(l *runtime.Launch) { l.Rank = runtime.MaxRank + 1 },
		"kept":         func(l *runtime.Launch) { l.Kept = 0 },
		"scalars":      func(l *runtime.Launch) { l.Scalars = []uint64{1} },
	} {
		bad := *l
		bad.Args = append([]runtime.Access(nil), l.Args...)
		spoil(&bad)
		err := d.Run([]runtime.Launch{*l, bad})
		var le *runtime.LaunchError
		if !errors.As(err, &le) || le.Index != 1 {
			t.Errorf("%s: %v, want a LaunchError of launch 1", name, err)
		}
	}
	x.compare(t, d, l, ir.Tolerance{})
}

func testUnsupported(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	_, err := d.Build(parse(t, "in 0 : float64\nout 1 : float64\n%0 = load 0 : float64\nstore 1 %0"))
	if !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("float64: %v", err)
	}
}

func testAdapterChoice(t *testing.T) {
	openDevice(t, runtime.Config{})
	d, err := runtime.Lookup(under.Name)
	must(t, err)
	_, err = d.Open(runtime.Config{Adapter: "no such adapter"})
	if !errors.Is(err, runtime.ErrNoDriver) || !strings.Contains(err.Error(), "there are") {
		t.Errorf("unknown adapter: %v", err)
	}
	text, err := d.Probe()
	if err != nil || text == "" {
		t.Errorf("probe: %q, %v", text, err)
	}
}
