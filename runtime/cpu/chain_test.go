package cpu

import (
	"errors"
	"testing"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
)

// chained returns launches that square x row by row into local memory, and then into y. They
// repeat many times; each pair is a chain and a plain launch after it.
func chained(t *testing.T, d *device, x, y runtime.Buffer, rows, cols int64) []runtime.Launch {
	k, err := codegen.Parse("in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n%1 = mul %0 %0 : float32\nstore 1 %1\n")
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Build(k)
	if err != nil {
		t.Fatal(err)
	}
	access := func(b runtime.Buffer, local int) runtime.Access {
		a := runtime.Access{Buf: b, Local: local}
		a.Stride[0], a.Stride[1] = cols, 1
		return a
	}
	launch := func(in, out runtime.Access) runtime.Launch {
		l := runtime.Launch{Prog: p, Rank: 2, Kept: 2, Args: []runtime.Access{in, out}}
		l.Dims[0], l.Dims[1] = rows, cols
		return l
	}
	var list []runtime.Launch
	for range 20 {
		first := launch(access(x, 0), access(nil, 1))
		first.Chain = &runtime.Chain{N: 2, Lead: 1, Local: []int64{4 * cols}}
		list = append(list, first, launch(access(nil, 1), access(y, 0)), launch(access(x, 0), access(y, 0)))
	}
	return list
}

// TestCloseDuringChains checks that a device may be closed while lists with chains run on it:
// Close waits for running launches only, and later launches are errors.
func TestCloseDuringChains(t *testing.T) {
	const rows, cols = 4, 64
	for range 50 {
		d, err := open(runtime.Config{Threads: 2, Compile: runtime.CompileOff})
		if err != nil {
			t.Fatal(err)
		}
		x, err := d.Alloc(rows * cols * 4)
		if err != nil {
			t.Fatal(err)
		}
		y, err := d.Alloc(rows * cols * 4)
		if err != nil {
			t.Fatal(err)
		}
		list := chained(t, d, x, y, rows, cols)
		if err := d.Run(list); err != nil {
			t.Fatal(err)
		}
		started, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			for i := 0; ; i++ {
				if err := d.Run(list); err != nil {
					ended <- err
					return
				}
				if i == 0 {
					close(started)
				}
			}
		}()
		<-started
		closed := make(chan error, 1)
		go func() { closed <- d.Close() }()
		for range 2 {
			select {
			case err := <-closed:
				if err != nil {
					t.Error("Close:", err)
				}
			case err := <-ended:
				if !errors.Is(err, errClosed) {
					t.Error("after Close:", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("Close and a chain wait for each other")
			}
		}
	}
}
