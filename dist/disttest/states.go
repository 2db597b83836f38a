package disttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/nn"
)

func isMismatch(err error) bool { return errors.Is(err, dist.ErrMismatch) }

func any_(error) bool { return true }

// model is two parameters of known values.
func model(first float32) ([]nn.Named, func()) {
	on := place()
	a := nn.NewParam(millrace.FromSliceOn(on, []float32{first, 2, 3}))
	b := nn.NewBuffer(millrace.FromSliceOn(on, []int64{4}))
	return []nn.Named{{Name: "a", Param: a}, {Name: "b", Param: b}}, func() {
		a.Tensor().Release()
		b.Tensor().Release()
	}
}

// module makes a list of parameters a part of a file.
type module []nn.Named

func (m module) State() []nn.Named { return m }

// folder is a folder that rank 0 makes, by its path on all ranks.
func folder(w *dist.World) (string, error) {
	path := make([]byte, 256)
	if w.Rank() == 0 {
		dir, err := os.MkdirTemp("", "disttest-*")
		if err != nil {
			return "", err
		}
		copy(path, dir)
	}
	t := millrace.FromSliceOn(place(), path)
	defer t.Release()
	sent := w.Broadcast(t, 0)
	defer sent.Release()
	path, err := millrace.Values[uint8](sent)
	if err != nil {
		return "", err
	}
	return string(path[:max(slices.Index(path, 0), 0)]), nil
}

type progress struct{ Epoch, Record int }

func states() []Case {
	return []Case{{Name: "same", Ranks: Sizes, Run: func(ctx context.Context, w *dist.World) error {
		params, end := model(1)
		defer end()
		if err := w.Same(ctx, params...); err != nil {
			return err
		}
		if w.Size() == 1 {
			return nil
		}
		if w.Rank() == w.Size()-1 {
			next := millrace.FromSliceOn(place(), []float32{1, 2, 4})
			params[0].Tensor().Set(next)
			next.Release()
		}
		if err := want(w.Same(ctx, params...), isMismatch, "a has other bits", fmt.Sprintf("rank %d has", w.Size()-1)); err != nil {
			return err
		}
		return w.Barrier(ctx) // the World goes on
	}}, {Name: "save and load", Ranks: Sizes, Run: func(ctx context.Context, w *dist.World) error {
		dir, err := folder(w)
		if err != nil {
			return err
		}
		defer func() {
			if w.Rank() == 0 {
				os.RemoveAll(dir)
			}
		}()
		path := filepath.Join(dir, "ckpt.safetensors")
		params, end := model(7)
		defer end()
		was := progress{3, 140}
		if err := w.Save(ctx, path, module(params), dist.JSON("loader", was)); err != nil {
			return err
		}
		others, end := model(float32(w.Rank()))
		defer end()
		var got progress
		if err := w.Load(ctx, path, module(others), dist.JSON("loader", &got)); err != nil {
			return err
		}
		if got != was {
			return fmt.Errorf("loaded %v, saved %v", got, was)
		}
		if err := w.Same(ctx, append(slices.Clone(others), params...)...); err != nil {
			return err
		}
		if first, err := millrace.Values[float32](others[0].Tensor()); err != nil || first[0] != 7 {
			return fmt.Errorf("loaded %v, %v", first, err)
		}
		// Errors of rank 0's file are errors of all, and the World goes on.
		if err := want(w.Save(ctx, filepath.Join(dir, "none", "x"), module(params)), any_, "none"); err != nil {
			return err
		}
		if err := want(w.Load(ctx, filepath.Join(dir, "none"), module(params)), any_, "none"); err != nil {
			return err
		}
		if err := want(w.Load(ctx, path, module(params[:1]), dist.JSON("loader", &got)), any_, "b"); err != nil {
			return err
		}
		return w.Barrier(ctx)
	}}}
}
