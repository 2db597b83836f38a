package stream

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/engine/jobqueue"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
)

// heldOp is a host op that copies its operand once a condition holds, and a little later. The
// delay only gives a caller that does not wait the time to show it.
func heldOp(lane *HostLane, until func() bool, ended *atomic.Int32) HostOp {
	return HostOp{Lane: lane, Name: "held", DT: ir.Float32, Shape: ir.Shape{2}, Begin: func() HostFunc {
		return func(dst, src []byte, _ error) error {
			for !until() {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(50 * time.Millisecond)
			copy(dst, src)
			ended.Add(1)
			return nil
		}
	}}
}

// TestCloseWaitsForHostOps: Close frees no memory that a host op uses. A run that begins later gets
// ErrClosed and no memory.
func TestCloseWaitsForHostOps(t *testing.T) {
	e := open(t)
	lane := e.d.NewHostLane()
	x, r := e.host(e.place(), ir.Shape{2}, 1, 2), new(Value)
	var ended atomic.Int32
	heldOp(lane, e.d.Closed.Load, &ended).Record(r, x)
	if err := e.d.Close(); err != nil || ended.Load() != 1 {
		t.Fatalf("Close returned when %d of 1 host ops had ended: %v", ended.Load(), err)
	}
	if e := r.mem.Load().Fault.Load(); e != nil {
		t.Errorf("the host op failed: %v", e)
	}
	c, form := new(copies), queue.NewForm(ir.Shape{2})
	late := &HostOp{Lane: lane, Name: "late", DT: ir.Float32, Shape: form.Shape, Begin: c.begin, form: form, in: kind{dt: ir.Float32, form: form}}
	hostInList{late}.Begin(e.d.Default(), jobqueue.Moment{}, x.mem.Load(), r.mem.Load().Block).Wait()
	got, _ := c.fault.Load().(error)
	if e := r.mem.Load().Fault.Load(); e == nil || !errors.Is(e, runtime.ErrClosed) || !errors.Is(got, runtime.ErrClosed) {
		t.Errorf("a run after Close was given the error %v, and its result %v", got, e)
	}
}

// TestWaitWaitsForHostOps: so does Device.Wait.
func TestWaitWaitsForHostOps(t *testing.T) {
	e := open(t)
	r := new(Value)
	var ended atomic.Int32
	heldOp(e.d.NewHostLane(), func() bool { return true }, &ended).Record(r, e.host(e.place(), ir.Shape{2}, 1, 2))
	if err := e.d.Wait(); err != nil || ended.Load() != 1 {
		t.Errorf("Wait returned when %d of 1 host ops had ended: %v", ended.Load(), err)
	}
}

// TestSyncWaitsForHostOps: Sync waits for the stream's own host ops on all lanes, not for those of
// another stream, and returns their error.
func TestSyncWaitsForHostOps(t *testing.T) {
	e := open(t)
	s, other := e.d.NewStream(), e.d.NewStream()
	lanes := []*HostLane{e.d.NewHostLane(), e.d.NewHostLane()}
	var free atomic.Bool
	var ended, late atomic.Int32
	for _, l := range lanes {
		heldOp(l, func() bool { return true }, &ended).Record(new(Value), e.host(Place{S: s}, ir.Shape{2}, 1, 2))
	}
	heldOp(lanes[0], free.Load, &late).Record(new(Value), e.host(Place{S: other}, ir.Shape{2}, 1, 2))
	if err := s.Sync(nil); err != nil || ended.Load() != 2 {
		t.Errorf("Sync returned when %d of 2 host ops had ended: %v", ended.Load(), err)
	}
	if late.Load() != 0 {
		t.Error("the host op of the other stream ended before it could")
	}
	free.Store(true)
	c := &copies{lane: lanes[0], err: errors.New("the wire is cut")}
	c.of(e.host(Place{S: other}, ir.Shape{2}, 1, 2))
	if err := e.d.Sync(nil); !errors.Is(err, c.err) || late.Load() != 1 {
		t.Errorf("Device.Sync returned when %d of 1 host ops had ended: %v", late.Load(), err)
	}
}
