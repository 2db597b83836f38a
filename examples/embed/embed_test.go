package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const small = "testdata/small"

// closest is what embeddings may differ by: vectors of length 1, of float32.
const closest = 1e-6

func opened(t *testing.T, onMillrace bool, config string) *embedder {
	t.Helper()
	e, err := open(t.Context(), small, onMillrace, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.close)
	return e
}

func embedded(t *testing.T, e *embedder, sentences []string) [][]float32 {
	t.Helper()
	vectors, err := e.embed(t.Context(), sentences)
	if err != nil {
		t.Fatal(err)
	}
	if len(vectors) != len(sentences) {
		t.Fatalf("%d vectors for %d sentences", len(vectors), len(sentences))
	}
	return vectors
}

// The numbers are those that onnxruntime gave for the same model, with a tokenizer
// that is not hugot's.
func TestAgainstONNXRuntime(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(small, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var expected struct {
		Batches []struct {
			Sentences  []string
			Embeddings [][]float32
		}
	}
	if err := json.Unmarshal(raw, &expected); err != nil {
		t.Fatal(err)
	}
	if len(expected.Batches) == 0 {
		t.Fatal("nothing is expected")
	}
	e := opened(t, true, "")
	for round := range 2 { // the second of graphs that there are
		for _, b := range expected.Batches {
			d := differ(embedded(t, e, b.Sentences), b.Embeddings)
			if !(d <= closest) {
				t.Errorf("round %d, %q: differs by %.1e", round, b.Sentences, d)
			}
		}
	}
}

func TestAgainstGo(t *testing.T) {
	ours, theirs := opened(t, true, ""), opened(t, false, "")
	for i, sentences := range batches(12, 6, 30) {
		got := embedded(t, ours, sentences)
		if d := differ(got, embedded(t, theirs, sentences)); !(d <= closest) {
			t.Errorf("call %d, %d sentences: differs by %.1e from GoMLX's own backend", i, len(sentences), d)
		}
		for _, v := range got {
			norm := 0.0
			for _, x := range v {
				norm += float64(x) * float64(x)
			}
			if math.Abs(norm-1) > 1e-5 {
				t.Errorf("call %d: a vector of length %g", i, math.Sqrt(norm))
			}
		}
	}
}

// Plans and kernels hold no sizes, but which axes have one element only: a batch of
// one sentence, and one of several, are all that is planned and compiled for.
func TestNothingIsCompiledForSizes(t *testing.T) {
	t.Setenv("MILLRACE_CACHE", "off")
	e := opened(t, true, "compile=wait,explore=wait")
	embedded(t, e, []string{"the mill turns"})
	embedded(t, e, []string{"the mill turns", "a stone waits by the water"})
	before := counted(e)
	if before.plans == 0 {
		t.Fatal("nothing was planned at first")
	}
	for i, sentences := range batches(20, 8, 40) {
		embedded(t, e, sentences)
		if after := counted(e); after != before {
			t.Fatalf("call %d, %d sentences: %+v, before %+v", i, len(sentences), after, before)
		}
	}
}

func TestBadInput(t *testing.T) {
	if e, err := open(t.Context(), small, true, "thread=2"); err == nil || !strings.Contains(err.Error(), "threads") {
		t.Errorf("an unknown option gave %v, %v", e, err)
	}
	if e, err := open(t.Context(), t.TempDir(), true, ""); err == nil {
		t.Errorf("a folder without a model gave %v", e)
	}
	// What failed left hugot's own backend in its place.
	if e := opened(t, false, ""); e.device != nil {
		t.Error("go is still Millrace")
	}
}
