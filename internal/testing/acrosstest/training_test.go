package acrosstest

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/local"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

// model returns a model of the table.
func model(t *testing.T, name string) Model {
	for _, m := range Models() {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("there is no model %q", name)
	return Model{}
}

// numbers are the losses of a training.
func numbers(losses []*millrace.Tensor) (list []float64, err error) {
	for _, l := range losses {
		v, err := millrace.Item[float64](l.Cast(millrace.Float64))
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// TestLoss: after 50 steps the loss of four ranks is that of one process, which takes the batch whole.
func TestLoss(t *testing.T) {
	gpt := model(t, "gpt")
	gpt.New = newGPT(0)
	for _, m := range []Model{model(t, "mlp"), gpt} {
		m.Steps = 50
		batch := m.Batch
		m.Batch = func(step int) Batch { return batch(step % 3) } // which can be learnt
		t.Run(m.Name, func(t *testing.T) {
			at := place(t, 1)
			x := m.New(at)
			s := x.Optimizer.Step(x.Loss, append(m.plain(x), optim.Record())...)
			defer s.Close()
			var losses []*millrace.Tensor
			for step := range m.Steps {
				b := m.Batch(step)
				loss, err := s.Run(context.Background(), b.Tensors(at, 0, b.Rows)...)
				if err != nil {
					t.Fatal(err)
				}
				losses = append(losses, loss)
			}
			want, err := numbers(losses)
			if err != nil {
				t.Fatal(err)
			}
			if first, last := want[0], want[m.Steps-1]; last > 0.9*first {
				t.Errorf("one process: the loss went from %v to %v", first, last)
			}
			err = local.Run(t.Context(), 4, options(), func(ctx context.Context, w *dist.World) error {
				p, err := Place(1)
				if err != nil {
					return err
				}
				how := How{Record: true, Late: true, Buckets: 3, At: p}
				x := m.New(p)
				s := x.Optimizer.Step(x.Loss, m.options(x, w, how)...)
				defer s.Close()
				losses, err := m.runs(ctx, w, how, x, s, 0, m.Steps)
				if err != nil {
					return err
				}
				got, err := numbers(losses)
				if err != nil {
					return err
				}
				for i := range got {
					if math.Abs(got[i]-want[i]) > 1e-5 {
						return fmt.Errorf("step %d: the loss is %v, of one process %v", i, got[i], want[i])
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// run is a training whose batches a loader gives.
type run struct {
	*Training
	loader *data.Loader
	step   *optim.Step
	losses []*millrace.Tensor
}

func newRun(w *dist.World, record bool) (*run, error) {
	at, err := Place(1)
	if err != nil {
		return nil, err
	}
	const records = 45
	src, err := data.FromColumns(data.ColumnOf(Numbers(1, 1, records*features), features), data.ColumnOf(Numbers(1, 2, records*classes), classes))
	if err != nil {
		return nil, err
	}
	r := &run{Training: perceptron(at, adam(optim.ClipNorm(0.5), optim.LossScale(optim.Scaling{Interval: 3})), nn.Tanh{}, nn.NewDropout(0.3))}
	r.loader, err = data.NewLoader(src, data.Options{Batch: 14, Shuffle: true, Seed: 5, Part: w.Rank(), Parts: w.Size(), On: at})
	if err != nil {
		return nil, err
	}
	r.step = r.Optimizer.Step(r.Loss, Model{Leaves: 4, Parts: 2}.options(r.Training, w, How{Record: record, Buckets: 2})...)
	return r, nil
}

// train runs n steps, each with the loader's next batch. Records of the last batch of an epoch are
// fewer than the ranks.
func (r *run) train(ctx context.Context, n int) error {
	for n > 0 {
		for b, err := range r.loader.Batches(ctx) {
			if err != nil {
				return err
			}
			loss, err := r.step.Run(ctx, b.X, b.Y)
			b.Release()
			if err != nil {
				return err
			}
			r.losses = append(r.losses, loss)
			if n--; n == 0 {
				break
			}
		}
	}
	return nil
}

func (r *run) parts(loader *data.State) []any {
	return []any{r, r.Optimizer, r.Random, dist.JSON("loader", loader)}
}

// TestResume: a training that is saved by two ranks goes on with one, two or four, to the bits of a
// training that was not interrupted.
func TestResume(t *testing.T) {
	const steps = 11
	for _, at := range []int{4, 5} { // between updates, and within the two runs of one
		path := filepath.Join(t.TempDir(), "ckpt.safetensors")
		ends := sync.Map{} // ranks: the Result
		train := func(ranks int, record bool, save, load bool) {
			t.Helper()
			err := local.Run(t.Context(), ranks, options(), func(ctx context.Context, w *dist.World) error {
				r, err := newRun(w, record)
				if err != nil {
					return err
				}
				defer r.step.Close()
				var state data.State
				switch {
				case load: // after steps whose values the file replaces
					if err = r.train(ctx, 3); err == nil {
						err = w.Load(ctx, path, r.parts(&state)...)
					}
					if err == nil {
						err = r.loader.Restore(state)
					}
				default:
					err = r.train(ctx, at)
				}
				if err != nil {
					return err
				}
				if save {
					state = r.loader.State()
					return w.Save(ctx, path, r.parts(&state)...)
				}
				r.losses = nil
				if err := r.train(ctx, steps-at); err != nil {
					return err
				}
				end, err := r.result(r.losses)
				if w.Rank() == 0 {
					ends.Store(ranks, end)
				}
				return err
			})
			if err != nil {
				t.Fatalf("%d ranks, %d steps before: %v", ranks, at, err)
			}
		}
		train(2, true, false, false)
		want, _ := ends.Load(2)
		train(2, true, true, false)
		for _, ranks := range []int{1, 2, 4} {
			train(ranks, ranks < 4, false, true)
			got, _ := ends.Load(ranks)
			if err := got.(Result).Differs(want.(Result)); err != nil {
				t.Errorf("%d ranks, %d steps before: %v", ranks, at, err)
			}
		}
	}
}
