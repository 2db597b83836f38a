package apitest

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestBitcast reads the bits of numbers as numbers of every other width, and back.
func TestBitcast(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		data := []uint32{0, 1, 0xdeadbeef, 0x80000000, 0x3f800000, 0x7f800000, 0xffffffff, 0x01020304}
		x := millrace.FromSliceOn(dev, data, 2, 4)
		var raw []byte
		for _, v := range data {
			raw = binary.LittleEndian.AppendUint32(raw, v)
		}
		for _, c := range []struct {
			dt    millrace.DType
			shape []int
		}{
			{millrace.Uint8, []int{2, 4, 4}}, {millrace.Int8, []int{2, 4, 4}}, {millrace.Uint16, []int{2, 4, 2}},
			{millrace.Int16, []int{2, 4, 2}}, {millrace.Int32, []int{2, 4}},
		} {
			if !dev.Supports(c.dt) {
				continue
			}
			y := x.Bitcast(c.dt)
			if !slices.Equal(y.Shape(), c.shape) {
				t.Errorf("%v: %v, want %v (%v)", c.dt, y.Shape(), c.shape, y.Err())
			}
			back, err := millrace.Values[uint32](y.Bitcast(millrace.Uint32))
			if err != nil || !slices.Equal(back, data) {
				t.Errorf("%v and back: %#x, %v", c.dt, back, err)
			}
			if c.dt == millrace.Uint8 {
				if got, err := millrace.Values[uint8](y); err != nil || !slices.Equal(got, raw) {
					t.Errorf("bytes %x, want %x (%v)", got, raw, err)
				}
			}
		}
		if !dev.Supports(millrace.Uint64) {
			if err := x.Reshape(4, 2).Bitcast(millrace.Uint64).Err(); err == nil {
				t.Error("no error of a dtype that the device lacks")
			}
			return
		}
		wide, err := millrace.Values[uint64](x.Reshape(4, 2).Bitcast(millrace.Uint64))
		for i, v := range wide {
			if want := binary.LittleEndian.Uint64(raw[8*i:]); v != want {
				t.Errorf("%d: %#x, want %#x", i, v, want)
			}
		}
		if len(wide) != 4 || err != nil {
			t.Errorf("%d elements, %v", len(wide), err)
		}
	})
}

// TestBitcastNaN: the bits of a NaN are not exposed, and those of other floats are.
func TestBitcastNaN(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		floats := []float32{1, -2.5, float32(math.Inf(-1)), math.Float32frombits(0xffc12345), math.Float32frombits(0x7fc00001), float32(math.Copysign(0, -1))}
		x := millrace.FromSliceOn(dev, floats)
		got, err := millrace.Values[uint32](x.Bitcast(millrace.Uint32))
		want := []uint32{0x3f800000, 0xc0200000, 0xff800000, 0x7fc00000, 0x7fc00000, 0x80000000}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%#x, want %#x (%v)", got, want, err)
		}
	})
}

// TestPhilox: Philox on tensors equals the result element by element, in every shape; the counter,
// its high half and the key all matter.
func TestPhilox(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		at := millrace.ArangeOn(dev, millrace.Uint32, 0, 12, 1)
		key := millrace.ScalarOn(dev, uint32(0xa4093822))
		high := millrace.ScalarOn(dev, uint32(7))
		all, err := millrace.Values[uint32](at.Philox(high, key))
		if err != nil {
			t.Fatal(err)
		}
		shaped, err := millrace.Values[uint32](at.Reshape(3, 4).Philox(high, key).T())
		for i, v := range shaped {
			if want := all[i%3*4+i/3]; v != want {
				t.Errorf("%d: %#x, want %#x", i, v, want)
			}
		}
		other, err2 := millrace.Values[uint32](at.Philox(key, high))
		seen := map[uint32]bool{}
		for _, v := range append(all, other...) {
			seen[v] = true
		}
		if err != nil || err2 != nil || len(seen) != 24 {
			t.Errorf("%d of 24 differ (%v, %v)", len(seen), err, err2)
		}
	})
}
