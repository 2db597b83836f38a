package apitest

import (
	"testing"

	"github.com/millrace-go/millrace"
)

// TestHalves: a reduction written as twenty stages, each of which combines the halves of the
// previous one: a value of the last stage depends on a million positions.
func TestHalves(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		const n = 1 << 20
		data := make([]int32, n)
		want := int32(0)
		for i := range data {
			data[i] = int32(i) * 0x9e3779b
			want ^= data[i]
		}
		x := millrace.FromSliceOn(dev, data, n)
		for h := n / 2; h > 0; h /= 2 {
			x = x.Slice(millrace.R(0, h)).BitXor(x.Slice(millrace.R(h, 2*h)))
		}
		got, err := millrace.Item[int32](x.Reshape())
		if err != nil || got != want {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	})
}
