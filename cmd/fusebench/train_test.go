package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestTrain checks that every step runs eagerly, recorded and bound, gives the same loss, which
// is close to float64's, and is hot when it is timed.
func TestTrain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	code, out, errs := fusebench("train", "-device", "cpu", "-tier", "0", "-small", "-runs", "2", "-warmup", "3", "-steps", "3", "-how", "eager,recorded,bound",
		"-variants", strings.Join(lessonNames, ",")+",gruhand", "-format", "json", "-o", file)
	if code != 0 || out != "" || errs != "" {
		t.Fatalf("exit %d, %q, %q", code, out, errs)
	}
	loss := map[string]number{}
	for _, r := range readReport(t, file).Rows {
		what := r.Variant + " " + r.Mode + " " + r.Train.How
		if r.Error != "" || r.Kernels == 0 || r.Train.Ops == 0 && r.Train.How != bound || r.PeakBytes == 0 {
			t.Errorf("%s: error %q, %v kernels, %d ops, %d bytes", what, r.Error, r.Kernels, r.Train.Ops, r.PeakBytes)
		}
		if !(r.MaxAbsErr < 1e-4) {
			t.Errorf("%s: the loss is %v off float64's", what, r.MaxAbsErr)
		}
		if was, known := loss[r.Variant]; known && was != r.Train.Loss {
			t.Errorf("%s: loss %v, in another way %v", what, r.Train.Loss, was)
		}
		loss[r.Variant] = r.Train.Loss
	}
	if len(loss) != len(lessonNames)+1 {
		t.Errorf("%d steps", len(loss))
	}
}

func TestTrainUsage(t *testing.T) {
	for _, args := range [][]string{{"-variants", "makemore"}, {"-variants", "gpt-1x2"}, {"-variants", "mlp-4"}, {"-variants", "makemore-0x1"},
		{"-variants", "other"}, {"-how", "lazy"}, {"-steps", "-1"}, {"more"}} {
		if code, _, _ := fusebench(append([]string{"train", "-device", "cpu"}, args...)...); code != exitUsage {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}
