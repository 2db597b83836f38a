package main

import (
	"fmt"
	goruntime "runtime"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/paired"
	"github.com/millrace-go/millrace/internal/roofline"
)

// peakTime is how long a thread multiplies and adds per measurement.
const peakTime = 2 * time.Millisecond

// peakSizes are the numbers of bytes that are copied and read: sizes of caches, and of memory.
var peakSizes = []int{16 << 10, 256 << 10, 4 << 20, 128 << 20}

func setupPeaks() ([]cli.Flag, action) {
	c := &config{modes: list{fused}, tier: "auto"}
	flags := append(c.timingFlags(),
		&cli.IntFlag{Name: "threads", Destination: &c.threads, Config: decimal, Validator: from(1, maxThreads), DefaultText: "as GOMAXPROCS", Usage: "`threads` beside one"},
		outFlag(&c.out))
	return flags, func(io streams, args []string) error {
		if err := c.checkTiming(args); err != nil {
			return err
		}
		return timePeaks(c, io)
	}
}

// timePeaks measures the most that one core can do, and that all can do together.
func timePeaks(c *config, io streams) error {
	r, err := roofline.New()
	if err != nil {
		return err
	}
	counts := []int{1}
	if c.threads == 0 {
		c.threads = goruntime.GOMAXPROCS(0)
	}
	if c.threads > 1 {
		counts = append(counts, c.threads)
	}
	largest := peakSizes[len(peakSizes)-1]
	host := newHostMemory(largest, c.threads)
	var all []*contestant
	var rows []Row
	add := func(threads int, variant string, bytes int, run func() time.Duration) {
		row := emptyRow()
		row.Suite, row.Device, row.Variant, row.Threads, row.IOBytes = "peaks", "cpu", variant, threads, int64(bytes)
		rows = append(rows, row)
		all = append(all, &contestant{name: variant, run: func() (time.Duration, error) { return run(), nil }})
	}
	for _, n := range counts {
		for _, dt := range []dtype{{millrace.Float32}, {millrace.Float64}} {
			add(n, "multiply-add "+dt.String(), 0, func() time.Duration { return perGiga(r.MultiplyAdd(n, dt.size(), peakTime)) })
		}
		for _, bytes := range peakSizes {
			dst, src := host.dst[:bytes], host.src[:bytes]
			again := max(1<<20/bytes, 1) // enough to be timed
			repeat := func(f func() time.Duration) func() time.Duration {
				return func() (took time.Duration) {
					for range again {
						took += f()
					}
					return took / time.Duration(again)
				}
			}
			text := megabytes(int64(bytes)) + " MB"
			add(n, "copy "+text, 2*bytes, repeat(func() time.Duration { return r.Copy(n, dst, src, false) }))
			if bytes == largest {
				add(n, "copy past caches "+text, 2*bytes, repeat(func() time.Duration { return r.Copy(n, dst, src, true) }))
			}
			add(n, "read "+text, bytes, repeat(func() time.Duration { return r.Read(n, src) }))
		}
	}
	show := newProgress(io.err)
	start := time.Now()
	if err := warm(c.warmup, start.Add(c.budget/3), all, nil, func(k *contestant) { show.say("%s, warm-up", k.name) }); err != nil {
		return err
	}
	interleave(time.Now, c.budget-time.Since(start), c.runs, all, func(round int, k *contestant) {
		show.part(round, c.runs, "%s, run %d of %d", k.name, round+1, c.runs)
	})
	show.clear()
	for i, k := range all {
		row := &rows[i]
		row.time(k, nil)
		if row.IOBytes == 0 {
			row.GFLOPS, row.GBPerS = number(1/paired.Median(k.times)), absent
		} else {
			row.GBPerS = number(float64(row.IOBytes) / paired.Median(k.times) / 1e9)
		}
	}
	return c.deliver(io, &Report{Machine: thisMachine(), Rows: rows})
}

// perGiga returns the time of a thousand million operations.
func perGiga(ops float64, took time.Duration) time.Duration {
	return time.Duration(float64(took) / ops * 1e9)
}

// peakBases are base contestants that only do what a core does best. They are nil if there is no
// machine code for the processor.
type peakBases struct {
	r      *roofline.Roof
	flops  *contestant // seconds for 1e9 operations
	copies map[int][]*contestant
	reads  map[int]*contestant
}

// newPeakBases returns nil on processors without machine code.
func newPeakBases() *peakBases {
	r, err := roofline.New()
	if err != nil {
		return nil
	}
	return &peakBases{r: r, copies: map[int][]*contestant{}, reads: map[int]*contestant{}}
}

// add makes the contestants that a problem is compared with.
func (rs *peakBases) add(c *config, p *problem, host *hostMemory, add func(name string, run func() (time.Duration, error)) *contestant) {
	if p.flops > 0 && rs.flops == nil {
		rs.flops = add("multiply and add", func() (time.Duration, error) {
			return perGiga(rs.r.MultiplyAdd(host.threads, c.dtype.computed(), peakTime)), nil
		})
	}
	if read := p.inputBytes(); p.reads && rs.reads[read] == nil {
		rs.reads[read] = add("read at most", func() (time.Duration, error) {
			return rs.r.Read(host.threads, host.src[:read]), nil
		})
	}
	if half := p.bytes(c.dtype) / 2; !p.reads && rs.copies[half] == nil {
		for _, past := range []bool{false, true} {
			rs.copies[half] = append(rs.copies[half], add(fmt.Sprintf("copy at most, past the caches %v", past), func() (time.Duration, error) {
				return rs.r.Copy(host.threads, host.dst[:half], host.src[:half], past), nil
			}))
		}
	}
}

// of returns the contestants for a problem.
func (rs *peakBases) of(c *config, p *problem) []*contestant {
	var list []*contestant
	if p.flops > 0 {
		list = append(list, rs.flops)
	}
	if p.reads {
		return append(list, rs.reads[p.inputBytes()])
	}
	return append(list, rs.copies[p.bytes(c.dtype)/2]...)
}

// share fills the row's share of the nearer peak: the least time that the problem's operations or
// its bytes take, divided by the time that it took.
func (rs *peakBases) share(r *Row, c *config, p *problem, own *contestant) {
	kind, near := "copy", (*contestant)(nil)
	scale := 1.0
	if p.reads {
		kind, near = "read", rs.reads[p.inputBytes()]
	} else {
		for _, k := range rs.copies[p.bytes(c.dtype)/2] {
			near = faster(near, k)
		}
	}
	if p.flops > 0 && len(rs.flops.times) > 0 {
		if giga := p.flops / 1e9; near == nil || paired.Median(rs.flops.times)*giga > paired.Median(near.times) {
			kind, near, scale = "multiply-add", rs.flops, giga
		}
	}
	if near == nil || len(near.times) == 0 {
		return
	}
	least, times := pairs(near, own)
	for i := range least {
		least[i] *= scale
	}
	e := paired.Ratio(least, times)
	r.PeakKind = kind
	r.PeakShare, r.PeakShareLo, r.PeakShareHi = number(e.Mid), number(e.Lo), number(e.Hi)
}
