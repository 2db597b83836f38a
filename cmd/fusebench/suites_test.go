package main

import (
	"path/filepath"
	"testing"

	"github.com/millrace-go/millrace/internal/machine"
	_ "github.com/millrace-go/millrace/internal/testing/refdev" // slow, but it has every operation
)

// small has sizes that the interpreter of the reference device runs quickly.
var small = map[string][]string{
	"gelu":      {"-shape", "3,5,16"},
	"softmax":   {"-shape", "3,5,16"},
	"layernorm": {"-shape", "3,5,16"},
	"attention": {"-shape", "2,2,9,4"},
	"matmul":    {"-variants", "8,8+gelu,3x5x7,3x5x7+gelu"},
	"mlp":       {"-shape", "4,6,10"},
	"reduce":    {"-shape", "3,5,16"},
	"conv":      {"-shape", "2,3,5,6"},
}

// TestSuites runs the whole command of every suite, and checks what does not depend on the
// machine.
func TestSuites(t *testing.T) {
	for _, s := range suites {
		for _, device := range []string{"ref", "cpu"} {
			t.Run(s.name+"/"+device, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "r.json")
				args := append([]string{s.name, "-device", device, "-runs", "2", "-warmup", "1", "-tier", "0", "-format", "json", "-o", file}, small[s.name]...)
				code, out, errs := fusebench(args...)
				if code != 0 || out != "" || errs != "" {
					t.Fatalf("exit %d, %q, %q", code, out, errs)
				}
				for _, row := range readReport(t, file).Rows {
					checkRow(t, row)
					if device == "ref" { // its pool rounds no sizes up
						checkPeak(t, row)
					}
				}
			})
		}
	}
}

func checkRow(t *testing.T, row Row) {
	t.Helper()
	what := row.Variant + " " + row.Mode
	if row.Error != "" || row.Suite == "" || row.Runs != 2 || row.ExplorationsHot+row.CompilesHot != 0 {
		t.Errorf("%s: error %q, %d runs, %d explorations and %d compiles in them", what, row.Error, row.Runs, row.ExplorationsHot, row.CompilesHot)
		return
	}
	if !(row.MaxAbsErr < 5e-6) {
		t.Errorf("%s: off by %v", what, row.MaxAbsErr)
	}
	if code := row.Device == "cpu" && machine.Level() != machine.None; code != (row.PeakShare > 0) || code != (row.PeakKind != "") {
		t.Errorf("%s: %v of the %q peak", what, row.PeakShare, row.PeakKind)
	}
	if row.PeakBytes < row.IOBytes || row.PeakBytes > 8*row.IOBytes+4096 && row.Mode == fused {
		t.Errorf("%s: %d bytes live at once, of inputs and result %d", what, row.PeakBytes, row.IOBytes)
	}
}

// checkPeak checks that rows and layers that fuse need no memory besides inputs and result, and
// that a network needs one more tensor, however deep it is.
func checkPeak(t *testing.T, row Row) {
	t.Helper()
	limits := map[string]int64{
		"gelu custom": row.IOBytes, "softmax last": row.IOBytes, "softmax logexp": row.IOBytes,
		"layernorm last": row.IOBytes, "reduce mean": row.IOBytes, "matmul 8+gelu": row.IOBytes,
		"mlp mlp": row.IOBytes + row.IntermediateBytes, "mlp 4-layer": row.IOBytes + row.IntermediateBytes,
	}
	if limit, ok := limits[row.Suite+" "+row.Variant]; ok && row.Mode == fused && row.PeakBytes > limit {
		t.Errorf("%s %s: %d bytes live at once, want at most %d", row.Variant, row.Mode, row.PeakBytes, limit)
	}
}
