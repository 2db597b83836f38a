package main

import (
	"path/filepath"
	"testing"
)

// TestTiny checks that every way to run a graph gives the same as plain Go, and that a bound one
// allocates nothing.
func TestTiny(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	code, out, errs := fusebench("tiny", "-tier", "auto", "-runs", "2", "-warmup", "1", "-format", "json", "-o", file)
	if code != 0 || out != "" || errs != "" {
		t.Fatalf("exit %d, %q, %q", code, out, errs)
	}
	rows := readReport(t, file).Rows
	if want := 2*(1+len(tinyHows)) + 2 + 3; len(rows) != want {
		t.Errorf("%d rows, want %d", len(rows), want)
	}
	for _, r := range rows {
		switch {
		case r.Error != "" || r.Tiny == nil || !(r.Tiny.NS > 0) || !(r.MedianMS > 0):
			t.Errorf("%s %s: %+v", r.Variant, r.Mode, r)
		case (r.Mode == bound || r.Mode == looped) && graphs[r.Variant].plain != nil && (r.Tiny.Allocs != 0 || r.Kernels == 0):
			t.Errorf("%s %s: %v allocations, %v kernels", r.Variant, r.Mode, r.Tiny.Allocs, r.Kernels)
		}
	}
}

func TestTinyUsage(t *testing.T) {
	for _, args := range [][]string{{"-variants", "large"}, {"-how", "lazy"}, {"-how", ""}, {"-modes", "unfused"}, {"more"}} {
		if code, _, _ := fusebench(append([]string{"tiny"}, args...)...); code != exitUsage {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}
