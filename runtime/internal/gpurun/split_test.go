package gpurun

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
)

// plain is a buffer without a device.
type plain int64

func (b plain) Bytes() int64 { return int64(b) }

// TestSplitCovers: pieces stay within the limits, and together they are the launch: every element
// is written once.
func TestSplitCovers(t *testing.T) {
	k, err := codegen.Parse("in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\nstore 1 %0")
	if err != nil {
		t.Fatal(err)
	}
	lim := limits{binding: 512, align: 64, bindings: 8, threads: 60}
	for _, dims := range [][]int64{{1}, {1000}, {3, 500}, {500, 3}, {7, 11, 13}, {1, 1, 200}} {
		l := runtime.Launch{Rank: len(dims), Kept: len(dims), Args: make([]runtime.Access, 2)}
		copy(l.Dims[:], dims)
		n := int64(1)
		for d := len(dims) - 1; d >= 0; d-- { // the input transposed, the output dense
			l.Args[1].Stride[d] = n
			n *= dims[d]
		}
		step := int64(1)
		for d := range dims {
			l.Args[0].Stride[d] = step
			step *= dims[d]
		}
		in, out := plain(n*wordSize), plain((n+5)*wordSize)
		l.Args[0].Buf, l.Args[1].Buf, l.Args[1].Offset = &in, &out, 5
		written := make([]int, n+5)
		s := splitter{limits: lim, emit: func(_ *codegen.Kernel, p *piece) error {
			if points(p.launch.Dims[:p.launch.Rank]) > lim.threads {
				t.Errorf("dims %v: a piece of %v", dims, p.launch.Dims[:p.launch.Rank])
			}
			for _, w := range p.windows {
				if w.size > lim.binding || w.off%lim.align != 0 || w.size%16 != 0 {
					t.Errorf("dims %v: a window of %d bytes at %d", dims, w.size, w.off)
				}
			}
			w := p.windows[p.binding[1]]
			each(p.launch.Dims[:p.launch.Rank], func(point []int64) {
				at := codegen.Position(&p.launch.Args[1], point)
				if at < 0 || at*wordSize >= w.size {
					t.Errorf("dims %v: element %d of a window of %d bytes", dims, at, w.size)
				}
				written[w.off/wordSize+at]++
			})
			return nil
		}}
		if err := s.launch(k, &l); err != nil {
			t.Fatalf("dims %v: %v", dims, err)
		}
		for i, c := range written {
			if want := 1; i >= 5 && c != want || i < 5 && c != 0 {
				t.Fatalf("dims %v: element %d is written %d times", dims, i-5, c)
			}
		}
	}
}

func each(dims []int64, f func(point []int64)) {
	point := make([]int64, len(dims))
	for range points(dims) {
		f(point)
		for d := len(dims) - 1; d >= 0; d-- {
			if point[d]++; point[d] < dims[d] {
				break
			}
			point[d] = 0
		}
	}
}

// TestStageReach: the bounds contain all positions of the stage, and are tight for one position.
func TestStageReach(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s := runtime.Stage{Offset: rng.Int64N(10)}
		n := int64(1)
		for range 1 + rng.IntN(3) {
			d := 1 + rng.Int64N(5)
			s.Dims, s.Stride = append(s.Dims, d), append(s.Stride, rng.Int64N(21)-10)
			n *= d
		}
		from := rng.Int64N(n)
		to := from + rng.Int64N(n-from)
		lo, hi := stageReach(&s, from, to)
		a := runtime.Access{Stages: []runtime.Stage{s}, Stride: [runtime.MaxRank]int64{1}}
		for p := from; p <= to; p++ {
			at := codegen.Position(&a, []int64{p})
			if at < lo || at > hi || from == to && lo != hi {
				t.Fatalf("stage %+v, positions [%d,%d]: %d is outside [%d,%d]", s, from, to, at, lo, hi)
			}
		}
	}
}

// TestSplitGivesUp: a launch that no cut can fit is an error.
func TestSplitGivesUp(t *testing.T) {
	k, err := codegen.Parse("in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\nstore 1 %0")
	if err != nil {
		t.Fatal(err)
	}
	s := splitter{limits: limits{binding: 256, align: 64, bindings: 1, threads: 100},
		emit: func(*codegen.Kernel, *piece) error { return errors.New("emitted") }}
	a, b := plain(64), plain(64)
	l := runtime.Launch{Rank: 1, Kept: 1, Args: []runtime.Access{{Buf: &a}, {Buf: &b}}}
	l.Dims[0] = 1
	if err := s.launch(k, &l); err == nil || err.Error() == "emitted" {
		t.Errorf("two buffers through one binding: %v", err)
	}
	l.Args[0].Offset = 100
	if err := s.launch(k, &l); err == nil || err.Error() == "emitted" {
		t.Errorf("an operand outside its buffer: %v", err)
	}
}
