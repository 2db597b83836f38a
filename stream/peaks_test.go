package stream

import (
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/plancache/lookup"
)

// The best measurement of a machine counts, whichever process made it. A damaged entry is
// ignored.
func TestPeaksAreTheBest(t *testing.T) {
	dir := t.TempDir()
	opened := func() *Device {
		return open(t, func(o *device.Options) { o.Cache = dir }).d
	}
	a := opened()
	if a.Peaks() != (Peaks{}) {
		t.Errorf("peaks of nobody: %v", a.Peaks())
	}
	a.KeepPeaks(Peaks{Flops: 1e9, Bytes: 4e9})
	if a.Peaks() != (Peaks{Flops: 1e9, Bytes: 4e9}) {
		t.Errorf("of one measurement: %v", a.Peaks())
	}
	b := opened()
	b.KeepPeaks(Peaks{Flops: 3e9, Bytes: 2e9})
	c := opened()
	c.KeepPeaks(Peaks{})
	for _, d := range []*Device{b, c} {
		if got := d.Peaks(); got != (Peaks{Flops: 3e9, Bytes: 4e9}) {
			t.Errorf("the best of two measurements: %v", got)
		}
	}
	for _, damaged := range []string{"", "1", "1 2 3", "NaN 1", "-1 1", "1e300 1", "x y"} {
		if err := c.finder.Cache.Put(lookup.KindPeaks, peaksKey(), []byte(damaged)); err != nil {
			t.Fatal(err)
		}
		d := opened()
		d.KeepPeaks(Peaks{Flops: 5, Bytes: 6})
		if got := d.Peaks(); got != (Peaks{Flops: 5, Bytes: 6}) || d.Stats().Cache.Refused+d.Stats().Cache.Damaged == 0 {
			t.Errorf("after the entry %q: %v, %+v", damaged, got, d.Stats().Cache)
		}
	}
}
