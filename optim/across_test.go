package optim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/local"
	"github.com/millrace-go/millrace/internal/portion"
	"github.com/millrace-go/millrace/nn"
)

// net is a network with what steps of several ranks treat specially: running means, dropout, weights
// of other dtypes, and one that the loss does not use.
type net struct {
	In   *nn.Linear
	Norm *nn.BatchNorm // nil: none
	Drop *nn.Dropout
	Low  *nn.Param
	High *nn.Param
	Idle *nn.Param
	Out  *nn.Linear
}

func newNet(at millrace.Place, norm bool) *net {
	m := &net{In: nn.NewLinear(5, 16, nn.On(at), nn.Seed(1)), Drop: nn.NewDropout(0.2), Out: nn.NewLinear(16, 3, nn.On(at), nn.Seed(2))}
	m.Low = nn.NewParam(millrace.NormalOn(at, millrace.BFloat16, 3, 16))
	m.High = nn.NewParam(millrace.NormalOn(at, millrace.Float64, 4, 16))
	m.Idle = nn.NewParam(millrace.NormalOn(at, millrace.Float32, 5, 16))
	if norm {
		m.Norm = nn.NewBatchNorm1d(16, nn.On(at))
	}
	return m
}

func (m *net) loss(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
	x := m.In.Forward(c, in[0])
	if m.Norm != nil {
		x = m.Norm.Forward(c, x)
	}
	x = m.Drop.Forward(c, x.Tanh()).Mul(m.Low.In(c).Cast(millrace.Float32))
	x = x.Cast(millrace.Float64).Mul(m.High.In(c)).Cast(millrace.Float32)
	return m.Out.Forward(c, x).Sub(in[1]).Square().Mean()
}

// rows makes the inputs of a step: rows from and to of n.
func rows(at millrace.Place, step, n, from, to int) []*millrace.Tensor {
	x := millrace.NormalOn(at, millrace.Float32, uint64(1000+step), n, 5).Slice(millrace.R(from, to))
	y := millrace.NormalOn(at, millrace.Float32, uint64(2000+step), n, 3).Slice(millrace.R(from, to))
	return []*millrace.Tensor{x, y}
}

// alike runs f on ranks that are goroutines, each with a stream of its own: of dev, or of a device of
// its own if dev is nil. Ranks that bind need devices of their own, because Bind is an error while
// another goroutine sets a tensor of the device.
func alike(t *testing.T, dev *millrace.Device, ranks int, f func(w *dist.World, on *millrace.Stream) error) error {
	t.Helper()
	o := dist.Options{Log: func(string) {}}
	return local.Run(context.Background(), ranks, o, func(_ context.Context, w *dist.World) error {
		dev := dev
		if dev == nil {
			var err error
			if dev, err = millrace.Open("cpu:cache=off,compile=off"); err != nil {
				return err
			}
			t.Cleanup(func() { dev.Close() })
		}
		return f(w, dev.NewStream())
	})
}

// teamwork is joint training: batches are the sizes of the whole batches.
type teamwork struct {
	norm    bool
	bound   bool // batches have one size
	batches []int
	options []Option
	steps   func(w *dist.World) []StepOption
}

// run trains on some ranks, and returns the bits of everything on rank 0: they are compared with
// those of the others.
func (x teamwork) run(t *testing.T, ranks int) (digest []string, recordings int64) {
	t.Helper()
	dev := open(t, "cpu:cache=off,compile=off")
	all := make([][]string, ranks)
	shared := dev
	if x.bound {
		shared = nil
	}
	err := alike(t, shared, ranks, func(w *dist.World, on *millrace.Stream) error {
		m, random := newNet(on, x.norm), nn.NewRandom(7, nn.On(on))
		o := AdamW(nn.Params(m), append([]Option{LR(0.01)}, x.options...)...)
		s := o.Step(m.loss, append(x.steps(w), On(on), Random(random))...)
		defer s.Close()
		var list []string
		run := func(in []*millrace.Tensor) (*millrace.Tensor, error) { return s.Run(context.Background(), in...) }
		if x.bound {
			from, to := portion.Of(x.batches[0], ranks, w.Rank())
			b, err := s.Bind(rows(on, 0, x.batches[0], from, to)...)
			if err != nil {
				return err
			}
			defer b.Close()
			run = func(in []*millrace.Tensor) (*millrace.Tensor, error) {
				for i, t := range in {
					v, err := millrace.Values[float32](t)
					if err == nil {
						err = SetInput(b, i, v...)
					}
					if err != nil {
						return nil, err
					}
				}
				return b.Loss(), b.Run()
			}
		}
		for i, n := range x.batches {
			from, to := portion.Of(n, ranks, w.Rank())
			loss, err := run(rows(on, i, n, from, to))
			if err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
			v, err := millrace.Item[float32](loss)
			if err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
			list = append(list, fmt.Sprintf("loss %d: %v", i, v))
		}
		for _, p := range slices.Concat(nn.Params(m), o.State(), random.State()) {
			list = append(list, fmt.Sprintf("%s %v", p.Name, raw(t, p.Tensor())))
		}
		all[w.Rank()] = list
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for r := range all {
		same(t, fmt.Sprintf("rank %d", r), all[r], all[0])
	}
	return all[0], dev.Stats().Recordings
}

// TestAcrossBound: bound steps of 1 and 2 ranks have the bits of those that are not bound.
func TestAcrossBound(t *testing.T) {
	for name, x := range map[string]teamwork{"plain": {}, "normed": {norm: true}} {
		x.batches = slices.Repeat([]int{8}, 14)
		x.steps = func(w *dist.World) []StepOption { return []StepOption{Across(w, Ranks{Leaves: 2, SameEvery: 5})} }
		want, _ := x.run(t, 1)
		x.bound = true
		for _, ranks := range []int{1, 2} {
			got, _ := x.run(t, ranks)
			same(t, fmt.Sprintf("%s, %d ranks, bound", name, ranks), got, want)
		}
	}
}

// TestAcross: teamwork has the same bits on 1, 2 and 4 ranks, with buckets of any size, recorded or
// not.
func TestAcross(t *testing.T) {
	small := []int{8, 6, 7, 8, 7, 3, 2, 1, 2, 1, 3} // the last ones have leaves and ranks without rows
	for name, x := range map[string]teamwork{
		"plain":      {batches: small},
		"clipped":    {batches: small, options: []Option{ClipNorm(0.1), ClipValue(0.05)}},
		"normalised": {batches: []int{16, 13, 12, 16, 12, 13}, norm: true, options: []Option{LossScale(Scaling{Initial: 0x1p127})}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, more := range [][]StepOption{nil, {Record()}} {
				for _, c := range []struct{ ranks, bucket int }{{1, 0}, {2, 300}, {4, 1}} {
					x.steps = func(w *dist.World) []StepOption {
						return append([]StepOption{Across(w, Ranks{Leaves: 4, Bucket: c.bucket, SameEvery: 3})}, more...)
					}
					got, _ := x.run(t, c.ranks)
					if want == nil {
						want = got
					}
					same(t, fmt.Sprintf("%d ranks, buckets of %d, recorded %v", c.ranks, c.bucket, more != nil), got, want)
				}
			}
		})
	}
}

// TestAcrossReplays: each number of rows is recorded once, also on a rank without any.
func TestAcrossReplays(t *testing.T) {
	x := teamwork{batches: []int{8, 1, 8, 1, 8, 1}, steps: func(w *dist.World) []StepOption {
		return []StepOption{Across(w, Ranks{}), Record()}
	}}
	_, few := x.run(t, 2)
	x.batches = append(x.batches, x.batches...)
	if _, more := x.run(t, 2); more != few || few == 0 {
		t.Errorf("%d recordings for 6 steps, %d for 12", few, more)
	}
}

// TestAcrossAccumulates: runs of several ranks make one update.
func TestAcrossAccumulates(t *testing.T) {
	for _, more := range [][]StepOption{nil, {Record()}} {
		var want []string
		for _, ranks := range []int{1, 2} {
			x := teamwork{batches: []int{8, 6, 7, 8, 1, 8}, options: []Option{LossScale(Scaling{}), ClipNorm(0.1)}}
			x.steps = func(w *dist.World) []StepOption {
				return append([]StepOption{Across(w, Ranks{Leaves: 2}), Accumulate(3)}, more...)
			}
			got, _ := x.run(t, ranks)
			if want == nil {
				want = got
			}
			same(t, fmt.Sprintf("%d ranks, recorded %v", ranks, more != nil), got, want)
		}
	}
}

// TestAcrossWhole: with one leaf the bits are those of a step of one rank, as 8 rows are an exact
// factor; with more leaves the numbers are close.
func TestAcrossWhole(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off")
	run := func(part, parts int, on *millrace.Stream, drop bool, opts ...StepOption) (list []float32, bits []string) {
		m := newModel(dev, millrace.Float32)
		m.drop = drop
		o := SGD(m.params(), LR(0.5))
		s := o.Step(m.loss, append(opts, On(on), Random(nn.NewRandom(1, nn.On(on))))...)
		defer s.Close()
		for i := range 6 {
			in := batch(dev, i, 8)
			for k := range in {
				from, to := portion.Of(8, parts, part)
				in[k] = in[k].Slice(millrace.R(from, to))
			}
			loss, err := s.Run(context.Background(), in...)
			if err != nil {
				t.Error(err)
				return nil, nil
			}
			v, err := millrace.Item[float32](loss)
			if err != nil {
				t.Error(err)
			}
			list = append(list, v)
		}
		return list, all(t, o, m.params())
	}
	_, want := run(0, 1, dev.NewStream(), true)
	losses, _ := run(0, 1, dev.NewStream(), false)
	for _, c := range []struct{ ranks, leaves int }{{1, 1}, {1, 2}, {2, 2}, {2, 6}} {
		err := alike(t, dev, c.ranks, func(w *dist.World, on *millrace.Stream) error {
			got, bits := run(w.Rank(), c.ranks, on, c.leaves == 1, Across(w, Ranks{Leaves: c.leaves}))
			if c.leaves == 1 {
				same(t, "one leaf", bits, want)
				return nil
			}
			for i, v := range got {
				if d := v - losses[i]; d > 1e-5 || d < -1e-5 {
					t.Errorf("%+v, step %d: loss %v, want %v", c, i, v, losses[i])
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestAcrossDraws: each leaf draws other random numbers, leaf 0 those of a step of one rank.
func TestAcrossDraws(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off")
	draw := func(on *millrace.Stream, opts ...StepOption) float64 {
		w := nn.NewParam(millrace.FullOn(on, millrace.Float64, 0, 1))
		o := SGD([]nn.Named{{Name: "w", Param: w}})
		s := o.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
			return w.In(c).Add(c.Uniform(1).Cast(millrace.Float64)).Sum()
		}, append(opts, On(on), Random(nn.NewRandom(9, nn.On(on))))...)
		loss, err := s.Run(context.Background(), millrace.ZerosOn(on, millrace.Float32, 4))
		if err != nil {
			t.Fatal(err)
		}
		v, err := millrace.Item[float64](loss)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	var means []float64
	alone := draw(dev.NewStream())
	err := alike(t, dev, 1, func(w *dist.World, on *millrace.Stream) error {
		for _, leaves := range []int{1, 2, 4} {
			means = append(means, draw(on, Across(w, Ranks{Leaves: leaves})))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	second := 2*means[1] - alone
	fourth := 4*means[2] - 2*means[1] // of leaves 2 and 3
	if means[0] != alone || second == alone || second < 0 || second >= 1 || fourth == 2*alone || fourth == 2*second || fourth < 0 || fourth >= 2 {
		t.Errorf("alone %v, means of 1, 2 and 4 leaves %v", alone, means)
	}
}

// TestAcrossFaults: a fault of one rank is an error of all, at once, and says what is wrong.
func TestAcrossFaults(t *testing.T) {
	ended, end := context.WithCancel(context.Background())
	end()
	for name, c := range map[string]struct {
		rank1 func(w *dist.World, on *millrace.Stream, m *net, x *fault)
		want  string // on all ranks
	}{
		"input": {func(_ *dist.World, on *millrace.Stream, _ *net, x *fault) {
			x.in[0] = x.in[0].Slice(millrace.R(0, 4), millrace.R(0, 3))
		}, "rank 1"},
		"failed input": {func(_ *dist.World, on *millrace.Stream, _ *net, x *fault) {
			x.in[0] = x.in[0].Add(millrace.ZerosOn(on, millrace.Float32, 7))
		}, "rank 1"},
		"context": {func(_ *dist.World, _ *millrace.Stream, _ *net, x *fault) { x.ctx = ended }, "rank 1"},
		"closed":  {func(_ *dist.World, _ *millrace.Stream, _ *net, x *fault) { x.close = true }, "the Step was closed"},
		"not finite": {func(_ *dist.World, on *millrace.Stream, _ *net, x *fault) {
			x.in[0] = x.in[0].DivScalar(0)
		}, "rank 1"},
		"leaves": {func(w *dist.World, _ *millrace.Stream, _ *net, x *fault) {
			x.options = append(x.options, Across(w, Ranks{Leaves: 6}))
		}, "ranks 0, 2 have 3 leaves; rank 1 has 6 leaves"},
		"unused": {func(_ *dist.World, on *millrace.Stream, m *net, x *fault) {
			x.loss = func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
				x := m.In.Forward(c, in[0]).Cast(millrace.Float64).Mul(m.High.In(c)).Cast(millrace.Float32)
				return m.Out.Forward(c, x).Sub(in[1]).Square().Mean()
			}
		}, "ranks 0, 2 have low bfloat16 [16]; rank 1 has in.bias float32 [16]"},
		"other values": {func(_ *dist.World, on *millrace.Stream, m *net, _ *fault) {
			m.Low.Tensor().Set(m.Low.Tensor().MulScalar(2))
		}, "low has other bits"},
		"a call too many": {func(w *dist.World, on *millrace.Stream, _ *net, _ *fault) {
			w.AllReduce(millrace.ZerosOn(on, millrace.Float32, 3))
		}, "allreduce"},
		"other losses": {func(_ *dist.World, on *millrace.Stream, m *net, x *fault) {
			x.loss = func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor { return m.loss(c, in).Cast(millrace.Float64) }
		}, "float64"},
	} {
		for _, more := range [][]StepOption{nil, {Record()}} {
			if name == "not finite" {
				more = []StepOption{CheckFinite()}
			}
			dev := open(t, "cpu:cache=off,compile=off")
			err := alike(t, dev, 3, func(w *dist.World, on *millrace.Stream) error {
				m := newNet(on, false)
				x := &fault{ctx: context.Background(), loss: m.loss, in: rows(on, 1, 12, 4*w.Rank(), 4*w.Rank()+4)}
				x.options = append(slices.Clone(more), On(on), Random(nn.NewRandom(1, nn.On(on))), Across(w, Ranks{}))
				if w.Rank() == 1 {
					c.rank1(w, on, m, x)
				}
				s := SGD(nn.Params(m)).Step(x.loss, x.options...)
				if x.close {
					s.Close()
				}
				for range 3 {
					loss, err := s.Run(x.ctx, x.in...)
					if err == nil {
						err = loss.Eval()
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
			text := fmt.Sprint(err)
			for r := range 3 {
				if !strings.Contains(text, fmt.Sprintf("rank %d: ", r)) {
					t.Errorf("%s: rank %d has no error: %v", name, r, err)
				}
			}
			if strings.Count(text, c.want) < 2 {
				t.Errorf("%s, recorded %v: %v; want %q", name, more != nil, err, c.want)
			}
		}
	}
}

// TestAcrossOrder: two steps of an optimiser that a rank runs in another order are an error of all.
func TestAcrossOrder(t *testing.T) {
	for _, more := range [][]StepOption{nil, {Record()}} {
		dev := open(t, "cpu:cache=off,compile=off")
		err := alike(t, dev, 2, func(w *dist.World, on *millrace.Stream) error {
			m := newNet(on, false)
			o := SGD(nn.Params(m))
			opts := append(slices.Clone(more), On(on), Random(nn.NewRandom(1, nn.On(on))), Across(w, Ranks{}))
			steps := []*Step{o.Step(m.loss, opts...), o.Step(m.loss, opts...)}
			loss, err := steps[w.Rank()].Run(context.Background(), rows(on, 1, 8, 4*w.Rank(), 4*w.Rank()+4)...)
			if err == nil {
				err = loss.Eval()
			}
			if !errors.Is(err, dist.ErrMismatch) || !strings.Contains(fmt.Sprint(err), "rank 0 has step 1 of the optimiser; rank 1 has step 2 of the optimiser") {
				t.Errorf("rank %d, recorded %v: %v", w.Rank(), more != nil, err)
			}
			return nil
		})
		if err != nil && !errors.Is(err, dist.ErrMismatch) {
			t.Error(err)
		}
	}
}

// TestAcrossBuffers: a buffer that differs at first is found by the first comparison, before a mean of
// it hides that.
func TestAcrossBuffers(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off")
	err := alike(t, dev, 2, func(w *dist.World, on *millrace.Stream) error {
		m := newNet(on, true)
		mean := m.Norm.RunningMean.Tensor()
		mean.Set(millrace.FullOn(on, mean.DType(), float64(w.Rank()), mean.Shape()...))
		s := SGD(nn.Params(m)).Step(m.loss, On(on), Random(nn.NewRandom(1, nn.On(on))), Across(w, Ranks{}))
		_, err := s.Run(context.Background(), rows(on, 1, 8, 4*w.Rank(), 4*w.Rank()+4)...)
		if !errors.Is(err, dist.ErrMismatch) || !strings.Contains(fmt.Sprint(err), "norm.running_mean has other bits") {
			t.Errorf("rank %d: %v", w.Rank(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAcrossNoRows: a batch without rows changes neither parameters nor running means.
func TestAcrossNoRows(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		for _, more := range [][]StepOption{nil, {Record()}} {
			dev := open(t, "cpu:cache=off,compile=off")
			err := alike(t, dev, ranks, func(w *dist.World, on *millrace.Stream) error {
				m := newNet(on, true)
				s := SGD(nn.Params(m)).Step(m.loss, append(slices.Clone(more), On(on), Random(nn.NewRandom(1, nn.On(on))), Across(w, Ranks{}))...)
				bits := func() (list []string) {
					for _, p := range nn.Params(m) {
						if p.Tensor().DType().IsFloat() {
							list = append(list, fmt.Sprintf("%s %v", p.Name, raw(t, p.Tensor())))
						}
					}
					return list
				}
				want := bits()
				loss, err := s.Run(context.Background(), rows(on, 1, 8, 0, 0)...)
				if err != nil {
					return err
				}
				v, err := millrace.Item[float32](loss)
				if err == nil && v == v {
					err = fmt.Errorf("the loss is %v, want NaN", v)
				}
				same(t, fmt.Sprintf("%d ranks, recorded %v", ranks, more != nil), bits(), want)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// TestAcrossFinite: CheckFinite ignores the pass of a rank without rows, whose numbers are not used.
func TestAcrossFinite(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off")
	err := alike(t, dev, 2, func(w *dist.World, on *millrace.Stream) error {
		p := nn.NewParam(millrace.OnesOn(on, millrace.Float32, 3))
		s := SGD([]nn.Named{{Name: "w", Param: p}}).Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
			return in[0].Mul(p.In(c)).Log().Mean() // of zeros it is not finite
		}, On(on), CheckFinite(), Across(w, Ranks{}))
		loss, err := s.Run(context.Background(), millrace.OnesOn(on, millrace.Float32, 4*(1-w.Rank()), 3))
		if err == nil {
			err = loss.Eval()
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// fault has what one rank may do otherwise.
type fault struct {
	ctx     context.Context
	in      []*millrace.Tensor
	loss    func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor
	options []StepOption
	close   bool
}

// TestAcrossOptions: bad options are errors, and so are inputs without rows.
func TestAcrossOptions(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off")
	bad := errors.New("not an error")
	err := alike(t, dev, 2, func(w *dist.World, on *millrace.Stream) error {
		m := newNet(on, false)
		o := SGD(nn.Params(m))
		_ = w.Barrier(context.Background()) // an error below ends the World, which the other rank may still open
		for _, across := range []StepOption{Across(nil, Ranks{}), Across(new(dist.World), Ranks{}), Across(w, Ranks{Leaves: 3}),
			Across(w, Ranks{Leaves: -2}), Across(w, Ranks{Leaves: 1 << 17}), Across(w, Ranks{Bucket: -1})} {
			if _, err := o.Step(m.loss, across).Run(context.Background()); err == nil || !strings.Contains(err.Error(), "Across") {
				t.Errorf("the error is %v", err)
			}
		}
		s := o.Step(m.loss, Across(w, Ranks{}), On(on), Random(nn.NewRandom(1, nn.On(on))))
		if w.Rank() == 0 {
			return bad
		}
		_, err := s.Run(context.Background())
		if re := new(dist.RankError); !errors.As(err, &re) && !errors.Is(err, millrace.ErrShape) {
			t.Errorf("without inputs: %v", err)
		}
		return nil
	})
	if !errors.Is(err, bad) {
		t.Errorf("the error is %v", err)
	}
}
