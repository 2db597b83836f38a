package main

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// With keys and values kept the logits of each character are those of the whole text at
// once, and what is written is the same on both backends.
func TestGenerate(t *testing.T) {
	c := config{model: "transformer", batch: 1, hidden: 256, layers: 2, context: 24}
	data, err := newText("", 1, c.context)
	if err != nil {
		t.Fatal(err)
	}
	c.vocabulary = len(data.chars)
	written := map[string]string{}
	for _, name := range []string{"go:ops_sequential", "millrace:cpu"} {
		backend, err := compute.NewWithConfig(name)
		if err != nil {
			t.Fatal(err)
		}
		defer backend.Finalize()
		store := model.NewStore()
		var steps [][]float32
		for range 2 { // what an earlier text left must not be seen
			steps = nil
			if written[name], err = generate(c, backend, store, data, "First ", c.context-6, 0, func(l []float32) { steps = append(steps, l) }); err != nil {
				t.Fatal(err)
			}
		}
		whole, err := model.NewExec(backend, store, func(scope *model.Scope, x *graph.Node) *graph.Node { return transformer(c, scope, x) })
		if err != nil {
			t.Fatal(err)
		}
		out, err := whole.Exec([][]int32{data.encode([]byte(written[name]))})
		if err != nil {
			t.Fatal(err)
		}
		all := tensors.MustCopyFlatData[float32](out[0])
		if len(steps) != c.context-1 {
			t.Fatalf("%s: %d steps", name, len(steps))
		}
		for i, logits := range steps {
			for k, l := range logits {
				if want := all[i*c.vocabulary+k]; !(math.Abs(float64(l-want)) < 1e-5) {
					t.Fatalf("%s: logit %d of character %d is %v, of the whole text %v", name, k, i, l, want)
				}
			}
		}
	}
	if a, b := written["go:ops_sequential"], written["millrace:cpu"]; a != b || !strings.HasPrefix(a, "First ") || len(a) != c.context {
		t.Errorf("%q, on the Go backend %q", b, a)
	}
}

// A text of the user's is read; one that is too short, or that the model cannot see at
// once, is an error.
func TestTexts(t *testing.T) {
	c := config{model: "transformer", batch: 2, hidden: 128, steps: 2, report: 1, layers: 1, context: 8, generate: 7}
	c.text = filepath.Join(t.TempDir(), "text")
	for _, x := range []struct {
		text     string
		generate int
		want     string
	}{{strings.Repeat("to be or not ", 9), 7, ""}, {"to be", 7, "5 characters"}, {strings.Repeat("to be or not ", 9), 8, "the model sees from 1 to 8"}} {
		if err := os.WriteFile(c.text, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		c.generate = x.generate
		h, err := fit(c, "millrace:cpu", io.Discard, nil)
		if x.want != "" {
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v; want %q", err, x.want)
			}
			continue
		}
		if err != nil || len(h.sample) != 8 || strings.Trim(h.sample, "\ntobernt ") != "" {
			t.Errorf("%q, %v", h.sample, err)
		}
	}
	c.text += " that is none"
	if _, err := fit(c, "millrace:cpu", io.Discard, nil); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}
