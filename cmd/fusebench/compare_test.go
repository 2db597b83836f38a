package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reportFile writes a report in the form of -format json.
func reportFile(t *testing.T, r *Report) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.json")
	if err := deliver(nil, r, "json", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// scaled returns a report with one row of the given number of runs around a time in ms.
func scaled(variant string, runs int, ms float64) *Report {
	r := emptyRow()
	r.Suite, r.Device, r.Variant, r.Mode, r.Shape, r.DType = "gelu", "cpu", variant, fused, []int{8}, "float32"
	for i := range runs {
		r.seconds = append(r.seconds, ms/1e3*(1+float64(i%5)/100))
	}
	return &Report{Machine: Machine{CPU: "A CPU", Cores: 2}, Rows: []Row{r}}
}

func TestCompare(t *testing.T) {
	old := scaled("erf", 12, 10)
	for name, c := range map[string]struct {
		new  *Report
		says []string
	}{
		"half the time": {scaled("erf", 12, 5), []string{"gelu cpu erf fused 8 float32", "10.1", "5.07", "-50.00%", "0.000", "12, 12"}},
		"the same":      {scaled("erf", 12, 10), []string{"~", "1.000"}},
		"within chance": {scaled("erf", 3, 10.001), []string{"~"}},
		"another row":   {scaled("custom", 12, 10), []string{"gelu cpu erf fused 8 float32 is in the old report only.", "gelu cpu custom fused 8 float32 is in the new report only."}},
		"another machine": {func() *Report { r := scaled("erf", 12, 10); r.Machine.CPU = "Another"; return r }(),
			[]string{"The machines differ: A CPU", "Another"}},
		"an error": {func() *Report { r := scaled("erf", 12, 10); r.Rows[0].Error = "lost"; return r }(), []string{`has no times: old "", new "lost"`}},
	} {
		code, out, errs := fusebench("compare", reportFile(t, old), reportFile(t, c.new))
		if code != 0 || errs != "" {
			t.Fatalf("%s: exit %d: %s", name, code, errs)
		}
		for _, s := range c.says {
			if !strings.Contains(out, s) {
				t.Errorf("%s: no %q in\n%s", name, s, out)
			}
		}
	}
	two := scaled("erf", 12, 10)
	two.Rows = append(two.Rows, scaled("custom", 12, 10).Rows...)
	faster := scaled("erf", 12, 5)
	faster.Rows = append(faster.Rows, scaled("custom", 12, 20).Rows...)
	code, out, errs := fusebench("compare", "-format", "markdown", reportFile(t, two), reportFile(t, faster))
	if code != 0 || !strings.Contains(out, "| geometric mean |  |  |  |  | +0.00% |") || !strings.Contains(out, "+100.00%") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
}

// TestCompareSelf compares a real run with itself.
func TestCompareSelf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	if code, _, errs := fusebench("gelu", "-shape", "4,64", "-device", "cpu:compile=off", "-runs", "6", "-budget", "2s", "-format", "json", "-o", file); code != 0 {
		t.Fatal(errs)
	}
	code, out, errs := fusebench("compare", file, file)
	if code != 0 || strings.Count(out, "~ ") < 6 || strings.Contains(out, "only.") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
}

func TestCompareErrors(t *testing.T) {
	good := reportFile(t, scaled("erf", 12, 10))
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "bad.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old := scaled("erf", 12, 10)
	text, err := json.Marshal(old) // without the samples
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{good}, exitUsage, "want two reports"},
		{[]string{good, good, good}, exitUsage, "want two reports"},
		{[]string{"-format", "svg", good, good}, exitUsage, "want one of markdown, table"},
		{[]string{good, "/nonexistent/x.json"}, exitFailed, "no such file"},
		{[]string{good, t.TempDir()}, exitFailed, "is a folder"},
		{[]string{write("not json"), good}, exitFailed, "is not a report"},
		{[]string{write(`{"rows":[{"x":1}]}`), good}, exitFailed, "row 1 has no suite"},
		{[]string{write(`{}`), good}, exitFailed, "has no rows"},
		{[]string{good, write(`{"rows":[{"suite":"gelu","samples_ms":[1]},{"suite":"gelu","samples_ms":[2]}]}`)}, exitFailed, "repeats"},
		{[]string{good, write(string(text))}, exitFailed, "has no samples_ms"},
		{[]string{good, write(`{"rows":[{"suite":"gelu","samples_ms":[1,-2]}]}`)}, exitFailed, "-2 ms is not a time"},
	} {
		code, out, errs := fusebench(append([]string{"compare"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.says) || out != "" {
			t.Errorf("%q: exit %d, %q, %q", c.args, code, errs, out)
		}
	}
}
