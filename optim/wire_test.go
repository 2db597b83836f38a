package optim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/local"
	"github.com/millrace-go/millrace/internal/distapi"
	"github.com/millrace-go/millrace/internal/portion"
	"github.com/millrace-go/millrace/nn"
)

// TestWire: gradients that are sent in bfloat16 give the same bits on 1, 2 and 4 ranks, with buckets
// of any size, recorded or not, in one update or several runs.
func TestWire(t *testing.T) {
	var plain []string
	for _, parts := range []int{1, 2} {
		x := teamwork{batches: []int{8, 6, 7, 8, 1, 3}, options: []Option{ClipNorm(0.1), LossScale(Scaling{})}}
		var want []string
		for _, c := range []struct {
			ranks, bucket int
			record        bool
		}{{1, 0, false}, {2, 300, true}, {4, 1, true}, {4, 0, false}} {
			x.steps = func(w *dist.World) []StepOption {
				list := []StepOption{Across(w, Ranks{Leaves: 8, Bucket: c.bucket, Wire: millrace.BFloat16}), Accumulate(parts)}
				if c.record {
					list = append(list, Record())
				}
				return list
			}
			got, _ := x.run(t, c.ranks)
			if want == nil {
				want = got
			}
			same(t, fmt.Sprintf("%+v", c), got, want)
		}
		if parts > 1 {
			continue
		}
		x.steps = func(w *dist.World) []StepOption { return []StepOption{Across(w, Ranks{Leaves: 8})} }
		if plain, _ = x.run(t, 1); fmt.Sprint(plain) == fmt.Sprint(want) {
			t.Error("the bits are those of float32")
		}
	}
}

// TestWireBytes: gradients below float64 take two bytes for each element on their way.
func TestWireBytes(t *testing.T) {
	if err := local.Run(context.Background(), 1, dist.Options{}, func(context.Context, *dist.World) error { return nil }); err != nil {
		t.Fatal(err)
	}
	real := distapi.AllReduce // set since a World was opened
	defer func() { distapi.AllReduce = real }()
	for _, wire := range []millrace.DType{millrace.Invalid, millrace.BFloat16} {
		var mu sync.Mutex
		sent := map[millrace.DType]int{}
		distapi.AllReduce = func(w any, name string, lines []string, x any) any {
			mu.Lock()
			defer mu.Unlock()
			if w.(*dist.World).Rank() == 0 {
				sent[x.(*millrace.Tensor).DType()] += x.(*millrace.Tensor).Len()
			}
			return real(w, name, lines, x)
		}
		dev := open(t, "cpu:cache=off,compile=off")
		err := alike(t, dev, 2, func(w *dist.World, on *millrace.Stream) error {
			m := newNet(on, false)
			s := SGD(nn.Params(m)).Step(m.loss, Across(w, Ranks{Wire: wire}), On(on), Random(nn.NewRandom(1, nn.On(on))))
			_, err := s.Run(context.Background(), rows(on, 1, 4, 0, 4)...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		grads := 5*16 + 16 + 16 + 16*3 + 3 // in, low and out; the loss and the rows are two more
		want := fmt.Sprint(map[millrace.DType]int{millrace.Float64: 16, millrace.Float32: grads + 2})
		if wire == millrace.BFloat16 {
			want = fmt.Sprint(map[millrace.DType]int{millrace.Float64: 16, millrace.BFloat16: grads, millrace.Float32: 2})
		}
		if got := fmt.Sprint(sent); got != want {
			t.Errorf("%v: %s elements, want %s", wire, got, want)
		}
	}
}

// TestWireError: the gradient's error is below the documented bound.
func TestWireError(t *testing.T) {
	const n, rows = 500, 16
	r := rand.New(rand.NewPCG(5, 6))
	x := make([]float32, rows*n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	dev := open(t, "cpu:cache=off,compile=off")
	for _, c := range []struct{ ranks, leaves int }{{1, 1}, {1, 4}, {2, 2}, {2, 8}, {4, 16}} {
		err := alike(t, dev, c.ranks, func(w *dist.World, on *millrace.Stream) error {
			p := nn.NewParam(millrace.ZerosOn(on, millrace.Float32, n))
			s := SGD([]nn.Named{{Name: "w", Param: p}}, LR(1)).Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
				return p.In(c).Mul(in[0]).Sum(1).Mean()
			}, Across(w, Ranks{Leaves: c.leaves, Wire: millrace.BFloat16}), On(on))
			from, to := portion.Of(rows, c.ranks, w.Rank())
			if _, err := s.Run(context.Background(), millrace.FromSliceOn(on, x[from*n:to*n], to-from, n)); err != nil {
				return err
			}
			got, err := millrace.Values[float32](p.Tensor())
			if err != nil {
				return err
			}
			worst := 0.0
			for k, v := range got {
				sum, magnitude := 0.0, 0.0
				for l := range c.leaves {
					leaf := 0.0
					for i := l * rows / c.leaves; i < (l+1)*rows/c.leaves; i++ {
						leaf += float64(x[i*n+k])
					}
					sum, magnitude = sum+leaf, magnitude+math.Abs(leaf)
				}
				off := math.Abs(float64(v)+sum/rows) / (magnitude / rows)
				worst = max(worst, off)
			}
			roundings := 1 + math.Ceil(math.Log2(float64(c.leaves)))
			if most := math.Pow(1+1.0/256, roundings) - 1 + 1e-6; worst > most || worst < 1.0/1024 {
				t.Errorf("%+v: the error is %v of the mean of absolute values, the bound is %v", c, worst, most)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
