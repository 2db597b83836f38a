package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/dist"
	_ "github.com/millrace-go/millrace/dist/mpi" // the driver; it loads the library of the launcher, if there is one
	"github.com/millrace-go/millrace/examples/models"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

// training is one rank's part of a training.
type training struct {
	o      options
	w      *dist.World
	t      *task
	loader *data.Loader
	opt    *optim.Optimizer
	random *nn.Random
}

// train runs on all ranks. Rank 0 says how far they are.
func train(ctx context.Context, o options, t *task) (err error) {
	w, err := dist.Open(ctx, dist.Options{Deadline: o.deadline})
	if err != nil {
		return err
	}
	defer func() {
		w.Fail(err) // the other ranks hear of it
		if closed := w.Close(); err == nil {
			err = closed
		}
	}()
	loader, err := data.NewLoader(t.source, data.Options{
		Batch: o.Batch, Shuffle: true, Seed: o.Seed, DropLast: t.drop, Part: w.Rank(), Parts: w.Size(),
	})
	if err != nil {
		return err
	}
	x := &training{o, w, t, loader, optim.AdamW(nn.Params(t.model), t.opts...), nn.NewRandom(o.Seed)}
	done, err := x.resume(ctx)
	if err != nil {
		return err
	}
	if done, err = x.run(ctx, done); err != nil || done < o.Steps || !o.digest {
		return err
	}
	sum, err := x.digest()
	if err != nil {
		return err
	}
	x.say("digest %s", sum)
	return nil
}

// run makes the steps that are left after some were done, and returns how many are done then.
func (x *training) run(ctx context.Context, done int) (int, error) {
	step := x.opt.Step(x.t.loss, optim.Record(), optim.Random(x.random), optim.Across(x.w, optim.Ranks{Leaves: x.o.Leaves, Bucket: x.o.bucket}))
	defer step.Close()
	began, first := time.Now(), done
	progress := models.Progress()
	defer progress.End()
	for b, err := range models.Steps(ctx, x.loader, x.o.Steps-done) {
		if err != nil {
			return done, err
		}
		loss, err := step.Run(ctx, b.X, b.Y)
		if err != nil {
			return done, err
		}
		if done++; x.w.Rank() == 0 && (done%10 == 0 || done == x.o.Steps) {
			v, err := millrace.Item[float32](loss)
			if err != nil {
				return done, err
			}
			progress.Say("step %d of %d  loss %.4f  %.2f ms a step  ranks: %d", done, x.o.Steps, v,
				time.Since(began).Seconds()*1e3/float64(done-first), x.w.Size())
		}
		loss.Release()
		b.Release()
		stop := x.w.Stopping() // the same on all ranks
		if stop || done%x.o.every == 0 || done == x.o.Steps {
			if err := x.save(ctx); err != nil {
				return done, err
			}
		}
		if stop && done < x.o.Steps {
			progress.End()
			x.say("stopped by SIGTERM after step %d", done)
			break
		}
	}
	return done, nil
}

// parts are those of a checkpoint. For loading, the last two are pointers.
func (x *training) parts(state, made any) []any {
	return []any{x.t.model, x.opt, x.random, dist.JSON("loader", state), dist.JSON("settings", made)}
}

// save writes a checkpoint.
func (x *training) save(ctx context.Context) error {
	if x.o.save == "" {
		return nil
	}
	return x.w.Save(ctx, x.o.save, x.parts(x.loader.State(), x.o.settings)...)
}

// resume loads the checkpoint, if rank 0 has one, and returns the number of steps that were done.
func (x *training) resume(ctx context.Context) (done int, err error) {
	if x.o.save == "" {
		return 0, nil
	}
	there := int32(0)
	if x.w.Rank() == 0 {
		if err := os.MkdirAll(filepath.Dir(x.o.save), 0o777); err != nil {
			return 0, err
		}
		if _, err := os.Stat(x.o.save); !errors.Is(err, fs.ErrNotExist) {
			there = 1 // Load returns other errors
		}
	}
	if there, err = millrace.Item[int32](x.w.Broadcast(millrace.FromSlice([]int32{there}), 0)); err != nil || there == 0 {
		return 0, err
	}
	var state data.State
	var made settings
	if err := x.w.Load(ctx, x.o.save, x.parts(&state, &made)...); err != nil {
		return 0, err
	}
	if made.Data = x.o.Data; made != x.o.settings {
		return 0, fmt.Errorf("%s was made with other flags: %+v, now %+v", x.o.save, made, x.o.settings)
	}
	if err := x.loader.Restore(state); err != nil {
		return 0, err
	}
	if done, err = x.opt.Updates(); err != nil {
		return 0, err
	}
	x.say("%s: going on after step %d", x.o.save, done)
	return done, nil
}

// digest is a hash of all bits of the model and of the optimiser's state.
func (x *training) digest() (string, error) {
	params, err := nn.Parts(x.t.model, x.opt, x.random)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, p := range params {
		fmt.Fprintln(h, p.Name, p.Tensor().DType(), p.Tensor().Shape())
		if _, err := p.Tensor().WriteTo(h); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}

// say prints a line on rank 0.
func (x *training) say(format string, args ...any) {
	if x.w.Rank() == 0 {
		fmt.Printf(format+"\n", args...)
	}
}
