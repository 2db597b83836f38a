package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/millrace-go/millrace/internal/testing/nocache"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

const root = "../../.."

func TestMain(m *testing.M) {
	os.Setenv("MILLRACE_DEVICE", "cpu:cache=off,compile=off") // examples run once each
	os.Exit(m.Run())
}

// The pages are what the generator writes, and there are no others.
func TestPages(t *testing.T) {
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
			continue
		}
		if string(got) != want {
			t.Errorf("%s is not what the code says; go generate ./internal/testing/opdocs\n%s", name, difference(string(got), want))
		}
	}
	there, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*"))
	if err != nil || len(there) != len(pages) {
		t.Errorf("%s has %d files for %d pages (%v)", folder, len(there), len(pages), err)
	}
}

// difference is the first line that differs.
func difference(got, want string) string {
	is, should := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(is), len(should)) {
		if is[i] != should[i] {
			return "is     " + is[i] + "\nshould " + should[i]
		}
	}
	return "one is longer"
}

// A new operation without a row, a row without an operation, and a row whose example cannot
// be printed, are errors.
func TestComplete(t *testing.T) {
	funcs, err := declared(root)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := exampleTexts(filepath.Join(root, "internal", "testing", "optable"))
	if err != nil {
		t.Fatal(err)
	}
	if err := complete(funcs, texts); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, says string
		spoil      func(funcs map[string]function, texts map[string]string)
	}{
		{"a new method", "Tensor.New has no row", func(f map[string]function, _ map[string]string) {
			f["Tensor.New"] = function{name: "Tensor.New", tensors: true}
		}},
		{"a method less", "a row for Tensor.Add, which there is not", func(f map[string]function, _ map[string]string) { delete(f, "Tensor.Add") }},
		{"no text", "the example of Concat", func(_ map[string]function, s map[string]string) { delete(s, "Concat") }},
	} {
		funcs, _ := declared(root)
		texts, _ := exampleTexts(filepath.Join(root, "internal", "testing", "optable"))
		c.spoil(funcs, texts)
		if err := complete(funcs, texts); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}

// Probing tells operations apart by their dtypes and gradients.
func TestFindings(t *testing.T) {
	funcs, err := declared(root)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := exampleTexts(filepath.Join(root, "internal", "testing", "optable"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := newProbe()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]optable.Op{}
	for _, r := range optable.All() {
		rows[r.Name] = r
	}
	for name, want := range map[string]finding{
		"Tensor.Add":     {"numbers", "rule", "x.Add(y)", "[[7 7 7] [7 7 7]]"},
		"Tensor.Floor":   {"floats", "0", "q.Floor()", "[-3 -1 1]"},
		"Tensor.Mean":    {"floats", "steps", "x.Mean(1)", "[2 5]"},
		"Tensor.Eq":      {"all → bool", "no", "x.Eq(y)", "[[False False False] [False False False]]"},
		"Tensor.Not":     {"bool", "no", "m.Not()", "[[False True False] [True False True]]"},
		"Tensor.MulHigh": {"uint32, uint64", "no", "x.MulHigh(y)", "[[0 0 0] [0 0 0]]"},
		"Permutation":    {"int32, int64", "", "Permutation(Int32, 1, 5)", ""},
		"linalg.Det":     {"float32, float64", "rule", "linalg.Det(a)", "5"},
		// The factor has no rule.
		"Tensor.ScatterMul": {"numbers", "rule by `v`, no by `b`", "v.ScatterMul(i, b, 0)", "[21 1 12 0 2]"},
	} {
		got, err := p.find(rows[name], funcs[name], texts[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want.prints == "" {
			want.prints = got.prints
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
