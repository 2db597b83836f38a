package gomlxbackend

import (
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"
)

// Finalize gives the memory of constants back at once, also of an executable that
// has run and that somebody still holds.
func TestFinalizeFreesConstants(t *testing.T) {
	b := openBackend(t, "cpu,compile=off")
	const n = 1 << 18
	x := upload(t, b, make([]float32, n), n)
	before := b.Device().Stats().LiveBytes
	e := compile(b, n, 1, func(f compute.Function, in []compute.Value) []compute.Value {
		return []compute.Value{must(f.Add(in[0], must(f.Constant(make([]float32, n), n))))}
	})
	for range 3 {
		out, err := e.Execute([]compute.Buffer{x}, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := out[0].Finalize(); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.Device().Stats().LiveBytes - before; got != 4*n {
		t.Errorf("%d bytes beside the input, want those of the constant", got)
	}
	e.Finalize()
	if got := b.Device().Stats().LiveBytes - before; got != 0 {
		t.Errorf("%d bytes are left after Finalize", got)
	}
	if _, err := e.Execute([]compute.Buffer{x}, nil, 0); err == nil {
		t.Error("executed after Finalize")
	}
}

// Inputs stay as they were where another Execute was given one of them first.
func TestDonationLost(t *testing.T) {
	b := openBackend(t, "cpu,compile=off")
	e := compile(b, 4, 2, func(f compute.Function, in []compute.Value) []compute.Value {
		return []compute.Value{must(f.Add(in[0], in[1]))}
	})
	for range 3000 {
		own := [2]compute.Buffer{upload(t, b, make([]float32, 4), 4), upload(t, b, make([]float32, 4), 4)}
		both := upload(t, b, make([]float32, 4), 4)
		var errs [2]error
		var wg sync.WaitGroup
		begin := make(chan bool)
		for g := range 2 {
			wg.Go(func() { <-begin; _, errs[g] = e.Execute([]compute.Buffer{own[g], both}, []bool{true, true}, 0) })
		}
		close(begin)
		wg.Wait()
		for g, err := range errs {
			if err == nil {
				continue
			}
			if !strings.Contains(err.Error(), "donated") {
				t.Fatal(err)
			}
			if err := own[g].ToFlatData(make([]float32, 4)); err != nil {
				t.Fatalf("an input of an Execute that never began: %v", err)
			}
		}
	}
}

// An input that was donated stays as it was where another one is finalised before
// anything runs.
func TestFinalizeBesideDonation(t *testing.T) {
	b := openBackend(t, "cpu,compile=off")
	e := compile(b, 4, 2, func(f compute.Function, in []compute.Value) []compute.Value {
		return []compute.Value{must(f.Add(in[0], in[1]))}
	})
	for range 3000 {
		x, y := upload(t, b, make([]float32, 4), 4), upload(t, b, make([]float32, 4), 4)
		begin := make(chan bool)
		var wg sync.WaitGroup
		var err error
		wg.Go(func() { <-begin; _, err = e.Execute([]compute.Buffer{x, y}, []bool{true, false}, 0) })
		wg.Go(func() { <-begin; _ = y.Finalize() })
		close(begin)
		wg.Wait()
		if left := x.ToFlatData(make([]float32, 4)); (err == nil) == (left == nil) {
			t.Fatalf("Execute: %v; the donated input: %v", err, left)
		}
	}
}

// Executables that are finalised while they run: every Execute gives its result or
// says why not.
func TestFinalizeWhileExecuting(t *testing.T) {
	b := openBackend(t, "cpu,compile=off")
	for range 30 {
		e := compile(b, 64, 1, func(f compute.Function, in []compute.Value) []compute.Value {
			c := make([]float32, 64)
			c[63] = 5
			return []compute.Value{must(f.Add(in[0], must(f.Constant(c, 64)))), must(f.Constant(c, 64))}
		})
		x := upload(t, b, make([]float32, 64), 64)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for {
					out, err := e.Execute([]compute.Buffer{x}, nil, 0)
					if err != nil {
						if !strings.Contains(err.Error(), "finalized") && !strings.Contains(err.Error(), "released") {
							t.Error(err)
						}
						return
					}
					for _, buf := range out {
						flat := make([]float32, 64)
						if err := buf.ToFlatData(flat); err != nil || flat[63] != 5 {
							t.Errorf("%v, %v", flat[63], err)
							return
						}
					}
				}
			})
		}
		wg.Go(func() { e.Finalize() })
		wg.Wait()
	}
}
