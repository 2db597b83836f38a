package stream

import (
	"sync"
	"testing"

	"github.com/millrace-go/millrace/internal/refdev"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// strict is a device that complains of launches on buffers given back before
// they ran: a pool may have handed those to somebody else by then.
type strict struct {
	*refdev.Device
	t     *testing.T
	mu    sync.Mutex
	freed map[runtime.Buffer]bool
}

func openStrict(t *testing.T, o Options) *env {
	d, err := OpenOn(&strict{Device: refdev.New(runtime.Config{}), t: t, freed: map[runtime.Buffer]bool{}}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return &env{t, d}
}

func (s *strict) Free(b runtime.Buffer) {
	s.mu.Lock()
	if s.freed[b] {
		s.t.Error("a buffer was freed twice")
	}
	s.freed[b] = true
	s.mu.Unlock()
	s.Device.Free(b)
}

func (s *strict) Run(ls []runtime.Launch) error {
	s.mu.Lock()
	for i := range ls {
		for _, a := range ls[i].Args {
			if a.Buf != nil && s.freed[a.Buf] {
				s.t.Errorf("launch %d runs on a buffer that was freed before", i)
			}
		}
	}
	s.mu.Unlock()
	return s.Device.Run(ls)
}

// Memory of temporaries is the plan's until it was submitted, and later steps
// use it again.
func TestTemporariesAreFreedAfterTheirPlan(t *testing.T) {
	e := openStrict(t, Options{Fusion: FusionOff})
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	y := x
	for range 4 {
		mask := e.op(ir.Lt, t1(y), f1(2)) // one byte each: nothing is in place
		z := new(Value)
		Record(z, Place{}, ir.Cast, ir.Float32, nil, nil, []Arg{t1(mask)})
		Release(mask)
		if y != x {
			Release(y)
		}
		y = z
	}
	e.want(y, 1, 1)
	if n := e.d.Stats().Runtime.Allocs; n > 4 {
		t.Errorf("%d allocations", n)
	}
	Release(x)
	Release(y)
	if live := e.d.Stats().LiveBytes; live != 0 {
		t.Errorf("%d live bytes", live)
	}
}
