package gputest

import (
	"bytes"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/stream"
)

// testEngineBundle: a bundle of one device's plans serves the next device, which has no cache. That
// one explores nothing, compiles its shaders before it runs anything, and computes the same. It
// ignores a bundle of the CPU's plans.
func testEngineBundle(t *testing.T) {
	defer stream.ForgetBundles()
	run := func(d *millrace.Device) []float32 {
		t.Helper()
		data := make([]float32, 6*32)
		for i := range data {
			data[i] = float32(i%13) / 4
		}
		x := millrace.FromSliceOn(d, data, 6, 32)
		v := values(t, x.Sub(x.MeanKeep(1)).Softmax(1).MulScalar(3))
		return v
	}
	export := func(d *millrace.Device) []byte {
		t.Helper()
		var buf bytes.Buffer
		must(t, millrace.ExportPlans(&buf, millrace.PlanFilter{Device: d.Name()}))
		return buf.Bytes()
	}
	first := openEngine(t)
	want := run(first)
	cpu := openCPU(t, "compile=off,explore=wait")
	run(cpu)
	for _, bundle := range [][]byte{export(cpu), export(first)} {
		must(t, millrace.UsePlans(bundle))
	}
	d := openEngine(t)
	must(t, d.Wait())
	compiled := d.Stats().Runtime.Compiles // of the shaders in the bundle
	got := run(d)
	if n := d.Stats().Runtime.Compiles; compiled == 0 || n != compiled {
		t.Errorf("%d shaders were compiled beforehand, %d in all", compiled, n)
	}
	if s := d.Stats(); s.Explorations != 0 || s.Cache.Bundled == 0 || s.Cache.Foreign != 0 || d.ForeignPlans() != nil {
		t.Errorf("%d explorations, %+v, %v", s.Explorations, s.Cache, d.ForeignPlans())
	}
	if !slices.Equal(got, want) {
		t.Error("values differ with the bundle")
	}
}
