package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/stream"
)

// plansCache makes a cache with the plans of a GELU and of a softmax.
func plansCache(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	dev, err := millrace.OpenOptions(millrace.Options{Device: "cpu", Cache: dir, Compile: millrace.CompileOff, Explore: millrace.ExploreWait})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []func(x *millrace.Tensor) *millrace.Tensor{
		func(x *millrace.Tensor) *millrace.Tensor { return x.MulScalar(0.7).Erf().AddScalar(1).Mul(x) },
		func(x *millrace.Tensor) *millrace.Tensor { return x.Softmax(1) },
	} {
		if err := f(millrace.OnesOn(dev, millrace.Float32, 4, 8)).Eval(); err != nil {
			t.Fatal(err)
		}
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// listed returns the rows of plans list, from its JSON.
func listed(t *testing.T, args ...string) []planRow {
	t.Helper()
	code, out, errs := fusebench(append([]string{"plans", "list", "-format", "json"}, args...)...)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d, %q", code, errs)
	}
	var rows []planRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestPlansList checks that both formats list every plan, and a file that is no entry.
func TestPlansList(t *testing.T) {
	dir := plansCache(t)
	rows := listed(t, "-kinds", "plan", dir)
	ops := map[int]bool{}
	for _, r := range rows {
		if r.Kind != "plan" || r.Device != "cpu" || r.Mode != "best" || r.Plans != 1 || r.Kernels != 1 || r.State != "ok" || r.Bytes == 0 || r.Used == nil {
			t.Errorf("%+v", r)
		}
		ops[r.Ops] = true
	}
	if len(rows) != 2 || !ops[5] { // one of the operations makes the ones
		t.Errorf("%+v", rows)
	}
	if err := os.WriteFile(filepath.Join(dir, "v1", "plan-0"), []byte("no plan"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := fusebench("plans", "list", "-kinds", "plan", dir)
	if code != 0 || errs != "" || !strings.Contains(out, rows[0].Name) || !strings.Contains(out, rows[1].Name) {
		t.Errorf("exit %d, %q\n%s", code, errs, out)
	}
	if !strings.Contains(out, "its length differs from the length in its header") || !strings.Contains(out, "3 entries") {
		t.Errorf("not a word about the damaged file:\n%s", out)
	}
	if rows := listed(t, "-kinds", "object", dir); len(rows) != 0 {
		t.Errorf("objects: %+v", rows)
	}
}

// TestPlansOfNotes checks the notes of kernels that an earlier version left: list and verify say
// that nothing reads them, an export leaves them out, and prune removes them.
func TestPlansOfNotes(t *testing.T) {
	dir := plansCache(t)
	cacheWith(t, dir, noteEntry.Kind, noteEntry.Key, "x86_64")
	rows := listed(t, "-kinds", "kernel", dir)
	if len(rows) != 1 || rows[0].State != "foreign" || !strings.Contains(rows[0].Why, "an earlier version noted") {
		t.Errorf("%+v", rows)
	}
	if code, out, errs := fusebench("plans", "verify", dir); code != 0 || !strings.Contains(out, "an earlier version noted") {
		t.Errorf("exit %d, %q\n%s", code, errs, out)
	}
	file, _ := exported(t, dir)
	for _, r := range listed(t, file) {
		if r.Kind == "kernel" || r.State != "ok" {
			t.Errorf("%+v", r)
		}
	}
	if code, _, errs := fusebench("plans", "prune", dir); code != 0 {
		t.Errorf("exit %d, %q", code, errs)
	}
	for _, r := range listed(t, dir) {
		if r.Kind == "kernel" {
			t.Errorf("%+v", r)
		}
	}
}

// TestPlansShow checks that an entry's text has its scope, its segment and its plan.
func TestPlansShow(t *testing.T) {
	dir := plansCache(t)
	file := filepath.Join(t.TempDir(), "out.txt")
	for _, r := range listed(t, "-kinds", "plan", dir) {
		if code, out, errs := fusebench("plans", "show", "-from", dir, "-o", file, r.Name); code != 0 || out != "" || errs != "" {
			t.Fatalf("exit %d, %q, %q", code, out, errs)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{r.Name, "  device=cpu\n", "record best\n", "segment\n| %0 = ", "plan\n| step 0 "} {
			if !strings.Contains(string(text), want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
	if code, out, errs := fusebench("plans", "show", "-from", dir, "plan-1"); code != exitFailed || out != "" || !strings.Contains(errs, "no plan-1 in") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

func TestPlansUsage(t *testing.T) {
	t.Setenv("MILLRACE_CACHE", "off")
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"plans nonsense", exitUsage, `fusebench plans: usage: no command "nonsense"`},
		{"plans list", exitFailed, "MILLRACE_CACHE is off"},
		{"plans list a b", exitUsage, `unexpected "b"`},
		{"plans list -format xml a", exitUsage, "json, table"},
		{"plans list /nowhere", exitFailed, "no cache in /nowhere"},
		{"plans export", exitUsage, "-o is missing"},
		{"plans export -o x -since -1h", exitUsage, "-since"},
		{"plans export -o x", exitFailed, "MILLRACE_CACHE is off"},
		{"plans export -o x /nowhere", exitFailed, "no cache in /nowhere"},
		{"plans verify", exitUsage, "name cache directories or bundles"},
		{"plans verify -format xml a", exitUsage, "json, table"},
		{"plans verify /nowhere", exitFailed, "no cache in /nowhere"},
		{"plans verify main.go", exitFailed, "main.go is not a bundle"},
		{"plans verify -device abacus main.go", exitFailed, "abacus"},
		{"plans prune -older -1h a", exitUsage, "-older"},
		{"plans prune -format xml a", exitUsage, "json, table"},
		{"plans prune", exitFailed, "MILLRACE_CACHE is off"},
		{"plans prune /nowhere", exitFailed, "no cache in /nowhere"},
		{"plans show", exitUsage, "name entries"},
		{"gelu -plans /nowhere", exitUsage, "/nowhere"},
		{"gelu -plans main.go", exitFailed, "main.go: a bundle of"},
		{"plans show -from /nowhere x", exitFailed, "no cache in /nowhere"},
	} {
		code, out, errs := fusebench(strings.Fields(c.args)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("fusebench %s: exit %d, %q, %q; want %d and %q", c.args, code, out, errs, c.code, c.says)
		}
	}
}

// exported returns a bundle of a cache, in a file.
func exported(t *testing.T, dir string, args ...string) (file string, data []byte) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "app.plans")
	if code, out, errs := fusebench(append([]string{"plans", "export", "-o", file, dir}, args...)...); code != 0 || out != "" || !strings.Contains(errs, file) {
		t.Fatalf("exit %d, %q, %q", code, out, errs)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, data
}

// rewritten returns a bundle with other keys, in a file.
func rewritten(t *testing.T, data []byte, edit func(key string) string) string {
	t.Helper()
	b, err := plancache.ReadBundle(data)
	if err != nil {
		t.Fatal(err)
	}
	var es []plancache.Entry
	for e := range b.All() {
		e.Key = edit(e.Key)
		es = append(es, e)
	}
	file := filepath.Join(t.TempDir(), "other.plans")
	var buf bytes.Buffer
	if err := plancache.WriteBundle(&buf, "a test", es); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, buf.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestPlansExport checks that the export of a cache has the entries that the cache lists, and
// that a device that uses it explores nothing.
func TestPlansExport(t *testing.T) {
	dir := plansCache(t)
	file, data := exported(t, dir)
	in := map[string]bool{}
	for _, r := range listed(t, file) {
		if r.State != "ok" || r.Used != nil {
			t.Errorf("%+v", r)
		}
		in[r.Name] = true
	}
	for _, r := range listed(t, "-kinds", "plan", dir) {
		if !in[r.Name] {
			t.Errorf("no %s in the bundle", r.Name)
		}
		if code, out, errs := fusebench("plans", "show", "-from", file, r.Name); code != 0 || errs != "" || !strings.Contains(out, "record best\n") {
			t.Errorf("exit %d, %q\n%s", code, errs, out)
		}
	}
	for _, args := range [][]string{{"-device", "webgpu"}, {"-since", "1ns"}} {
		if code, out, errs := fusebench(append([]string{"plans", "export", "-o", file + "2", dir}, args...)...); code != exitFailed || out != "" || !strings.Contains(errs, "no plans to export") {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errs)
		}
		if _, err := os.Stat(file + "2"); err == nil {
			t.Errorf("%v: a file was written", args)
		}
	}
	if _, again := exported(t, dir, "-device", "cpu", "-since", "24h"); !bytes.Equal(again, data) {
		t.Error("a filter that all passes gives another bundle")
	}
	defer stream.ForgetBundles()
	c := config{plans: file}
	if err := c.usePlans(); err != nil {
		t.Fatal(err)
	}
	dev, err := millrace.Open("cpu:compile=off,cache=off")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if err := millrace.OnesOn(dev, millrace.Float32, 3, 5).Softmax(1).Eval(); err != nil {
		t.Fatal(err)
	}
	if s := dev.Stats(); s.Explorations != 0 || s.Cache.Bundled == 0 {
		t.Errorf("%+v", s)
	}
}

// TestPlansVerify checks that valid entries pass, and that each kind of defect is listed and
// fails.
func TestPlansVerify(t *testing.T) {
	dir := plansCache(t)
	file, data := exported(t, dir)
	for _, args := range [][]string{{file}, {dir}, {"-device", "cpu", file, dir}, {"-device", "ref", file}} {
		if code, out, errs := fusebench(append([]string{"plans", "verify"}, args...)...); code != 0 || errs != "" || !strings.Contains(out, "entries, all of use") {
			t.Errorf("%v: exit %d, %q\n%s", args, code, errs, out)
		}
	}
	flipped := filepath.Join(t.TempDir(), "flipped.plans")
	bad := bytes.Clone(data)
	bad[len(bad)-1] ^= 1
	cut := filepath.Join(t.TempDir(), "cut.plans")
	var object bytes.Buffer
	if err := plancache.WriteBundle(&object, "a test", []plancache.Entry{{Kind: "object", Key: "k"}}); err != nil {
		t.Fatal(err)
	}
	code := filepath.Join(t.TempDir(), "code.plans")
	for name, b := range map[string][]byte{flipped: bad, cut: data[:len(data)-1], code: object.Bytes()} {
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	old := rewritten(t, data, func(key string) string { return strings.Replace(key, "fusion=", "fusion=0", 1) })
	other := rewritten(t, data, func(key string) string { // the meaning of the first op comes after the segment's end
		if at := strings.Index(key, "\n") + 1 + 6; strings.HasPrefix(key, "fusion=") {
			key = key[:at] + string(key[at]^1) + key[at+1:]
		}
		return key
	})
	slow := rewritten(t, data, func(key string) string { return strings.Replace(key, "bandwidth=", "bandwidth=1", 1) })
	for _, c := range []struct {
		args []string
		out  string
		errs string
	}{
		{[]string{flipped}, "damaged", "1 of "},
		{[]string{cut}, "", "is not a bundle: its length"},
		{[]string{code}, "bundles may not hold", "1 of 1 entries"},
		{[]string{old}, "foreign: plans of version 0", "entries are damaged or of no use"},
		{[]string{other}, "means something else in this version", "entries are damaged or of no use"},
		{[]string{"-device", "cpu", slow}, "bytes a second, this is taken for one of", "entries are damaged or of no use"},
	} {
		code, out, errs := fusebench(append([]string{"plans", "verify"}, c.args...)...)
		if code != exitFailed || !strings.Contains(out, c.out) || !strings.Contains(errs, c.errs) {
			t.Errorf("%v: exit %d, %q\n%s", c.args, code, errs, out)
		}
	}
	if code, out, errs := fusebench("plans", "verify", slow); code != 0 || errs != "" {
		t.Errorf("for no device in particular: exit %d, %q\n%s", code, errs, out)
	}
}

// cacheWith adds an entry to a cache.
func cacheWith(t *testing.T, dir, kind, key, value string) {
	t.Helper()
	c, err := plancache.Open(dir, plancache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Put(kind, key, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

// TestPlansPrune checks that useless entries are removed, and on request those that were not used
// for long; the others stay.
func TestPlansPrune(t *testing.T) {
	dir := plansCache(t)
	good := listed(t, dir)
	spoil := func() {
		if err := os.WriteFile(filepath.Join(dir, "v1", "plan-0"), []byte("no plan"), 0o600); err != nil {
			t.Fatal(err)
		}
		cacheWith(t, dir, "plan", "fusion=0.0 device=cpu\nold", "record best\n")
		cacheWith(t, dir, "tuning", "device=cpu\nodd", "no table")
	}
	spoil()
	if code, out, errs := fusebench("plans", "verify", dir); code != exitFailed || !strings.Contains(errs, "2 of ") || !strings.Contains(out, "3 entries") {
		t.Errorf("exit %d, %q\n%s", code, errs, out)
	}
	prune := func(args ...string) (removed []planRow) {
		t.Helper()
		code, out, errs := fusebench(append([]string{"plans", "prune", "-format", "json"}, append(args, dir)...)...)
		if code != 0 || errs != "" {
			t.Fatalf("exit %d, %q", code, errs)
		}
		if err := json.Unmarshal([]byte(out), &removed); err != nil {
			t.Fatal(err)
		}
		return removed
	}
	if n := len(prune("-n")); n != 3 || len(listed(t, dir)) != len(good)+3 {
		t.Errorf("%d would be removed, %d are left", n, len(listed(t, dir)))
	}
	if removed := prune("-kinds", "tuning"); len(removed) != 1 || removed[0].State != "damaged" || !strings.Contains(removed[0].Why, "not a tuning table") {
		t.Errorf("%+v", removed)
	}
	spoil()
	if n := len(prune("-older", "24h")); n != 3 {
		t.Errorf("%d were removed", n)
	}
	if left := listed(t, dir); !reflect.DeepEqual(left, good) {
		t.Errorf("%+v are left of %+v", left, good)
	}
	past := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "v1", good[0].Name), past, past); err != nil {
		t.Fatal(err)
	}
	if removed := prune("-older", "24h"); len(removed) != 1 || removed[0].Name != good[0].Name {
		t.Errorf("%+v", removed)
	}
	if code, out, errs := fusebench("plans", "prune", dir); code != 0 || !strings.Contains(out, "0 entries") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}
