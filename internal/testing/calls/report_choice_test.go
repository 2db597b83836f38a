package calls_test

import (
	"bytes"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestReportChoice checks that the report shows the tuner's choice at its kernel, and the trials
// on the time line.
func TestReportChoice(t *testing.T) {
	d, err := millrace.Open("cpu:report,tune=wait,threads=2,cache=off")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	x := millrace.UniformOn(d, millrace.Float32, 7, 512, 512)
	y := millrace.UniformOn(d, millrace.Float32, 8, 512, 512)
	for range 3 {
		if _, err := millrace.Item[float32](x.MatMul(y).Tanh().Sum()); err != nil {
			t.Fatal(err)
		}
	}
	if d.Stats().Tunings == 0 {
		t.Skip("this machine has one way to run a product only")
	}
	var page bytes.Buffer
	if err := millrace.Report(&page, d); err != nil {
		t.Fatal(err)
	}
	dev := reportOf(t, page.Bytes()).Devices[0]
	chosen, tried := 0, 0
	for _, k := range dev.Kernels {
		if k.Choice != "" {
			chosen++
		}
	}
	for _, s := range dev.Spans {
		if dev.Rows[s.Row] == "tuning" && s.Ref >= 0 && s.Note != "" {
			tried++
		}
	}
	if chosen == 0 || tried == 0 {
		t.Errorf("%d choices, %d trials of kernels in the report", chosen, tried)
	}
}
