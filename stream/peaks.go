package stream

import (
	"fmt"
	goruntime "runtime"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/plancache/lookup"
)

// Peaks are the highest rates that a machine can reach, 0 if unknown.
type Peaks struct {
	Flops float64 // operations per second
	Bytes float64 // bytes read and written per second
}

// KeepPeaks takes the rates that this process measured and keeps the best known ones. The cache
// on disk has those of earlier processes. The best measurement is the most accurate: other work
// on the machine makes a measurement too low, and nothing makes it too high.
func (d *Device) KeepPeaks(measured Peaks) {
	key := peaksKey()
	best := measured
	if value, ok := d.finder.Cache.Peek(lookup.KindPeaks, key); ok {
		earlier, err := parsePeaks(string(value))
		if err != nil {
			d.finder.Cache.Refuse(lookup.KindPeaks, err)
		}
		best.Flops, best.Bytes = max(best.Flops, earlier.Flops), max(best.Bytes, earlier.Bytes)
		if err == nil && best == earlier {
			d.peaks.Store(&best)
			return
		}
	}
	d.peaks.Store(&best)
	if d.finder.Cache != nil && best != (Peaks{}) {
		d.finder.Cache.Put(lookup.KindPeaks, key, fmt.Appendf(nil, "%g %g\n", best.Flops, best.Bytes)) // Put counts a failure
	}
}

// Peaks returns the best peaks that KeepPeaks found.
func (d *Device) Peaks() Peaks {
	if p := d.peaks.Load(); p != nil {
		return *p
	}
	return Peaks{}
}

// peaksKey returns the cache key, which has everything that peaks depend on.
func peaksKey() string {
	return plancache.JoinKey(machine.Processor()+", "+machine.Level().String(), fmt.Sprintf("%d threads", goruntime.GOMAXPROCS(0)))
}

func parsePeaks(text string) (p Peaks, err error) {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return p, fmt.Errorf("peaks: %d numbers were given, 2 are needed", len(fields))
	}
	for i, to := range []*float64{&p.Flops, &p.Bytes} {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil || !(v >= 0 && v < 1e18) {
			return Peaks{}, fmt.Errorf("peaks: %q is not a rate", fields[i])
		}
		*to = v
	}
	return p, nil
}
