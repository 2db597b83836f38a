package main

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

// TestServe checks what does not depend on the machine: every number of goroutines has its row,
// responses are right, and some requests were cancelled.
func TestServe(t *testing.T) {
	for _, device := range []string{"ref", "cpu"} {
		t.Run(device, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "r.json")
			code, out, errs := fusebench("serve", "-device", device, "-shape", "6,10,4", "-variants", "batch-1,batch-3,recorded-2,together-3", "-goroutines", "1,2,5", "-runs", "2",
				"-warmup", "1", "-tier", "0", "-slice", "5ms", "-cancel", "0.5", "-reader=false", "-format", "json", "-o", file)
			if code != 0 || out != "" || errs != "" {
				t.Fatalf("exit %d, %q, %q", code, out, errs)
			}
			var names []string
			givenUp := int64(0)
			for _, row := range readReport(t, file).Rows {
				names = append(names, row.Variant)
				f := row.Serve
				if row.Error != "" || f == nil {
					t.Fatalf("%s: error %q, figures %v", row.Variant, row.Error, f)
				}
				if row.Runs != 2 || f.Answers < int64(2*f.Goroutines) || !(f.PerSecond > 0) || !(f.VsOne > 0) || !(f.P99MS >= row.MedianMS) || !(f.WorstP99MS >= row.MedianMS) {
					t.Errorf("%s: %d runs, figures %+v", row.Variant, row.Runs, f)
				}
				if !(row.MaxAbsErr < 5e-6) || row.Kernels == 0 {
					t.Errorf("%s: off by %v, %v kernels", row.Variant, row.MaxAbsErr, row.Kernels)
				}
				givenUp += f.GivenUp
			}
			if want := []string{"batch-1/1", "batch-1/2", "batch-1/5", "batch-3/1", "batch-3/2", "batch-3/5",
				"recorded-2/1", "recorded-2/2", "recorded-2/5", "together-3/1", "together-3/2", "together-3/5"}; !slices.Equal(names, want) {
				t.Errorf("rows %q, want %q", names, want)
			}
			if givenUp == 0 {
				t.Error("no request was given up")
			}
		})
	}
}

// TestServeFindsWrong checks that a response that differs in one element is an error.
func TestServeFindsWrong(t *testing.T) {
	c := &config{dtype: dtype{millrace.Float32}, shape: shape{6, 10, 4}, variants: list{"batch-2"}, tier: "0", cache: "off"}
	offers, err := offersOf(c, newArrays(c.dtype))
	if err != nil {
		t.Fatal(err)
	}
	b, err := openBench(c, "cpu", fused)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	v, err := newService(c, b, offers[0])
	if err != nil {
		t.Fatal(err)
	}
	l := newLoad(v, 3, 0.2)
	l.slice = time.Millisecond
	if _, err := l.run(); err != nil {
		t.Fatal(err)
	}
	for _, alone := range v.alone {
		alone[len(alone)-1] += 1e-6
	}
	if _, err := l.run(); !errors.Is(err, errWrong) {
		t.Errorf("responses that are none of the service's: %v", err)
	}
}

// TestServeReader checks that a reader reads beside its neighbours, and that both end.
func TestServeReader(t *testing.T) {
	c := &config{dtype: dtype{millrace.Float32}, cache: "off"}
	b, err := openBench(c, "cpu", fused)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	for i := range neighbours {
		r := newReader(c, b, i, time.Second)
		r.slice, r.dims, r.contestant.counting = time.Millisecond, []int{30, 20}, true
		d, err := r.run()
		if err != nil {
			t.Fatal(err)
		}
		r.contestant.rounds, r.contestant.times = []int{0}, []float64{d.Seconds()}
		if row := r.finish(); row.Serve == nil || row.Serve.Answers == 0 || row.Serve.OverSlice == nil || !(row.MedianMS > 0) {
			t.Errorf("%+v, %+v", row, row.Serve)
		}
	}
}
