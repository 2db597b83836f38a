package fusion

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace-go/millrace/runtime"
)

// TestDigest: the digest in fingerprint.go is that of the golden files. So a change of golden plans
// changes the version, and stored plans become plans of another version. With -update the test
// rewrites the digest.
func TestDigest(t *testing.T) {
	h := xxhash.New()
	for _, pattern := range []string{"testdata/plans/*.txt", "testdata/layouts/*.txt"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(h, filepath.Base(f), len(data))
			h.Write(data)
		}
	}
	if digest == h.Sum64() {
		return
	}
	want := fmt.Sprintf("digest = 0x%016x", h.Sum64())
	if up := flag.Lookup("update"); up == nil || up.Value.String() != "true" {
		t.Fatalf("golden files have changed: set %s in fingerprint.go, or run with -update", want)
	}
	src, err := os.ReadFile("fingerprint.go")
	if err != nil {
		t.Fatal(err)
	}
	src = regexp.MustCompile(`digest = 0x[0-9a-f]+`).ReplaceAll(src, []byte(want))
	if err := os.WriteFile("fingerprint.go", src, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFingerprint checks that the fingerprint changes with everything that a plan depends on, and
// with nothing else, and that Unfit names the difference.
func TestFingerprint(t *testing.T) {
	base := *testCaps()
	other := base
	other.Description, other.Fingerprint, other.MaxBuffer = "another machine", "another ISA", 7
	here := Fingerprint(&base, Best)
	if here != Fingerprint(&other, Best) {
		t.Error("what no plan depends on is in the fingerprint")
	}
	if strings.ContainsAny(here, "\n\t") || FingerprintField(here, "device") != base.Name || FingerprintField(here, "mode") != "best" || FingerprintField(here, "dev") != "" {
		t.Errorf("fingerprint %q", here)
	}
	seen := map[string]bool{here: true}
	for _, c := range []struct {
		why    string // "": plans of such a device can be used
		change func(c *runtime.Caps)
	}{
		{"device", func(c *runtime.Caps) { c.Name += "x" }},
		{"elements of", func(c *runtime.Caps) { c.ElemSize[1]++ }},
		{"operands", func(c *runtime.Caps) { c.MaxOperands++ }},
		{"", func(c *runtime.Caps) { c.MaxOperands-- }},
		{"scalars", func(c *runtime.Caps) { c.MaxScalars++ }},
		{"", func(c *runtime.Caps) { c.MaxScalars-- }},
		{"positions alone", func(c *runtime.Caps) { c.MaxSlots++ }},
		{"positions alone", func(c *runtime.Caps) { c.MaxSlots = 0 }}, // 0: no limit
		{"", func(c *runtime.Caps) { c.MaxSlots-- }},
		{"row ops in one phase", func(c *runtime.Caps) { c.MaxRowOps++ }},
		{"", func(c *runtime.Caps) { c.MaxRowOps-- }},
		{"results of row ops", func(c *runtime.Caps) { c.MaxBindings++ }},
		{"", func(c *runtime.Caps) { c.MaxBindings-- }},
		{"instructions", func(c *runtime.Caps) { c.MaxBody++ }},
		{"", func(c *runtime.Caps) { c.MaxBody-- }},
		{"moves", func(c *runtime.Caps) { c.Bandwidth *= 2 }},
		{"a launch", func(c *runtime.Caps) { c.LaunchCost *= 2 }},
		{"an operation", func(c *runtime.Caps) { c.OpCost *= 2 }},
	} {
		other := base
		c.change(&other)
		f := Fingerprint(&other, Best)
		if seen[f] {
			t.Errorf("%+v: nothing new in %s", other, f)
		}
		seen[f] = true
		if why := Unfit(f, here); (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: unfit because %q, want %q", f, why, c.why)
		}
	}
	for theirs, want := range map[string]string{
		Fingerprint(&base, Greedy):                      "mode greedy, this is best",
		strings.Replace(here, "fusion=", "fusion=9", 1): "plans of version 9",
		strings.Replace(here, "operands=", "x=", 1):     "up to none operands",
		"":   "version none",
		here: "",
	} {
		if why := Unfit(theirs, here); (why == "") != (want == "") || !strings.Contains(why, want) {
			t.Errorf("%q: unfit because %q, want %q", theirs, why, want)
		}
		foreign := Foreign(theirs) != ""
		if want := want != "" && !strings.Contains(want, "mode") && !strings.Contains(want, "operands"); foreign != want {
			t.Errorf("%q: foreign %v, want %v", theirs, foreign, want)
		}
	}
}
