package main

import (
	"bytes"
	"fmt"
	"go/format"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/plancache/lookup"
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

// noteEntry is an entry in which an earlier version noted a kernel that ran.
var noteEntry = plancache.Entry{Kind: lookup.KindKernel, Key: "device=cpu\ncc/cc/cc\nin 0 : float32\nout 1 : float32\n%0 = load 0 : float32\nstore 1 %0\n"}

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

// planEntry is an entry with plans that this version counts as its own. The generator does not
// read the plans.
func planEntry(form string) plancache.Entry {
	return plancache.Entry{Kind: kindPlan, Key: "fusion=" + fusion.Version() + " device=cpu" + "\n" + form, Value: []byte("x")}
}

// TestPlansGenGolden compares a package with testdata; -update rewrites it.
func TestPlansGenGolden(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := fusebench("plans", "gen", "-o", dir, "-pkg", "shipped", bundleFile(t, planEntry("one")))
	if code != 0 || errs != "" {
		t.Fatalf("exit %d, %q", code, errs)
	}
	files := filesIn(t, dir)
	text := files[genPlans]
	if formatted, err := format.Source([]byte(text)); err != nil || string(formatted) != text {
		t.Errorf("%s is not as gofmt has it: %v", genPlans, err)
	}
	got := strings.ReplaceAll(out, dir, "DIR") + fmt.Sprintf("==== %v\n==== %s\n%s", slices.Sorted(maps.Keys(files)), genPlans, text)
	path := filepath.Join("testdata", "gen.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs: run with -update and look at the difference\n%s", path, got)
	}
}

// TestPlansGenAgain checks that the same bundle gives the same files, in any order of its
// entries. Files of an earlier run are removed, and other files stay.
func TestPlansGenAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shipped")
	gen := func(bundle string) map[string]string {
		t.Helper()
		code, out, errs := fusebench("plans", "gen", "-o", dir, bundle)
		if code != 0 || errs != "" || !strings.Contains(out, "package shipped with") {
			t.Fatalf("exit %d, %q, %q", code, out, errs)
		}
		return filesIn(t, dir)
	}
	one := gen(bundleFile(t, planEntry("two"), planEntry("one")))
	for _, name := range []string{"mine.go", genPrefix + "kernels_0_avx2.c"} { // an earlier version wrote the second one
		if err := os.WriteFile(filepath.Join(dir, name), []byte("package shipped\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	two := gen(bundleFile(t, planEntry("one"), planEntry("two")))
	if got := slices.Sorted(maps.Keys(two)); !slices.Equal(got, []string{"mine.go", genBundle, genPlans}) {
		t.Errorf("files %v", got)
	}
	delete(two, "mine.go")
	if !maps.Equal(one, two) {
		t.Error("the same entries in another order give another package")
	}
}

// TestPlansGenLeft checks that plans of another version and notes of kernels are left out and
// reported, with the reason, and that all other entries are in the package.
func TestPlansGenLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "p")
	bundle := bundleFile(t, noteEntry, planEntry("one"), plancache.Entry{Kind: kindPlan, Key: "fusion=0.1 device=cpu\nkey", Value: []byte("x")})
	code, out, errs := fusebench("plans", "gen", "-o", dir, bundle)
	if code != 0 || errs != "" || !strings.Contains(out, "package p with 1 plans\n") || !strings.Contains(out, "left out: plans: plans of version 0.1") ||
		!strings.Contains(out, "left out: 1 notes of kernels") {
		t.Errorf("exit %d, %q, %q", code, errs, out)
	}
	b, err := plancache.ReadBundle([]byte(filesIn(t, dir)[genBundle]))
	if err != nil || b.Len() != 1 {
		t.Errorf("the package's bundle: %v, %d entries", err, b.Len())
	}
}

// TestPlansGenOfCache checks that the contents of a cache are enough for a package.
func TestPlansGenOfCache(t *testing.T) {
	bundle, dir := filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "p")
	if code, _, errs := fusebench("plans", "export", "-o", bundle, plansCache(t)); code != 0 {
		t.Fatalf("exit %d, %q", code, errs)
	}
	code, out, errs := fusebench("plans", "gen", "-o", dir, bundle)
	if code != 0 || errs != "" || !strings.Contains(out, "package p with 2 plans\n") || strings.Contains(out, "left out") {
		t.Errorf("exit %d, %q\n%s", code, errs, out)
	}
}

func TestPlansGenErrors(t *testing.T) {
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged")
	good, err := os.ReadFile(bundleFile(t, planEntry("one")))
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
		{[]string{damaged}, exitUsage, "-o is missing: the directory"},
		{[]string{"-o", out}, exitUsage, "name a bundle"},
		{[]string{"-o", out, damaged, "more"}, exitUsage, `unexpected "more"`},
		{[]string{"-o", dir + "/a-b", damaged}, exitUsage, `"a-b" is not the name of a package`},
		{[]string{"-o", out, "-pkg", "func", damaged}, exitUsage, `"func" is not the name of a package`},
		{[]string{"-o", out, filepath.Join(dir, "none")}, exitFailed, "no such file"},
		{[]string{"-o", out, damaged}, exitFailed, damaged + ": entry 0 of the bundle"},
		{[]string{"-o", out, os.Args[0]}, exitFailed, "it does not begin as a bundle does"},
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
