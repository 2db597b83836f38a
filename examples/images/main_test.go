package main

import (
	"image"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

func TestRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "made", "here")
	if err := run("", out); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]image.Point{"blurred.png": {X: 320, Y: 240}, "edges.png": {X: 320, Y: 240}, "small.png": {X: 64, Y: 48}} {
		x, err := load(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if x.Dim(3) != size.X || x.Dim(2) != size.Y {
			t.Errorf("%s is %d by %d", name, x.Dim(3), x.Dim(2))
		}
	}
	// Inside the disc there is no edge, and blurring changes nothing.
	here := []millrace.Range{millrace.All, millrace.All, millrace.R(100, 140), millrace.R(140, 180)}
	x, err := load("")
	if err != nil {
		t.Fatal(err)
	}
	if same, err := millrace.AllClose(blur(x, 3).Slice(here...), x.Slice(here...), 0, 1e-5); err != nil || !same {
		t.Errorf("blurred: %v", err)
	}
	most, err := millrace.Item[float32](edges(x).Max())
	if err != nil || most < 0.3 {
		t.Errorf("edges up to %v: %v", most, err)
	}
	inside, err := millrace.Item[float32](edges(x).Slice(here...).Max())
	if err != nil || inside > 1e-5 {
		t.Errorf("edges inside up to %v: %v", inside, err)
	}
}

func TestErrors(t *testing.T) {
	if err := run("/nonexistent.png", t.TempDir()); err == nil {
		t.Error("a picture that is not there")
	}
	bad := filepath.Join(t.TempDir(), "bad.png")
	if err := os.WriteFile(bad, []byte("no picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(bad, t.TempDir()); err == nil {
		t.Error("no picture was read")
	}
}
