package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/lint"
)

// TestTables checks that the blocks of documents match their data.
func TestTables(t *testing.T) {
	pages, err := lint.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	var with []string
	for name, text := range pages {
		if strings.Contains(text, blockEnds) {
			with = append(with, filepath.Join(root, name))
		}
	}
	if len(with) < 3 {
		t.Fatalf("only %q have figures", with)
	}
	if code, _, errs := fusebench(append([]string{"tables", "-check"}, with...)...); code != 0 {
		t.Error(errs)
	}
}

var (
	inBlocks = regexp.MustCompile(`(?ms)^<!-- (table|medians|picture): .*?^<!-- end -->$`)
	code     = regexp.MustCompile("(?ms)^```.*?^```|`[^`]*`")
	measured = regexp.MustCompile(`(?i)\d[\d.,]* ?(ns|µs|ms|s|seconds|GB/s|gflops|GFLOP/s|TFLOP/s|MB|×|times)( |\.|,|$)`)
)

// TestFiguresAreInFiles checks that README.md and the index of the figures have no figures typed
// by hand, except in paragraphs and list items that name the command and the date.
func TestFiguresAreInFiles(t *testing.T) {
	for _, page := range []string{"README.md", "docs/benchmarks.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		if found := byHand(string(text)); len(found) > 0 {
			t.Errorf("%s has figures that are in no file: %q", page, found)
		}
	}
	pages, err := lint.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range pages {
		if !strings.HasPrefix(name, "docs/benchmarks/") || name == "docs/benchmarks/peers.md" { // other programs write that page
			continue
		}
		table := strings.Contains(inBlocks.ReplaceAllString(text, ""), "\n|---")
		if table && !strings.Contains(text, "aken by hand, ") {
			t.Errorf("%s has tables that no command wrote, and does not say that they were taken by hand, when and where", name)
		}
	}
	if found := byHand("- 3.5 ms, by `go run ./x`, 2026-11-27.\n- 4 ms, 2026-11-27.\n\n`make x` takes 5 ms.\n"); len(found) != 2 {
		t.Errorf("%q", found)
	}
	if found := byHand("It takes 3.5 ms.\n`4 ms`\n\n<!-- table: a.json -->\n5 ms\n<!-- end -->\n"); len(found) != 1 {
		t.Errorf("%q", found)
	}
}

var (
	items   = regexp.MustCompile(`\n\s*\n|\n- `)
	command = regexp.MustCompile("`(go run|make|fusebench) [^`]+`")
	dated   = regexp.MustCompile(`20\d\d-\d\d-\d\d`)
)

func byHand(text string) (found []string) {
	for _, item := range items.Split(inBlocks.ReplaceAllString(text, ""), -1) {
		if !command.MatchString(item) || !dated.MatchString(item) {
			found = append(found, measured.FindAllString(code.ReplaceAllString(item, ""), -1)...)
		}
	}
	return found
}

// TestData checks every report below docs/benchmarks/data: it says where it is from, it was
// measured hot in at least ten rounds, and a page shows it.
func TestData(t *testing.T) {
	pages, err := lint.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "docs/benchmarks/data/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		if suite, _, _ := strings.Cut(filepath.Base(f), "-"); !slices.Contains(suiteNames(suites), suite) {
			continue // of another program
		}
		r, err := loadReport(f)
		if err != nil {
			t.Error(err)
			continue
		}
		if m := r.Machine; m.CPU == "" || m.Commit == "" || strings.HasSuffix(m.Commit, "+") || m.Date == "" || m.Command == "" {
			t.Errorf("%s: %+v", f, m)
		}
		for _, row := range r.Rows {
			if row.Error != "" || row.Runs < 10 || len(row.SamplesMS) != row.Runs || row.ExplorationsHot+row.CompilesHot+row.AllocsHot > 0 {
				t.Errorf("%s: %s: %d runs, %d times, error %q, or not hot", f, row.identity(), row.Runs, len(row.SamplesMS), row.Error)
			}
			seconds := row.SamplesMS
			again := emptyRow()
			again.time(&contestant{times: row.seconds}, nil)
			if got := again.MedianMS; got < row.MedianMS*0.999 || got > row.MedianMS*1.001 {
				t.Errorf("%s: %s: a median of %v ms, and of its %d times %v", f, row.identity(), row.MedianMS, len(seconds), got)
			}
		}
		used := false
		for _, text := range pages {
			used = used || strings.Contains(text, "data/"+filepath.Base(f))
		}
		if !used {
			t.Errorf("%s is in no page", f)
		}
	}
}

func TestFillPage(t *testing.T) {
	dir := t.TempDir()
	for name, r := range map[string]*Report{"g.json": sample(), "p.json": products()} {
		if err := deliver(nil, r, "json", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	// As scripts/gpu_torch.py writes it.
	torch := `{"machine": {"cpu": "A CPU", "cores": 2, "os": "linux", "go": "Python 3", "millrace": "none"}, "rows": [` +
		`{"suite": "gelu", "device": "PyTorch", "variant": "custom", "mode": "eager", "shape": [4], "dtype": "float32", "runs": 1, "median_ms": 41, "min_ms": 41, "samples_ms": [41]},` +
		`{"suite": "gelu", "device": "PyTorch", "variant": "custom", "mode": "compiled", "shape": [4], "dtype": "float32", "runs": 1, "median_ms": 12, "min_ms": 12, "copy_ms": null, "samples_ms": [12]}]}`
	if err := os.WriteFile(filepath.Join(dir, "torch.json"), []byte(torch), 0o666); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, "page.md")
	fill := func(text string) (out, errs string) {
		t.Helper()
		if err := os.WriteFile(page, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, _, errs = fusebench("tables", page)
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		return string(data), errs
	}
	out, errs := fill("# Head\n\n<!-- table: g.json; modes: fused; columns: suite, variant, build, median ms -->\nold\n<!-- end -->\ntail\n" +
		"<!-- medians: g.json p.json -->\n<!-- end -->\n<!-- picture: p.svg; of: g.json -->\n<!-- end -->\n")
	for _, want := range []string{
		"# Head\n", "| suite | variant | build | median ms |\n| --- | --- | --- | --- |\n| gelu | custom |  | 15 |\n\n- [g](g.json): A CPU, 2 cores",
		"<!-- end -->\ntail\n", "| gelu | custom, unfused | 300 |", "| matmul | 1024 | 10 |", "](p.svg)",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s%s", want, out, errs)
		}
	}
	if strings.Contains(out, "old") {
		t.Error("what stood there still does")
	}
	if code, _, errs := fusebench("tables", "-check", page); code != 0 {
		t.Errorf("checked right after: %s", errs)
	}
	text, pageErrs := fill("<!-- medians: g.json torch.json; modes: fused, eager, compiled -->\n<!-- end -->\n")
	if want := "| suite | variant | cpu | PyTorch, eager | PyTorch, compiled |\n| --- | --- | --- | --- | --- |\n| gelu | custom | 15 | 41 | 12 |\n"; !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s%s", want, text, pageErrs)
	}
	half := sample()
	half.Rows = slices.Clone(half.Rows[:1])
	half.Rows[0].Mode, half.Rows[0].DType, half.Rows[0].MedianMS = fused, "float16", 8
	if err := deliver(nil, half, "json", filepath.Join(dir, "half.json")); err != nil {
		t.Fatal(err)
	}
	halfTorch := strings.NewReplacer(`"dtype": "float32"`, `"dtype": "float16"`, "41", "21", "12", "6").Replace(torch)
	if err := os.WriteFile(filepath.Join(dir, "half-torch.json"), []byte(halfTorch), 0o666); err != nil {
		t.Fatal(err)
	}
	name := half.Rows[0].Variant
	text, pageErrs = fill("<!-- medians: half.json half-torch.json; modes: fused, eager, compiled -->\n<!-- end -->\n" +
		"<!-- medians: g.json torch.json half.json half-torch.json; modes: fused, eager, compiled -->\n<!-- end -->\n" +
		"<!-- table: half.json; columns: suite, variant, dtype, median ms -->\n<!-- end -->\n")
	for _, want := range []string{
		"| gelu | " + name + " | 8 | 21 | 6 |", "| gelu | custom, float16 | 8 | 21 | 6 |", "| gelu | custom | 15 | 41 | 12 |",
		"| gelu | " + name + " | float16 | 8 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s%s", want, text, pageErrs)
		}
	}
	if err := os.WriteFile(page, []byte(strings.Replace(out, "| 15 |", "| 14 |", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := fusebench("tables", "-check", page); code != exitFailed || !strings.Contains(errs, "page.md") {
		t.Errorf("a figure that was changed by hand: exit %d, %s", code, errs)
	}
	for text, want := range map[string]string{
		"<!-- table: g.json -->\n":                                     "no line",
		"<!-- table: none.json -->\n<!-- end -->\n":                    "none.json",
		"<!-- table: g.json; columns: speed -->\n<!-- end -->\n":       "no column",
		"<!-- table: g.json; colour: red -->\n<!-- end -->\n":          `no "colour"`,
		"<!-- table: g.json; variants: erf -->\n<!-- end -->\n":        "no column of g.json",
		"<!-- picture: p.svg -->\n<!-- end -->\n":                      "without a file",
		"<!-- medians: g.json; columns: median ms -->\n<!-- end -->\n": `no "columns"`,
	} {
		if _, errs := fill(text); !strings.Contains(errs, want) {
			t.Errorf("%q: %q, want %q", text, errs, want)
		}
	}
	if code, _, _ := fusebench("tables"); code != exitUsage {
		t.Errorf("no page: exit %d", code)
	}
}
