package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
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

// TestReadmeCounts: nearest records as many operations, and runs as many kernels, as README says, and
// makes one plan for any number of queries.
func TestReadmeCounts(t *testing.T) {
	dev, err := millrace.Open("cpu:explore=wait")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	points := millrace.UniformOn(dev, millrace.Float32, 1, 30, 4)
	for i, n := range []int{2, 3, 40} {
		queries := millrace.UniformOn(dev, millrace.Float32, 2, n, 4)
		if err := errors.Join(queries.Eval(), points.Eval()); err != nil {
			t.Fatal(err)
		}
		before := dev.Stats()
		found := nearest(queries, points)
		recorded := dev.Stats()
		if err := found.Eval(); err != nil {
			t.Fatal(err)
		}
		after := dev.Stats()
		ops, early, kernels := recorded.Ops-before.Ops, recorded.Kernels-before.Kernels, after.Kernels-recorded.Kernels
		if ops != 6 || early != 0 || kernels != 3 {
			t.Errorf("%d queries: %d operations, %d kernels while they were recorded, %d when they ran", n, ops, early, kernels)
		}
		if made := after.Explorations - recorded.Explorations; made != int64(1-min(i, 1)) {
			t.Errorf("%d queries: %d plans were made", n, made)
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
