package cpu

import (
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/codegen/native/amd64"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// TestReachesFar checks that prefetched memory is memory that will be read.
func TestReachesFar(t *testing.T) {
	isa := jit.ISA()
	if isa == nil {
		t.Skip("no machine code here")
	}
	k := rowKernel(t, "in 0 : float32\nin 1 : float32\nout 2 : float32\n%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = add %0 %1 : float32\nstore 2 %2\n")
	far := int64(8 * native.AheadBytes / 4)
	for _, c := range []struct {
		what   string
		second codegen.AccessClass
		dims   [2]int64
		stride [3][2]int64
		want   bool
	}{
		{"all in one piece", codegen.Contiguous, [2]int64{1000, 10}, [3][2]int64{{10, 1}, {10, 1}, {10, 1}}, true},
		{"short in all", codegen.Contiguous, [2]int64{10, 10}, [3][2]int64{{10, 1}, {10, 1}, {10, 1}}, false},
		{"rows that lie apart", codegen.Contiguous, [2]int64{1000, 64}, [3][2]int64{{128, 1}, {128, 1}, {64, 1}}, false},
		{"long rows that lie apart", codegen.Contiguous, [2]int64{10, far}, [3][2]int64{{2 * far, 1}, {2 * far, 1}, {far, 1}}, true},
		{"an element for each row", codegen.Splat, [2]int64{1000, 64}, [3][2]int64{{64, 1}, {1, 0}, {64, 1}}, true},
		{"the same row again", codegen.Contiguous, [2]int64{1000, 64}, [3][2]int64{{64, 1}, {0, 1}, {64, 1}}, false},
		{"results that lie apart", codegen.Contiguous, [2]int64{1000, 64}, [3][2]int64{{64, 1}, {64, 1}, {128, 1}}, true},
	} {
		class := []codegen.AccessClass{codegen.Contiguous, c.second, codegen.Contiguous}
		p, err := newMachinePhase(&cgo.Unit{Kernel: k, Variant: cgo.Variant{Class: class}}, 3, isa, false)
		if err != nil {
			t.Fatal(err)
		}
		a := args{Args: operands.Args{Rank: 2, Dims: [runtime.MaxRank]int64{c.dims[0], c.dims[1]}}}
		for _, s := range c.stride {
			a.Ops = append(a.Ops, operand{Stride: [runtime.MaxRank]int64{s[0], s[1]}})
		}
		w := machineWalk{p: p, a: &a, merged: &merged{p: p, inner: c.dims[1]}}
		if w.merge(); w.long != c.want {
			t.Errorf("%s: %v, want %v", c.what, w.long, c.want)
		}
	}
}

// TestAsksAhead checks that only loops for streamed memory prefetch, and that they do so once per
// line.
func TestAsksAhead(t *testing.T) {
	isa := jit.ISA()
	if isa == nil || !isa.PassesCaches() {
		t.Skip("nothing is stored past the caches here")
	}
	for dt, lines := range map[string]int{"float32": 4 * isa.Bytes / 64, "uint8": isa.Bytes / 64} {
		k := rowKernel(t, "in 0 : "+dt+"\nout 1 : float32\n%0 = load 0 : "+dt+"\n%1 = convert %0 : float32\nstore 1 %1\n")
		for _, ahead := range []bool{false, true} {
			v := native.Variant{Class: make([]codegen.AccessClass, 2), Past: 2, Far: ahead}
			f, err := native.Compile(k, v, isa, true)
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			if ahead {
				want = max(lines, 1)
				if isa == amd64.AVX2 {
					want++ // from the loop of one vector
				}
			}
			if n := strings.Count(f.Text(), "prefetcht0"); n != want {
				t.Errorf("%s, ahead %v: %d requests, want %d", dt, ahead, n, want)
			}
		}
	}
}

// TestAsksForTiles checks that row kernels prefetch their next tile, and that other kernels have
// none.
func TestAsksForTiles(t *testing.T) {
	if jit.ISA() == nil {
		t.Skip("no machine code here")
	}
	d := openTest(t, runtime.Config{Compile: runtime.CompileNative, Tier: 1, Threads: 1})
	points := rowKernel(t, "in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n%1 = add %0 %0 : float32\nstore 1 %1\n")
	for want, k := range map[bool]*codegen.Kernel{true: rowKernel(t, rowtext.Softmax), false: points} {
		bound(t, d, k, launchOf(k, 1), func(l *runtime.Launch) {
			r, err := d.prepareFor(l, 1)
			if err != nil || r.code == nil {
				t.Fatalf("code %v, %v", r.code, err)
			}
			asks := false
			for _, e := range r.code.evaluators {
				asks = asks || e.(*machinePhase).v.Ahead != 0
			}
			if asks != want {
				t.Errorf("with rows %v: asks ahead for tiles: %v", want, asks)
			}
		})
	}
}
