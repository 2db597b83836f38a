package main

import (
	"bytes"
	"fmt"
	"go/format"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime/cpu"
)

// bundleFile writes entries as a bundle.
func bundleFile(t *testing.T, entries ...plancache.Entry) string {
	t.Helper()
	var b bytes.Buffer
	if err := plancache.WriteBundle(&b, "a test", entries); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "plans.bundle")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func noteEntry(text string) plancache.Entry { return plancache.Entry{Kind: cpu.KindKernel, Key: text} }

// filesIn returns the files of a directory.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range list {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name()] = string(text)
	}
	return files
}

// ends returns the first and the last lines of a text. The lines between them come from the
// printer, which has its own golden files.
func ends(text string, first, last int) string {
	lines := strings.SplitAfter(text, "\n")
	if len(lines) <= first+last {
		return text
	}
	return strings.Join(lines[:first], "") + "…\n" + strings.Join(lines[len(lines)-last:], "")
}

// formHash matches the numbers that change with every new operation.
var formHash = regexp.MustCompile(`Form:   "[0-9a-f]{16}"`)

// TestPlansGenGolden compares two packages with testdata; -update rewrites it.
func TestPlansGenGolden(t *testing.T) {
	rows := "device=cpu\ncc/cc/cc guarded-rows\nin 0 : float32\nout 1 : float32 row\n%0 = load 0 : float32\n%1 = sum %0 : float32\nstore 1 %1\n"
	bundle := bundleFile(t, noteEntry(scaleNote), noteEntry(rows))
	var b strings.Builder
	for _, flags := range [][]string{{"-pkg", "shipped"}, {"-pkg", "plans", "-cgo=false"}} {
		dir := t.TempDir()
		code, out, errs := fusebench(append([]string{"plans", "gen", "-o", dir, bundle}, flags...)...)
		if code != 0 || errs != "" {
			t.Fatalf("exit %d, %q", code, errs)
		}
		fmt.Fprintf(&b, "==== %s\n%s", strings.Join(flags, " "), strings.ReplaceAll(out, dir, "DIR"))
		files := filesIn(t, dir)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(&b, "==== %s\n", name)
			switch filepath.Ext(name) {
			case ".go":
				if text, err := format.Source([]byte(files[name])); err != nil || string(text) != files[name] {
					t.Errorf("%s is not as gofmt has it: %v", name, err)
				}
				b.WriteString(formHash.ReplaceAllString(files[name], `Form:   "a hash"`))
			case ".c":
				b.WriteString(ends(files[name], 18, 22))
			}
		}
	}
	path := filepath.Join("testdata", "gen.golden")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("%s differs: run with -update and look at the difference\n%s", path, got)
	}
}

// scaleNote is the note of a kernel that multiplies by a scalar.
const scaleNote = "device=cpu\ncc/cc/cc\nin 0 : float32\nout 1 : float32\nscalar 0 : float32\n%0 = load 0 : float32\n%1 = scalar 0 : float32\n%2 = mul %0 %1 : float32\nstore 1 %2\n"

// TestPlansGenAgain checks that the same bundle gives the same files, in any order of its
// entries. Files of an earlier run are removed, and other files stay.
func TestPlansGenAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shipped")
	wide := noteEntry(strings.ReplaceAll(scaleNote, "float32", "float64"))
	gen := func(flags ...string) map[string]string {
		t.Helper()
		code, out, errs := fusebench(append([]string{"plans", "gen", "-o", dir}, flags...)...)
		if code != 0 || errs != "" || !strings.Contains(out, "package shipped with") {
			t.Fatalf("exit %d, %q, %q", code, out, errs)
		}
		return filesIn(t, dir)
	}
	one := gen(bundleFile(t, noteEntry(scaleNote), wide))
	if len(one) != 9 { // two objects of three levels
		t.Errorf("files %v", slices.Sorted(maps.Keys(one)))
	}
	if err := os.WriteFile(filepath.Join(dir, "mine.go"), []byte("package shipped\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	two := gen(bundleFile(t, wide, noteEntry(scaleNote)))
	delete(two, "mine.go")
	if !maps.Equal(one, two) {
		t.Error("the same entries in another order give another package")
	}
	if narrow := gen(bundleFile(t, noteEntry(scaleNote))); len(narrow) != 7 || narrow["mine.go"] == "" {
		t.Errorf("files %v", slices.Sorted(maps.Keys(narrow)))
	}
	plans := gen("-cgo=false", bundleFile(t, noteEntry(scaleNote)))
	if got := slices.Sorted(maps.Keys(plans)); !slices.Equal(got, []string{"mine.go", genBundle, genPlans}) {
		t.Errorf("without cgo: files %v", got)
	}
}

// TestPlansGenLeft checks that entries that cannot be in the package are reported, with the
// reason.
func TestPlansGenLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "p")
	bundle := bundleFile(t, noteEntry(scaleNote), noteEntry("device=cpu\ncc/cc/cc\nno kernel"),
		plancache.Entry{Kind: "plan", Key: "fusion=0.1 device=cpu\nkey", Value: []byte("x")})
	if code, out, errs := fusebench("plans", "gen", "-cgo=false", "-o", dir, bundle); code != 0 || errs != "" ||
		!strings.Contains(out, "left out: plans: plans of version 0.1") || strings.Contains(out, "kernel \"") {
		t.Errorf("without cgo: exit %d, %q, %q", code, errs, out)
	}
	code, out, errs := fusebench("plans", "gen", "-o", dir, bundle)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d, %q", code, errs)
	}
	for _, want := range []string{"package p with 0 plans and 1 kernels", "left out: plans: plans of version 0.1", "left out: kernel \"device=cpu\\ncc/cc/cc\\nno kernel\": cpu: "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	b, err := plancache.ReadBundle([]byte(filesIn(t, dir)[genBundle]))
	if err != nil || b.Len() != 0 {
		t.Errorf("the package's bundle: %v, %d entries", err, b.Len())
	}
	if code, out, _ := fusebench("plans", "gen", "-o", dir, bundleFile(t)); code != 0 || !strings.Contains(out, "says of no kernel that it ran") {
		t.Errorf("a bundle without kernels: exit %d, %q", code, out)
	}
}

// TestPlansGenOfCache checks that the contents of a cache are enough for a package, with its
// kernels.
func TestPlansGenOfCache(t *testing.T) {
	bundle, dir := filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "p")
	if code, _, errs := fusebench("plans", "export", "-o", bundle, plansCache(t)); code != 0 {
		t.Fatalf("exit %d, %q", code, errs)
	}
	code, out, errs := fusebench("plans", "gen", "-o", dir, bundle)
	kernels := 0
	if builtWithCgo {
		kernels = 2
	}
	if want := fmt.Sprintf("package p with 2 plans and %d kernels", kernels); code != 0 || errs != "" || !strings.Contains(out, want) || strings.Contains(out, "left out") {
		t.Errorf("exit %d, %q\n%s, want %s", code, errs, out, want)
	}
}

func TestPlansGenErrors(t *testing.T) {
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged")
	good, err := os.ReadFile(bundleFile(t, noteEntry(scaleNote)))
	if err != nil {
		t.Fatal(err)
	}
	good[len(good)-1] ^= 1
	if err := os.WriteFile(damaged, good, 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{damaged}, exitUsage, "no directory: -o"},
		{[]string{"-o", out}, exitUsage, "no bundle"},
		{[]string{"-o", out, damaged, "more"}, exitUsage, `unexpected "more"`},
		{[]string{"-o", dir + "/a-b", damaged}, exitUsage, `"a-b" is no name of a package`},
		{[]string{"-o", out, "-pkg", "func", damaged}, exitUsage, `"func" is no name of a package`},
		{[]string{"-o", out, filepath.Join(dir, "none")}, exitFailed, "no such file"},
		{[]string{"-o", out, damaged}, exitFailed, damaged + ": entry 0 of the bundle"},
		{[]string{"-o", out, os.Args[0]}, exitFailed, "does not begin as bundles do"},
	} {
		code, printed, errs := fusebench(append([]string{"plans", "gen"}, c.args...)...)
		if code != c.code || printed != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit %d, %q, %q; want %d and %q", c.args, code, printed, errs, c.code, c.says)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("something was written all the same")
	}
}
