package main

import (
	"os"
	"strings"
	"testing"
)

// Both ways find the same points, at sizes that no tile divides, and at one of everything.
func TestRun(t *testing.T) {
	for _, n := range [][3]int{{37, 211, 19}, {1, 1, 1}, {5, 300, 128}} {
		if err := run(n[0], n[1], n[2], 2); err != nil {
			t.Errorf("%v: %v", n, err)
		}
	}
}

// A point that is farther is found.
func TestDiffers(t *testing.T) {
	q, p := []float32{0, 0}, []float32{1, 1, 3, 3}
	if i := differs([]int64{1}, []int64{0}, q, p, 2); i != 0 {
		t.Errorf("query %d", i)
	}
	if i := differs([]int64{0}, []int64{0}, q, p, 2); i != -1 {
		t.Errorf("query %d differs from itself", i)
	}
}

// The README shows the two functions that are timed here.
func TestReadme(t *testing.T) {
	program, readme := read(t, "main.go"), read(t, "../../README.md")
	for _, start := range []string{"// loop gives", "// nearest does"} {
		here, there := function(program, start), function(readme, start)
		if here == "" || here != there {
			t.Errorf("main.go has\n%s\nand README.md\n%s", here, there)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// function is the one whose documentation begins with start.
func function(text, start string) string {
	_, rest, ok := strings.Cut(text, start)
	if !ok {
		return ""
	}
	body, _, _ := strings.Cut(rest, "\n}\n")
	return start + body
}
