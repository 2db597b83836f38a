package stream

import (
	"encoding/binary"
	"errors"
	"math"
	goruntime "runtime"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/testing/refdev"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

func (e *env) shared(shape ir.Shape, vals ...float32) (*Value, []byte) {
	e.t.Helper()
	v := new(Value)
	data, err := Share(v, e.place(), ir.Float32, shape)
	if err != nil {
		e.t.Fatal(err)
	}
	put(data, vals...)
	return v, data
}

func put(data []byte, vals ...float32) {
	for i, x := range vals {
		binary.NativeEndian.PutUint32(data[4*i:], math.Float32bits(x))
	}
}

// The slice starts as zeros, and ops read the elements that were written to it.
func TestShare(t *testing.T) {
	e := open(t)
	x, data := e.shared(ir.Shape{2, 2})
	e.want(x, 0, 0, 0, 0)
	for turn := range 3 {
		base := float32(turn)
		put(data, base, 1, 2, 3)
		y := add(e, mul(e, x, 2), 1)
		if err := Flush(y); err != nil {
			t.Fatal(err)
		}
		put(data, 9, 9, 9, 9)
		e.want(y, 2*base+1, 3, 5, 7)
	}
	e.want(x, 9, 9, 9, 9)
}

// Shared reports whether other handles use the memory of a shared tensor.
func TestSharedAlone(t *testing.T) {
	e := open(t)
	x, data := e.shared(ir.Shape{2, 3}, 1, 2, 3, 4, 5, 6)
	is := func(what string, v *Value, there, want bool) {
		t.Helper()
		got, alone := Shared(v)
		if alone != want || (got != nil) != there || there && &got[0] != &data[0] {
			t.Errorf("%s: %d bytes, alone %v; want %v, %v", what, len(got), alone, there, want)
		}
	}
	is("made so", x, true, true)
	same, other := new(Value), e.d.NewStream()
	To(same, Place{S: other}, x)
	is("with an alias", x, true, false)
	is("an alias", same, true, false)
	Release(x)
	is("released", x, false, false)
	is("the alias that is left", same, true, true)
	turned := e.record(ir.Permute, nil, &ir.Attr{Axes: []int{1, 0}}, t1(same))
	is("a view", turned, true, false)
	Release(same)
	is("a view that is left", turned, true, false)
	row := e.record(ir.Slice, ir.Shape{1, 2}, &ir.Attr{Start: []int{0, 0}, Step: []int{1, 1}}, t1(turned))
	is("a part", row, true, false)
	is("elsewhere", e.host(e.place(), ir.Shape{1}, 1), false, false)
	is("pending", mul(e, row, 2), false, false)
	is("nothing", new(Value), false, false)
}

// A result of a tensor that is given away uses the same memory.
func TestSharedInPlace(t *testing.T) {
	e := open(t)
	for range 2 { // explored, then known
		x, data := e.shared(ir.Shape{3}, 1, 2, 3)
		y := mul(e, x, 2)
		Release(x)
		if err := Flush(y); err != nil {
			t.Fatal(err)
		}
		if got, alone := Shared(y); !alone || &got[0] != &data[0] {
			t.Errorf("%d bytes, alone %v", len(got), alone)
		}
		put(data, 7)
		e.want(y, 7, 4, 6)
	}
}

// noShares is a device without memory of Go's heap.
type noShares struct{ runtime.Device }

func TestShareRefused(t *testing.T) {
	e := open(t, func(o *device.Options) { o.MemoryLimit = 1 << 10 })
	defer fault.Reset()
	refused := func(p Place, dt ir.DType, shape ir.Shape, want error) {
		t.Helper()
		v := new(Value)
		data, err := Share(v, p, dt, shape)
		if data != nil || !errors.Is(err, want) || !errors.Is(v.Err(), want) {
			t.Errorf("%v of %v: %v, %v; want %v", shape, dt, err, v.Err(), want)
		}
	}
	refused(e.place(), ir.Float32, ir.Shape{-1}, ir.ErrShape)
	refused(e.place(), ir.Float32, ir.Shape{1 << 20}, runtime.ErrOutOfMemory)
	refused(e.place(), ir.Invalid, ir.Shape{1}, ir.ErrUnsupported)
	fault.Set(fault.Alloc, -1)
	refused(e.place(), ir.Float32, ir.Shape{1}, runtime.ErrOutOfMemory)
	fault.Reset()
	// Dropped tensors make room.
	for range 10 {
		e.shared(ir.Shape{200})
	}
	d, err := OpenOn(noShares{refdev.New(runtime.Config{})}, device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	refused(Place{S: d.Default()}, ir.Float32, ir.Shape{1}, ir.ErrUnsupported)
	if err := e.d.Close(); err != nil {
		t.Fatal(err)
	}
	refused(e.place(), ir.Float32, ir.Shape{1}, runtime.ErrClosed)
}

// The memory of a slice is not reused after its tensor was released, or was dropped and
// collected.
func TestSharedOutlives(t *testing.T) {
	e := open(t)
	live := e.d.Stats().LiveBytes
	x, first := e.shared(ir.Shape{2}, 1, 2)
	_, second := e.shared(ir.Shape{2}, 3, 4)
	Release(x)
	for range 3 {
		goruntime.GC()
		e.host(e.place(), ir.Shape{2}, 8, 8)
		e.shared(ir.Shape{2}, 9, 9)
	}
	for i, data := range [][]byte{first, second} {
		if got := math.Float32frombits(binary.NativeEndian.Uint32(data[4:])); got != float32(2*i+2) {
			t.Errorf("slice %d holds %v", i, got)
		}
	}
	waitFor(t, e.d, "at last", func(s device.Stats) bool { return s.LiveBytes-live <= 100 })
}
