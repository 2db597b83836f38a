package stream

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Plans outlive a change of the op table. A program with more ops and dtypes, and so with other
// numbers for all of them, finds the plans. Only the plan with an op whose expansion changed is
// made again.
func TestPlansOutliveOtherOps(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the engine")
	}
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache")
	run := func(flags ...string) string {
		t.Helper()
		program := filepath.Join(dir, "program")
		build := exec.Command("go", append(append([]string{"build", "-o", program}, flags...), "./testdata/ops")...)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", build, err, out)
		}
		out, err := exec.Command(program, cache).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	if got, want := run(), "chain 1\nrows 1\nscatter 1\nsoftplus 1\n"; got != want {
		t.Fatalf("the first run explored\n%swant\n%s", got, want)
	}
	changed := map[string]string{}
	edit := func(file string, pairs ...string) {
		t.Helper()
		path, err := filepath.Abs(filepath.Join("..", "ir", file))
		if err != nil {
			t.Fatal(err)
		}
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(pairs...).Replace(string(src))
		for i := 1; i < len(pairs); i += 2 {
			if !strings.Contains(text, pairs[i]) {
				t.Fatalf("ir/%s has no %q", file, pairs[i-1])
			}
		}
		changed[path] = filepath.Join(dir, file)
		if err := os.WriteFile(changed[path], []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	edit("op.go", "OpInvalid Op = iota\n", "OpInvalid Op = iota\n\tBrandNew\n")
	edit("dtype.go", "Invalid DType = iota\n", "Invalid DType = iota\n\tFancy\n", "name: \"invalid\"},\n", "name: \"invalid\"},\n\tFancy: {name: \"fancy\"},\n")
	edit("table.go", "Name: \"invalid\"},\n", "Name: \"invalid\"},\n\tBrandNew: {Name: \"brandnew\", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandSquare},\n",
		"Expand: expandSoftplus,", "Expand: expandSilu,")
	edit("z_sums.go", "{\"softplus\", 0x", "{\"softplus\", 1 ^ 0x") // as the test that writes z_sums.go would
	overlay, err := json.Marshal(map[string]any{"Replace": changed})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, want := run("-overlay="+file), "chain 0\nrows 0\nscatter 0\nsoftplus 1\n"; got != want {
		t.Errorf("with other ops it explored\n%swant\n%s", got, want)
	}
}
