package calls_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/report"
)

// reportOf returns the data of a page.
func reportOf(t *testing.T, page []byte) *report.Report {
	t.Helper()
	_, rest, ok := bytes.Cut(page, []byte(`<script type="application/json"`))
	_, rest, ok2 := bytes.Cut(rest, []byte(">"))
	text, _, ok3 := bytes.Cut(rest, []byte("</script>"))
	var r report.Report
	if err := json.Unmarshal(text, &r); err != nil || !ok || !ok2 || !ok3 {
		t.Fatalf("no data in the page: %v, %.200s", err, text)
	}
	return &r
}

// work runs softmaxes and an op that is not fused with them.
func work(t *testing.T, d *millrace.Device, runs int) {
	t.Helper()
	x := millrace.UniformOn(d, millrace.Float32, 7, 64, 512)
	for range runs {
		y := x.MulScalar(2).Softmax(1)
		z := y.MatMul(y.Transpose(0, 1)).Sum()
		if _, err := millrace.Item[float32](z); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReport checks that a device's report is complete: as many launches as the counters say,
// times for all, plans with their ops and code, and memory with its owners.
func TestReport(t *testing.T) {
	d, err := millrace.Open("cpu:report,cache=off")
	if err != nil {
		t.Fatal(err)
	}
	const runs = 40
	work(t, d, runs)
	stats := d.Stats()
	var page bytes.Buffer
	if err := millrace.Report(&page, d); err != nil {
		t.Fatal(err)
	}
	r := reportOf(t, page.Bytes())
	if len(r.Devices) != 1 || r.Machine == "" || r.Go == "" {
		t.Fatalf("%d devices on %q, %q", len(r.Devices), r.Machine, r.Go)
	}
	dev := r.Devices[0]
	var launches, most int64
	var micros, flops float64
	for _, k := range dev.Kernels {
		launches += k.Runs
		micros += k.Micros
		flops += k.Flops * float64(k.Runs)
		most = max(most, k.Runs)
		if k.Timed == 0 || k.Micros <= 0 || k.Bytes <= 0 || k.Name == "" || k.Ops == "" {
			t.Errorf("kernel %+v", k)
		}
	}
	if launches != stats.Kernels || most < runs-2 {
		t.Errorf("%d launches, the counters say %d; %d of one kernel", launches, stats.Kernels, most)
	}
	if product := 2.0 * 64 * 64 * 512 * (runs - 2); flops < product {
		t.Errorf("%g operations: fewer than %g of the products", flops, product)
	}
	if took := float64(stats.KernelNanos) / 1e3; took < micros*0.99 || took > micros*1.01 {
		t.Errorf("Stats says %g µs, the page %g", took, micros)
	}
	if dev.Flops > 0 && (stats.PeakShare <= 0 || stats.PeakShare > 1.5) {
		t.Errorf("share of the peak %g", stats.PeakShare)
	}
	var ran int64
	for _, p := range dev.Plans {
		ran = max(ran, p.Runs)
		if !strings.Contains(p.Segment, " = ") || p.Ops == 0 || len(p.Lines) > 0 && !strings.Contains(p.Lines[0], "report_test.go:") {
			t.Errorf("plan %+v", p)
		}
		for _, k := range p.Kernels {
			if k < 0 || k >= len(dev.Kernels) {
				t.Errorf("plan's kernel %d of %d", k, len(dev.Kernels))
			}
		}
	}
	if ran < runs-2 {
		t.Errorf("no plan ran more than %d times", ran)
	}
	if dev.Peak.Bytes < 64*512*4 || len(dev.Peak.Owners) == 0 || !strings.Contains(dev.Peak.Owners[0].What, "float32(64,512)") {
		t.Errorf("peak %+v", dev.Peak)
	}
	for i, s := range dev.Spans {
		if s.Row < 0 || s.Row >= len(dev.Rows) || s.Dur < 0 || s.Start+s.Dur > dev.Now+1 {
			t.Fatalf("span %d: %+v, rows %q, now %g", i, s, dev.Rows, dev.Now)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	page.Reset()
	if err := millrace.Report(&page, d); err != nil || !reportOf(t, page.Bytes()).Devices[0].Closed {
		t.Errorf("of a closed device: %v", err)
	}
}

// TestReportFindings checks that the report names what made a program slower than necessary, with
// the line of the program.
func TestReportFindings(t *testing.T) {
	d, err := millrace.Open("cpu:report,lines,tier=0,cache=off")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	x := millrace.UniformOn(d, millrace.Float32, 7, 64, 512)
	y := x.MulScalar(3)
	z := y.Exp()
	for _, v := range []func() *millrace.Tensor{func() *millrace.Tensor { return z.Mean() }, func() *millrace.Tensor { return y.Sum() }} {
		if _, err := millrace.Item[float32](v()); err != nil { // y is not written, and is read again
			t.Fatal(err)
		}
	}
	var page bytes.Buffer
	if err := millrace.Report(&page, d); err != nil {
		t.Fatal(err)
	}
	stats := d.Stats()
	count := map[string]int64{}
	for _, f := range reportOf(t, page.Bytes()).Devices[0].Findings {
		count[f.What] += f.Count
		if !strings.Contains(f.Line, "report_test.go:") || f.Of == "" {
			t.Errorf("no line or op: %+v", f)
		}
	}
	if count["recomputed"] != stats.Recomputes || stats.Recomputes == 0 {
		t.Errorf("%d recomputations, the counters say %d", count["recomputed"], stats.Recomputes)
	}
	if count["interpreted"] != stats.Runtime.Tier0 || stats.Runtime.Tier0 == 0 {
		t.Errorf("%d interpreted launches, the counters say %d", count["interpreted"], stats.Runtime.Tier0)
	}
}

// TestReportClosedStreams checks that all closed streams share one row of the time line.
func TestReportClosedStreams(t *testing.T) {
	d, err := millrace.Open("cpu:report,cache=off")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const streams = 5
	for range streams {
		s := d.NewStream()
		x := millrace.FromSliceOn(s, []float32{1, 2, 3}, 3)
		if _, err := millrace.Item[float32](x.Exp().Sum()); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var page bytes.Buffer
	if err := millrace.Report(&page, d); err != nil {
		t.Fatal(err)
	}
	var closed []string
	for _, name := range reportOf(t, page.Bytes()).Devices[0].Rows {
		if strings.Contains(name, "stream") {
			closed = append(closed, name)
		}
	}
	if want := fmt.Sprintf("closed streams (%d)", streams); len(closed) != 1 || closed[0] != want {
		t.Errorf("rows of streams: %q, want %q alone", closed, want)
	}
}

// TestReportWithoutTimes checks that a report without the option has everything except times.
func TestReportWithoutTimes(t *testing.T) {
	d, err := millrace.Open("cpu:cache=off")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	work(t, d, 3)
	var page bytes.Buffer
	if err := millrace.Report(&page, d); err != nil {
		t.Fatal(err)
	}
	dev := reportOf(t, page.Bytes()).Devices[0]
	if len(dev.Plans) == 0 || len(dev.Kernels) == 0 || dev.Sampled != "" || len(dev.Spans) != 0 || dev.Kernels[0].Runs != 0 || dev.Kernels[0].Ops == "" {
		t.Errorf("%d plans, %d kernels, %d spans, %q", len(dev.Plans), len(dev.Kernels), len(dev.Spans), dev.Sampled)
	}
	if s := d.Stats(); s.KernelNanos != 0 || s.PeakShare != 0 {
		t.Errorf("stats %+v", s)
	}
}

type failing struct{}

var errFull = errors.New("full")

func (failing) Write([]byte) (int, error) { return 0, errFull }

// TestReportFaults checks that a failed write is an error, and changes nothing else.
func TestReportFaults(t *testing.T) {
	d, err := millrace.Open("cpu:report,cache=off")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := millrace.Report(failing{}, d); !errors.Is(err, errFull) {
		t.Errorf("full: %v", err)
	}
	if millrace.Report(nil, d) == nil || millrace.Report(new(bytes.Buffer), nil) == nil {
		t.Error("nil was taken")
	}
	work(t, d, 2)
}

// TestReportFile: MILLRACE_DEBUG=report=FILE writes the page when a device is closed. A file that
// cannot be made is an error of Open, and one that cannot be written later is an error of Close;
// the program continues.
func TestReportFile(t *testing.T) {
	if path := os.Getenv("MILLRACE_TEST_REPORT"); path != "" {
		d, err := millrace.Open("cpu:cache=off")
		if err != nil {
			fmt.Println("open:", err)
			return
		}
		if remove := os.Getenv("MILLRACE_TEST_REMOVE"); remove != "" {
			os.RemoveAll(remove)
		}
		work(t, d, 3)
		if os.Getenv("MILLRACE_TEST_LEAVE") != "" {
			os.Exit(0)
		}
		fmt.Println("close:", d.Close())
		return
	}
	dir := t.TempDir()
	run := func(path, remove string) string {
		cmd := exec.Command(os.Args[0], "-test.run=^TestReportFile$")
		cmd.Env = append(os.Environ(), "MILLRACE_DEBUG=report="+path, "MILLRACE_TEST_REPORT="+path, "MILLRACE_TEST_REMOVE="+remove)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
		return string(out)
	}
	path := filepath.Join(dir, "report.html")
	if out := run(path, ""); !strings.Contains(out, "close: <nil>") {
		t.Error(out)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if dev := reportOf(t, page).Devices; len(dev) != 1 || !dev[0].Closed || len(dev[0].Kernels) == 0 {
		t.Errorf("%d devices", len(dev))
	}
	if more, _ := filepath.Glob(filepath.Join(dir, ".*")); len(more) > 0 {
		t.Errorf("left behind: %q", more)
	}
	t.Setenv("MILLRACE_TEST_LEAVE", "1")
	left := filepath.Join(dir, "left.html")
	run(left, "")
	if page, err := os.ReadFile(left); err != nil {
		t.Error(err)
	} else if dev := reportOf(t, page).Devices; len(dev) != 1 || dev[0].Closed {
		t.Errorf("of a program that did not close its device: %d devices", len(dev))
	} else {
		runs := int64(0)
		for _, p := range dev[0].Plans {
			runs += p.Runs
		}
		if runs < 1 || runs > 3 { // a slow machine writes it less often
			t.Errorf("of a program that did not close its device: %d of 3 runs", runs)
		}
	}
	os.Unsetenv("MILLRACE_TEST_LEAVE")
	if out := run(dir, ""); !strings.Contains(out, "open: ") || !strings.Contains(out, "is a directory") {
		t.Error(out)
	}
	if out := run(filepath.Join(dir, "none", "x.html"), ""); !strings.Contains(out, "open: ") {
		t.Error(out)
	}
	gone := filepath.Join(dir, "gone")
	if err := os.Mkdir(gone, 0o755); err != nil {
		t.Fatal(err)
	}
	if out := run(filepath.Join(gone, "x.html"), gone); !strings.Contains(out, "close: report: ") {
		t.Error(out)
	}
}
