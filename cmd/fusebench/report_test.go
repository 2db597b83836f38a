package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

// sample returns a report with every kind of row: measured, without an unfused counterpart, and
// failed.
func sample() *Report {
	copied := &contestant{name: "memcpy", rounds: []int{0, 1, 2}, times: []float64{0.010, 0.011, 0.010}}
	quick := &contestant{rounds: []int{0, 1, 2}, times: []float64{0.015, 0.0165, 0.014}}
	slow := &contestant{rounds: []int{0, 1, 2}, times: []float64{0.300, 0.330, 0.280}}
	row := func(variant, mode, tier string, kernels float64) Row {
		r := emptyRow()
		r.Suite, r.Device, r.Variant, r.Mode, r.Tier = "gelu", "cpu", variant, mode, tier
		r.Shape, r.DType, r.Threads, r.Kernels = []int{32, 512}, "float32", 2, kernels
		r.BytesRead, r.BytesWritten, r.PeakBytes, r.IOBytes = 65536, 65536, 131072, 131072
		r.ColdMS, r.MaxAbsErr = 71.25, 1.1920929e-07
		return r
	}
	f := row("custom", "fused", "1", 1)
	f.time(quick, copied)
	f.compare(quick, slow)
	u := row("custom", "unfused", "1", 28)
	u.time(slow, copied)
	u.compare(slow, slow)
	u.ExplorationsHot, u.CompilesHot, u.AllocsHot = 1, 2, 3
	failed := row("erf", "fused", "", 0)
	failed.ColdMS, failed.MaxAbsErr = absent, absent
	failed.Device, failed.Error = "webgpu", "float64 is not supported"
	return &Report{
		Machine: Machine{CPU: "A CPU", Cores: 2, OS: "linux/amd64", Go: "go1.26", Millrace: "v0.1.0"},
		Rows:    []Row{f, u, failed},
	}
}

// products returns a report of contractions and of a reduction, with figures that only some
// suites have, and several shapes.
func products() *Report {
	times := func(name string, ms ...float64) *contestant {
		c := &contestant{name: name}
		for i, t := range ms {
			c.rounds, c.times = append(c.rounds, i), append(c.times, t/1e3)
		}
		return c
	}
	row := func(suite, variant string, n int, own *contestant) Row {
		r := emptyRow()
		r.Suite, r.Device, r.Variant, r.Mode, r.Tier = suite, "cpu", variant, "fused", "1"
		r.Shape, r.DType, r.Threads, r.Kernels = []int{n, n, n}, "float32", 2, 1
		r.IOBytes, r.PeakBytes = int64(12*n*n), int64(12*n*n)
		r.ColdMS, r.MaxAbsErr = 100, 1e-5
		r.time(own, times("memcpy", 1, 1, 1))
		return r
	}
	plain, behind := times("plain", 10, 12, 10), times("behind", 10.5, 12.3, 10.2)
	a := row("matmul", "1024", 1024, plain)
	a.contract(plain, 2e9, times("OpenBLAS", 9, 12, 9.5))
	b := row("matmul", "1024+gelu", 1024, behind)
	b.contract(behind, 2e9, nil)
	b.IntermediateBytes = 4 << 20
	p, err := matmulSuite.of("1024+gelu", nil, newArrays(dtype{1}))
	if err != nil {
		panic(err)
	}
	p.versus[0].note(&b, behind.times, plain.times)
	small := row("matmul", "256", 256, times("small", 1, 1, 1))
	return &Report{
		Machine: Machine{CPU: "A CPU", Cores: 2, OS: "linux/amd64", Go: "go1.26", Millrace: "v0.1.0"},
		Rows:    []Row{a, b, small},
	}
}

// TestGolden compares each format with testdata; -update rewrites it. The JSON file is a contract
// with programs that read it.
func TestGolden(t *testing.T) {
	for _, format := range formats() {
		golden(t, sample(), "report", format)
	}
	golden(t, products(), "products", "table")
	golden(t, products(), "products", "json")
}

func golden(t *testing.T, r *Report, name, format string) {
	t.Run(name+"."+format, func(t *testing.T) {
		var buf bytes.Buffer
		if err := deliver(&buf, r, format, ""); err != nil {
			t.Fatal(err)
		}
		got := buf.Bytes()
		if format == "bench" {
			got = platform(got)
		}
		path := filepath.Join("testdata", name+"."+format)
		if *update {
			if err := os.WriteFile(path, got, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// TestOptionalFields checks that figures that a row does not have are not in its JSON, and that
// the contract's figures have their names.
func TestOptionalFields(t *testing.T) {
	fields := func(r Row) map[string]any {
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	rows := products().Rows
	plain, behind, small := fields(rows[0]), fields(rows[1]), fields(rows[2])
	if plain["gflops"] != 200.0 || plain["vs_openblas"] != 0.95 || plain["vs_openblas_lo"] != 0.9 || plain["vs_openblas_hi"] != 1.0 {
		t.Errorf("a product has %v", plain)
	}
	if behind["epilogue_cost"] != 0.025 || behind["vs_openblas"] != nil {
		t.Errorf("a product with an epilogue has %v", behind)
	}
	for _, name := range []string{"gflops", "openblas_ms", "vs_openblas", "epilogue_cost", "matmul_share", "read_ms", "read_ratio", "read_ratio_lo", "peak_kind", "peak_share"} {
		if v, ok := small[name]; ok {
			t.Errorf("%s is %v where there is none", name, v)
		}
	}
	r := emptyRow()
	r.read(&contestant{rounds: []int{0, 1}, times: []float64{3, 6}}, &contestant{rounds: []int{0, 1}, times: []float64{2, 4}})
	if got := fields(r); got["read_ratio"] != 1.5 || got["read_ms"] != 3000.0 {
		t.Errorf("a reduction has %v", got)
	}
}

// platform hides the two lines that name this machine's platform.
func platform(b []byte) []byte {
	lines := strings.SplitAfter(string(b), "\n")
	lines[0], lines[1] = "goos: any\n", "goarch: any\n"
	return []byte(strings.Join(lines, ""))
}

// TestContract checks the names that the issue of fusebench's users fixed.
func TestContract(t *testing.T) {
	var buf bytes.Buffer
	if err := writeJSON(&buf, sample()); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Machine map[string]any
		Rows    []map[string]any
	}
	if err := json.Unmarshal(buf.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"cpu", "cores", "os", "go", "millrace"} {
		if _, ok := doc.Machine[key]; !ok {
			t.Errorf("machine has no %q", key)
		}
	}
	for _, key := range strings.Fields(`suite device variant mode tier shape dtype runs median_ms min_ms cold_ms copy_ms
		copy_ratio kernels bytes_read bytes_written speedup_vs_unfused max_abs_err explorations_hot compiles_hot
		peak_bytes io_bytes intermediate_bytes`) {
		for i, row := range doc.Rows {
			if _, ok := row[key]; !ok {
				t.Errorf("row %d has no %q", i, key)
			}
		}
	}
	if got := doc.Rows[0]["copy_ratio"]; got != 1.5 {
		t.Errorf("copy_ratio is %v, want the median of the rounds' ratios, 1.5", got)
	}
	if got := doc.Rows[0]["speedup_vs_unfused"]; got != 20.0 {
		t.Errorf("speedup_vs_unfused is %v, want 20", got)
	}
	if got := doc.Rows[2]["median_ms"]; got != nil {
		t.Errorf("a failed row's median_ms is %v, want null", got)
	}
}

// TestCSVColumns checks that the columns are exactly the JSON names, except the objects that only
// some suites have, and the times of all runs.
func TestCSVColumns(t *testing.T) {
	var want []string
	typ := reflect.TypeFor[Row]()
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "chain" && name != "serve" && name != "train" && name != "tiny" && name != "samples_ms" {
			want = append(want, name)
		}
	}
	if !slices.Equal(csvColumns, want) {
		t.Errorf("columns %q, want %q", csvColumns, want)
	}
	var buf bytes.Buffer
	if err := writeCSV(&buf, sample()); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(&buf).ReadAll()
	if err != nil || len(records) != 4 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	if got := records[1][slices.Index(csvColumns, "shape")]; got != "32,512" {
		t.Errorf("shape is %q", got)
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		n           number
		json, short string
	}{
		{absent, "null", "-"},
		{number(math.Inf(1)), "null", "+Inf"},
		{0, "0", "0"},
		{1.5, "1.5", "1.50"},
		{123456.7, "123457", "123457"},
		{12.345, "12.345", "12.3"},
		{1.1920929e-07, "1.1921e-07", "1.2e-07"},
		{28, "28", "28"},
	} {
		got, err := json.Marshal(c.n)
		if err != nil || string(got) != c.json || short(c.n) != c.short {
			t.Errorf("%v: %s, %q, %v; want %s, %q", float64(c.n), got, short(c.n), err, c.json, c.short)
		}
	}
}

// TestReadBack checks that in a report that is read back, figures that were not measured are
// absent, and the others have the file's digits.
func TestReadBack(t *testing.T) {
	for _, r := range []*Report{sample(), products()} {
		file := filepath.Join(t.TempDir(), "r.json")
		if err := deliver(nil, r, "json", file); err != nil {
			t.Fatal(err)
		}
		back, err := loadReport(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, write := range []func(io.Writer, *Report) error{writeJSON, writeCSV} {
			var want, got bytes.Buffer
			if err := errors.Join(write(&want, r), write(&got, back)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want.Bytes(), got.Bytes()) {
				t.Errorf("read back:\n%s\nwant\n%s", got.Bytes(), want.Bytes())
			}
		}
	}
}

// TestWhereFrom checks that a report says how it was measured.
func TestWhereFrom(t *testing.T) {
	code, out, errs := fusebench("gelu", "-shape", "4,64", "-device", "cpu:compile=off", "-runs", "1", "-warmup", "0", "-budget", "1s",
		"-format", "json", "-note", "beside a test")
	var r Report
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, errs)
	}
	if m := r.Machine; m.Note != "beside a test" || m.Command == "" || m.Date == "" || !strings.HasPrefix(m.Build, "with") {
		t.Errorf("%+v", m)
	}
}

func TestDeliverToFile(t *testing.T) {
	out := filepath.Join(t.TempDir(), "r.json")
	var stdout bytes.Buffer
	if err := deliver(&stdout, sample(), "json", out); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil || !json.Valid(data) || stdout.Len() > 0 {
		t.Errorf("%v; %d bytes on standard output", err, stdout.Len())
	}
}
