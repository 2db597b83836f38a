//go:build unix

package calls_test

import (
	"syscall"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/paired"
)

// BenchmarkSeveralReads compares two reads of a costly result, one after the other, with one read
// of both, by processor time: in the first turn of a new device without a cache, and in the tenth.
// The result has 3,000,000 elements of twenty operations; its mean is read, and then another
// statistic. Figures are medians of rounds; the order in a round alternates.
//
//	go test . -run '^$' -bench SeveralReads -benchtime 10x
func BenchmarkSeveralReads(b *testing.B) {
	for _, c := range []struct {
		name   string
		second func(p *millrace.Tensor) *millrace.Tensor
	}{
		{"maximum", func(p *millrace.Tensor) *millrace.Tensor { return p.Max() }},
		{"deviation", func(p *millrace.Tensor) *millrace.Tensor { return p.Std(1) }},
	} {
		b.Run(c.name, func(b *testing.B) { severalReads(b, c.second) })
	}
}

func severalReads(b *testing.B, second func(p *millrace.Tensor) *millrace.Tensor) {
	const turns = 10
	used := func() float64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
	}
	turn := func(d *millrace.Device, seed uint64, apart bool) float64 {
		x := millrace.NormalOn(d, millrace.Float32, seed, 3_000_000)
		p := x
		for range 5 {
			p = p.Tanh().MulScalar(1.1).Exp().SubScalar(1)
		}
		start := used()
		read := func(t *millrace.Tensor) {
			if _, err := millrace.Item[float32](t); err != nil {
				b.Fatal(err)
			}
		}
		mean := p.Mean()
		if apart {
			read(mean)
		}
		other := second(p)
		read(other)
		read(mean)
		return used() - start
	}
	var took [2][turns][]float64
	var ratios [turns][]float64
	for i := range b.N {
		for k := range took {
			k = (k + i) % 2
			d, err := millrace.Open("cpu:cache=off")
			if err != nil {
				b.Fatal(err)
			}
			for t := range turns {
				took[k][t] = append(took[k][t], turn(d, uint64(t+1), k == 0))
			}
			if err := d.Close(); err != nil {
				b.Fatal(err)
			}
		}
		for t := range turns {
			ratios[t] = append(ratios[t], took[0][t][i]/took[1][t][i])
		}
	}
	b.ReportMetric(0, "ns/op")
	for t, name := range map[int]string{0: "first", turns - 1: "tenth"} {
		b.ReportMetric(paired.Median(took[0][t]), name+"-apart-ms")
		b.ReportMetric(paired.Median(took[1][t]), name+"-one-ms")
		b.ReportMetric(paired.Median(ratios[t]), name+"-ratio")
	}
}
