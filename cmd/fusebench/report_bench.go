package main

import (
	"fmt"
	"io"
	goruntime "runtime"
	"strings"
)

// writeBench writes Go benchmark lines, one per timed run, so that benchstat gets the samples and
// not their median.
func writeBench(w io.Writer, r *Report) error {
	fmt.Fprintf(w, "goos: %s\ngoarch: %s\npkg: github.com/millrace-go/millrace/cmd/fusebench\ncpu: %s\n", goruntime.GOOS, goruntime.GOARCH, r.Machine.CPU)
	for _, row := range r.Rows {
		name := fmt.Sprintf("Benchmark%s%s/device=%s/variant=%s/mode=%s/tier=%s/shape=%s/dtype=%s-%d",
			strings.ToUpper(row.Suite[:1]), row.Suite[1:], row.Device, row.Variant, row.Mode, row.Tier,
			strings.ReplaceAll(shapeText(row.Shape), ",", "x"), row.DType, r.Machine.Cores)
		for _, s := range row.seconds {
			mbps := float64(row.BytesRead+row.BytesWritten) / s / 1e6
			if _, err := fmt.Fprintf(w, "%s\t1\t%.0f ns/op\t%.2f MB/s\t%g kernels/op\n", name, s*1e9, mbps, row.Kernels); err != nil {
				return err
			}
		}
	}
	return nil
}
