package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
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

// TestHalves runs every suite with 16-bit floats: elements, copies and reads take two bytes, fused
// kernels are those of float32, and results are right to the dtype's precision.
func TestHalves(t *testing.T) {
	for _, s := range suites {
		kernels := map[string]float64{}
		bytes := map[string]int64{}
		for _, dt := range []string{"float32", "float16", "bfloat16"} {
			file := filepath.Join(t.TempDir(), "r.json")
			args := append([]string{s.name, "-device", "cpu", "-modes", "fused", "-dtype", dt, "-runs", "2", "-warmup", "1", "-tier", "0", "-format", "json", "-o", file}, small[s.name]...)
			if code, out, errs := fusebench(args...); code != 0 || out != "" || errs != "" {
				t.Fatalf("%s %s: exit %d, %q, %q", s.name, dt, code, out, errs)
			}
			for _, row := range readReport(t, file).Rows {
				what := strings.Join([]string{row.Suite, row.Variant, dt}, " ")
				if row.Error != "" || row.DType != dt {
					t.Errorf("%s: error %q, dtype %s", what, row.Error, row.DType)
				}
				if dt == "float32" {
					kernels[row.Variant], bytes[row.Variant] = float64(row.Kernels), row.IOBytes
					continue
				}
				flags := int64(0)
				if row.Variant == "filled" { // attention's mask is of bools
					flags = int64(row.Shape[2] * row.Shape[2])
				}
				if row.IOBytes-flags != (bytes[row.Variant]-flags)/2 || float64(row.Kernels) != kernels[row.Variant] || row.CopyMS <= 0 {
					t.Errorf("%s: %d bytes and %v kernels, of float32 %d and %v; a copy takes %v ms", what, row.IOBytes, row.Kernels, bytes[row.Variant], kernels[row.Variant], row.CopyMS)
				}
				if limit := number(map[string]float64{"float16": 0.05, "bfloat16": 0.4}[dt]); !(row.MaxAbsErr < limit) || row.MaxAbsErr == 0 && row.Variant[:3] != "max" {
					t.Errorf("%s: off by %v", what, row.MaxAbsErr)
				}
			}
		}
	}
}

// TestCopyOfHalves: the copy that a suite is compared with moves elements of its dtype.
func TestCopyOfHalves(t *testing.T) {
	dev, err := millrace.Open("cpu:cache=off,tier=0")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	const n = 3 * 5 * 64
	for _, dt := range []millrace.DType{millrace.Float16, millrace.BFloat16, millrace.Float32} {
		as := arraysOf(dt)
		p, err := geluSuite.of("reference", shape{3, 5, 64}, as)
		if err != nil {
			t.Fatal(err)
		}
		as.fill()
		if p.bytes(dtype{dt}) != 2*n*dt.Size() || p.inputBytes() != n*dt.Size() {
			t.Errorf("%v: %d bytes, of them %d of inputs", dt, p.bytes(dtype{dt}), p.inputBytes())
		}
		x, err := (&bench{dev: dev}).plain(p.bytes(dtype{dt})/2/dt.Size(), dtype{dt})
		if err != nil || x.DType() != dt || x.Len() != n {
			t.Errorf("%v: a copy of %v, %v", dt, x, err)
		}
		before := dev.Stats().Runtime
		if err := copyKernel([]*millrace.Tensor{x}).Eval(); err != nil {
			t.Fatal(err)
		}
		if after := dev.Stats().Runtime; after.BytesRead-before.BytesRead != int64(n*dt.Size()) || after.BytesWritten-before.BytesWritten != int64(n*dt.Size()) {
			t.Errorf("%v: a copy reads %d bytes and writes %d", dt, after.BytesRead-before.BytesRead, after.BytesWritten-before.BytesWritten)
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
