package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/machine"
)

// TestPeaks runs the whole command and checks that every rate is measured, by one thread and by
// two.
func TestPeaks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	code, out, errs := fusebench("peaks", "-threads", "2", "-runs", "2", "-warmup", "0", "-format", "json", "-o", file)
	if machine.Level() == machine.None {
		if code != exitFailed || !strings.Contains(errs, "no machine code") {
			t.Fatalf("exit %d, %q, without machine code", code, errs)
		}
		return
	}
	if code != 0 || out != "" || errs != "" {
		t.Fatalf("exit %d, %q, %q", code, out, errs)
	}
	rows := readReport(t, file).Rows
	threads := map[int]int{}
	for _, r := range rows {
		threads[r.Threads]++
		multiplies := strings.HasPrefix(r.Variant, "multiply")
		if r.Runs != 2 || multiplies != (r.GFLOPS > 0) || multiplies == (r.GBPerS > 0) {
			t.Errorf("%s by %d threads: %d runs, %v GFLOP/s, %v GB/s", r.Variant, r.Threads, r.Runs, r.GFLOPS, r.GBPerS)
		}
	}
	if threads[1] != 11 || threads[2] != 11 {
		t.Errorf("rows by threads: %v", threads)
	}
}

// TestPeakShare checks that the share is of the nearer peak, and is the median of the rounds'
// ratios.
func TestPeakShare(t *testing.T) {
	at := func(times ...float64) *contestant {
		k := &contestant{times: times}
		for i := range times {
			k.rounds = append(k.rounds, i)
		}
		return k
	}
	own := at(10, 20, 10)
	small := &oracle{units: 1, size: 4}
	c := &config{dtype: dtype{millrace.Float32}}
	peaks := func(bytes int) *peakBases {
		return &peakBases{
			flops: at(1, 2, 1), reads: map[int]*contestant{bytes: at(7, 14, 7)},
			copies: map[int][]*contestant{(bytes + 4*small.elements()) / 2: {at(6, 12, 6), at(5, 10, 5)}},
		}
	}
	for _, q := range []struct {
		p    *problem
		kind string
		want number
	}{
		{&problem{oracle: small}, "copy", 0.5},
		{&problem{oracle: small, flops: 8e9}, "multiply-add", 0.8},
		{&problem{oracle: small, flops: 1e9}, "copy", 0.5},
		{&problem{oracle: small, reads: true}, "read", 0.7},
	} {
		row := emptyRow()
		peaks(q.p.inputBytes()).share(&row, c, q.p, own)
		if row.PeakKind != q.kind || row.PeakShare != q.want {
			t.Errorf("%v of the %s peak, want %v of %s", row.PeakShare, row.PeakKind, q.want, q.kind)
		}
	}
}
