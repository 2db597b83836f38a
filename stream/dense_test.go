package stream

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/ir"
	_ "github.com/millrace-go/millrace/runtime/cpu"
)

// Boxes cover all elements once and in order, however small they must be. Gather finds the same
// elements in them.
func TestBoxesAreTheWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 14))
	for range 300 {
		shape := make(ir.Shape, rng.IntN(5))
		for k := range shape {
			shape[k] = 1 + rng.IntN(6)
		}
		view := fusion.View{Offset: rng.Int64N(50), Stride: make([]int64, len(shape))}
		for k := range shape {
			view.Stride[k] = rng.Int64N(40) - 10
		}
		var want, got []int64
		whole := func(b memory.Box) (list []int64) {
			var at [ir.MaxRank]int
			for range b.Shape.Elems() {
				list = append(list, memory.Address(&b.View, at[:len(b.Shape)]))
				for k := len(b.Shape) - 1; k >= 0; k-- {
					if at[k]++; at[k] < b.Shape[k] {
						break
					}
					at[k] = 0
				}
			}
			return list
		}
		want = whole(memory.Box{Shape: shape, View: view})
		most := 1 + rng.IntN(40)
		err := memory.EachBox(shape, view, most, func(at int64, b memory.Box) error {
			if int(at) != len(got) || b.Shape.Elems() > most || b.Shape.Elems() == 0 {
				return fmt.Errorf("%v at element %d, behind %d", b.Shape, at, len(got))
			}
			got = append(got, whole(b)...)
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v in boxes of %d, strides %v: %v, want %v, %v", shape, most, view.Stride, got, want, err)
		}
	}
}

// If the device cannot make a view dense, the host does. It needs only the memory of a small
// part, and the fallback is counted.
func TestViewsAreReadWithoutTheDevice(t *testing.T) {
	d, err := Open(device.Options{Device: "cpu", Threads: 1, Tier: device.TierInterpreter})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const side = 2048 // 16 MiB
	data := make([]byte, 4*side*side)
	for i := range side * side {
		binary.NativeEndian.PutUint32(data[4*i:], uint32(i))
	}
	var x, v Value
	FromHost(&x, Place{S: d.Default()}, ir.Int32, ir.Shape{side, side}, data)
	Record(&v, Place{}, ir.Permute, ir.Invalid, nil, &ir.Attr{Axes: []int{1, 0}}, []Arg{{V: &x}})
	dst := make([]byte, len(data))
	for _, point := range []string{"", fault.Launch, fault.Alloc} {
		clear(dst)
		before := d.Stats()
		fault.Set(point, -1)
		var m0, m1 goruntime.MemStats
		goruntime.ReadMemStats(&m0)
		err := Read(&v, dst)
		goruntime.ReadMemStats(&m1)
		fault.Set(point, 0)
		if err != nil {
			t.Errorf("%q: %v", point, err)
			continue
		}
		for i := range side * side {
			if got, want := binary.NativeEndian.Uint32(dst[4*i:]), uint32(i%side*side+i/side); got != want {
				t.Errorf("%q: element %d is %d, want %d", point, i, got, want)
				break
			}
		}
		after := d.Stats()
		if n := after.Fallbacks - before.Fallbacks; n != 1 && point != "" || n != 0 && point == "" {
			t.Errorf("%q: %d fallbacks", point, n)
		}
		if after.LiveBytes != before.LiveBytes {
			t.Errorf("%q: %d bytes live, %d before", point, after.LiveBytes, before.LiveBytes)
		}
		if n := m1.TotalAlloc - m0.TotalAlloc; n > 2*uint64(len(data)) {
			t.Errorf("%q: took %d bytes of Go's heap", point, n)
		}
	}
}
