// Command embed embeds sentences with hugot (github.com/knights-analytics/hugot),
// which runs ONNX models through GoMLX, on GoMLX's own Go backend and on Millrace.
// Every call has another number of sentences, of other lengths, as requests to a
// server do. It prints what a call takes and what the results differ by.
//
//	go run .                               the small model that is here
//	python3 testdata/model.py /tmp/minilm --layers 6 --hidden 384 --heads 12 --inner 1536 --vocab 30522 --positions 512
//	go run . -model /tmp/minilm            one of the size of all-MiniLM-L6-v2
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

func main() {
	folder := flag.String("model", "testdata/small", "folder of model.onnx, tokenizer.json and config.json, as testdata/model.py writes them")
	calls := flag.Int("calls", 40, "calls that are timed, on each backend")
	batch := flag.Int("batch", 16, "most sentences in a call")
	words := flag.Int("words", 40, "most words in a sentence")
	config := flag.String("config", "", "Millrace's device and options, as threads=2")
	profile := flag.String("cpuprofile", "", "write a profile of Millrace's calls to this file, and do not run the other backend")
	flag.Parse()
	if err := run(*folder, *config, *profile, batches(*calls+1, *batch, *words)); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

// batches are made-up sentences, the same ones in every run.
func batches(calls, batch, words int) [][]string {
	vocabulary := strings.Fields("the mill wheel turns slowly by an old bridge and grain is ground into flour while water runs past one garden")
	r := rand.New(rand.NewPCG(1, 2))
	list := make([][]string, calls)
	for i := range list {
		list[i] = make([]string, 1+r.IntN(batch))
		for k := range list[i] {
			sentence := make([]string, 1+r.IntN(words))
			for w := range sentence {
				sentence[w] = vocabulary[r.IntN(len(vocabulary))]
			}
			list[i][k] = strings.Join(sentence, " ")
		}
	}
	return list
}

// run embeds each batch on both backends in turn, and all of them once more: hugot
// has a graph for each size then.
func run(folder, config, profile string, list [][]string) error {
	ctx := context.Background()
	ours, err := open(ctx, folder, true, config)
	if err != nil {
		return err
	}
	defer ours.close()
	sides := []*embedder{ours}
	if profile == "" {
		theirs, err := open(ctx, folder, false, "")
		if err != nil {
			return err
		}
		defer theirs.close()
		sides = append(sides, theirs)
	}
	start, err := timed(ctx, sides, list[:1])
	if err != nil {
		return err
	}
	for k, took := range start.times {
		fmt.Printf("%-9s the first call takes %.0f ms\n", names[k], took[0])
	}
	if profile != "" {
		if err := os.MkdirAll(filepath.Dir(profile), 0o777); err != nil {
			return err
		}
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer fmt.Println("wrote", profile)
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for _, sizes := range []string{"new", "known"} {
		before := counted(ours)
		r, err := timed(ctx, sides, list[1:])
		if err != nil {
			return err
		}
		r.print(sizes)
		after := counted(ours)
		fmt.Printf("          millrace planned %d and compiled %d times\n", after.plans-before.plans, after.compiles-before.compiles)
	}
	return nil
}

// names are those of the sides.
var names = []string{"millrace", "go"}

// timings are of the same calls on each side.
type timings struct {
	times [][]float64 // in milliseconds
	worst float64     // difference of embeddings
}

func timed(ctx context.Context, sides []*embedder, list [][]string) (r timings, err error) {
	r.times = make([][]float64, len(sides))
	for _, sentences := range list {
		var first [][]float32
		for k, e := range sides {
			start := time.Now()
			vectors, err := e.embed(ctx, sentences)
			if err != nil {
				return r, err
			}
			r.times[k] = append(r.times[k], time.Since(start).Seconds()*1e3)
			if k == 0 {
				first = vectors
			}
			r.worst = max(r.worst, differ(first, vectors))
		}
	}
	return r, nil
}

func (r timings) print(sizes string) {
	for k, took := range r.times {
		fmt.Printf("%-9s a call of %s sizes takes %.1f ms (median of %d)\n", names[k], sizes, median(took), len(took))
	}
	if len(r.times) == 2 {
		var ratios []float64
		for i, took := range r.times[0] {
			ratios = append(ratios, r.times[1][i]/took)
		}
		fmt.Printf("          millrace is %.1f times faster (median; %.1f to %.1f), and embeddings differ by %.1e at most\n",
			median(ratios), slices.Min(ratios), slices.Max(ratios), r.worst)
	}
}

// counts are of plans made and kernels compiled, which a shape like one before
// does not add to.
type counts struct{ plans, compiles int64 }

func counted(e *embedder) counts {
	s := e.device.Stats()
	return counts{plans: s.Explorations, compiles: s.Runtime.Compiles}
}

// differ is the largest difference of two elements.
func differ(a, b [][]float32) (worst float64) {
	for i, row := range a {
		for k, v := range row {
			worst = max(worst, math.Abs(float64(v)-float64(b[i][k])))
		}
	}
	return worst
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
