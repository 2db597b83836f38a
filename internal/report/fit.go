package report

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// spansKept is the number of spans that stay while plans and kernels can still be left out.
const spansKept = 1000

// encode returns the report as JSON, of at most limit bytes if leaving out parts achieves that: the
// longest sources first, then the oldest spans, then the plans with the fewest runs and the kernels
// with the least time.
func encode(r *Report, limit int) ([]byte, error) {
	c := clean(r)
	f := fitter{r: c}
	for _, stage := range []func(*fitter){(*fitter).sources, (*fitter).someSpans, (*fitter).plans, (*fitter).kernels, (*fitter).points, (*fitter).allSpans} {
		data, err := marshal(c)
		if err != nil {
			return nil, err
		}
		if f.over = len(data) - limit; f.over <= 0 {
			return data, nil
		}
		// A counter of omissions may be some digits longer than 0 was.
		f.over += 80 * len(c.Devices)
		stage(&f)
		if f.err != nil {
			return nil, f.err
		}
	}
	return marshal(c)
}

// A fitter leaves out parts until over, in bytes of JSON, is gone.
type fitter struct {
	r    *Report
	over int
	err  error
}

// size is the size of a value and a comma.
func (f *fitter) size(v any) int {
	data, err := marshal(v)
	if err != nil {
		f.err = err
	}
	return len(data) + 1
}

func (f *fitter) sources() {
	type text struct {
		device *Device
		source *Source
		size   int
	}
	var all []text
	for i := range f.r.Devices {
		d := &f.r.Devices[i]
		for k := range d.Kernels {
			for s := range d.Kernels[k].Sources {
				src := &d.Kernels[k].Sources[s]
				all = append(all, text{d, src, f.size(src.Text)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b text) int { return cmp.Compare(b.size, a.size) })
	for _, t := range all {
		if f.over <= 0 || t.source.Text == "" {
			return
		}
		t.source.Text = ""
		t.device.SourcesLeft++
		f.over -= t.size - len(`"",`)
	}
}

func (f *fitter) someSpans() { f.spans(spansKept) }
func (f *fitter) allSpans()  { f.spans(0) }

// spans leaves out the oldest spans of the device with the most, down to keep for each.
func (f *fitter) spans(keep int) {
	for f.over > 0 {
		var d *Device
		for i := range f.r.Devices {
			if c := &f.r.Devices[i]; len(c.Spans) > keep && (d == nil || len(c.Spans) > len(d.Spans)) {
				d = c
			}
		}
		if d == nil {
			return
		}
		f.over -= f.size(d.Spans[0])
		d.Spans = d.Spans[1:]
		d.SpansLeft++
	}
}

func (f *fitter) plans() {
	for i := range f.r.Devices {
		d := &f.r.Devices[i]
		rare := make([]int, len(d.Plans))
		for p := range rare {
			rare[p] = p
		}
		slices.SortStableFunc(rare, func(a, b int) int { return cmp.Compare(d.Plans[a].Runs, d.Plans[b].Runs) })
		out := map[int]bool{}
		for _, p := range rare {
			if f.over <= 0 {
				break
			}
			f.over -= f.size(d.Plans[p])
			out[p] = true
			d.PlansLeft++
		}
		kept := d.Plans[:0]
		for p := range d.Plans {
			if !out[p] {
				kept = append(kept, d.Plans[p])
			}
		}
		d.Plans = kept
	}
}

// kernels leaves out the last ones, which took least; references to them become -1.
func (f *fitter) kernels() {
	for i := range f.r.Devices {
		d := &f.r.Devices[i]
		for f.over > 0 && len(d.Kernels) > 0 {
			last := len(d.Kernels) - 1
			f.over -= f.size(d.Kernels[last])
			d.Kernels = d.Kernels[:last]
			d.KernelsLeft++
		}
		for s := range d.Spans {
			if k := d.Spans[s].Kind; (k == Launch || k == Compile || k == Tune) && d.Spans[s].Ref >= len(d.Kernels) {
				d.Spans[s].Ref = -1
			}
		}
		for p := range d.Plans {
			d.Plans[p].Kernels = slices.Clone(d.Plans[p].Kernels)
			for k, at := range d.Plans[p].Kernels {
				if at >= len(d.Kernels) {
					d.Plans[p].Kernels[k] = -1
				}
			}
		}
	}
}

// points leaves out every second point of memory, but keeps the higher of each pair.
func (f *fitter) points() {
	for i := range f.r.Devices {
		d := &f.r.Devices[i]
		for f.over > 0 && len(d.Memory) > 2 {
			kept := d.Memory[:0]
			for p := 0; p < len(d.Memory); p += 2 {
				m := d.Memory[p]
				if p+1 < len(d.Memory) && d.Memory[p+1].Live+d.Memory[p+1].Pool > m.Live+m.Pool {
					m = d.Memory[p+1]
				}
				kept = append(kept, m)
			}
			f.over -= (len(d.Memory) - len(kept)) * f.size(kept[0])
			d.Memory = kept
		}
	}
}

// clean makes a copy that can be written as JSON and shortened: NaN and infinite floats become 0,
// times are rounded to nanoseconds, years have four digits.
func clean(r *Report) *Report {
	c := *r
	year(&c.Made)
	c.Devices = slices.Clone(c.Devices)
	for i := range c.Devices {
		d := &c.Devices[i]
		year(&d.Opened)
		number(&d.Now, &d.Flops, &d.Bytes, &d.Peak.Time)
		d.Plans = slices.Clone(d.Plans)
		d.Kernels = slices.Clone(d.Kernels)
		for k := range d.Kernels {
			number(&d.Kernels[k].Micros, &d.Kernels[k].Bytes, &d.Kernels[k].Flops)
			d.Kernels[k].Sources = slices.Clone(d.Kernels[k].Sources)
		}
		d.Spans = slices.Clone(d.Spans)
		for s := range d.Spans {
			number(&d.Spans[s].Start, &d.Spans[s].Dur)
		}
		d.Memory = slices.Clone(d.Memory)
		for p := range d.Memory {
			number(&d.Memory[p].Time)
		}
	}
	return &c
}

func number(list ...*float64) {
	for _, x := range list {
		if math.IsNaN(*x) || math.IsInf(*x, 0) {
			*x = 0
		} else if math.Abs(*x) < 1e15 {
			*x = math.Round(*x*1000) / 1000
		}
	}
}

func year(t *time.Time) {
	if y := t.Year(); y < 0 || y > 9999 {
		*t = time.Time{}
	}
}
