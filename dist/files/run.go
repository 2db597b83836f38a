package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/millrace-go/millrace/internal/tensorfile"
)

// Run calls f for the files of the job's part, and for those of other parts that are not done when it
// comes to them. f reads the file in and writes its output to w. The output appears when f returned
// nil.
//
// A file fails when f returns an error, panics or ends its goroutine each time it is tried; Run goes on
// with the others. It returns what it did, and an error that wraps a *[Failure] for each failed file.
// When ctx ends, Run begins no other file, waits for f, and returns the context's error. If an output
// cannot be written, as on a full disk, it does the same with that error: other files would fail as
// well. A Job that contradicts itself is [ErrJob].
//
// A process that is killed leaves a temporary file. Files that have such files come last. If more than
// Retries+Parts of them were there when Run began, the file is not tried and fails with
// [ErrCrashed]. Those of finished files are removed at the end, as far as the system allows it.
func Run(ctx context.Context, job Job, f func(ctx context.Context, in string, w io.Writer) error) (Sum, error) {
	p, err := job.plan()
	if err != nil {
		return Sum{}, err
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := &run{plan: p, f: f, ctx: ctx, stop: stop}
	var workers sync.WaitGroup
	for range p.Workers {
		workers.Go(r.work)
	}
	workers.Wait()
	slices.SortFunc(r.failed, func(a, b failed) int { return a.index - b.index })
	var errs []error
	for _, x := range r.failed {
		r.sum.Failed = append(r.sum.Failed, x.Failure)
		errs = append(errs, x.Failure)
	}
	if err := context.Cause(ctx); err != nil {
		return r.sum, errors.Join(append([]error{err}, errs...)...)
	}
	r.tidy()
	return r.sum, errors.Join(errs...)
}

// run is a Run under way.
type run struct {
	*plan
	f    func(ctx context.Context, in string, w io.Writer) error
	ctx  context.Context
	stop context.CancelCauseFunc

	mu     sync.Mutex
	next   int // place in the order
	sum    Sum
	failed []failed
}

type failed struct {
	index int
	*Failure
}

// work computes files until none is left.
func (r *run) work() {
	for {
		r.mu.Lock()
		if r.next == len(r.order) || r.ctx.Err() != nil {
			r.mu.Unlock()
			return
		}
		i := r.order[r.next]
		r.next++
		r.mu.Unlock()
		before, failure := r.file(i)
		if failure != nil && r.ctx.Err() != nil {
			return // the context's error says why
		}
		r.mu.Lock()
		switch {
		case failure != nil:
			r.failed = append(r.failed, failed{i, failure})
		case before:
			r.sum.Before++
		default:
			r.sum.Done++
		}
		r.mu.Unlock()
	}
}

// file computes one file, unless its output is there.
func (r *run) file(i int) (before bool, failure *Failure) {
	if _, err := os.Lstat(r.out[i]); err == nil {
		return true, nil
	}
	if r.begun[i] > r.Retries+r.Parts { // each part may be writing one
		return false, &Failure{r.In[i], 0, fmt.Errorf("%w: %d processes began it and did not end it; remove the temporary files of %s to try it again", ErrCrashed, r.begun[i], r.out[i])}
	}
	var err error
	tries := 0
	for tries <= r.Retries && r.ctx.Err() == nil {
		tries++
		if err = r.try(i); err == nil {
			return false, nil
		}
	}
	return false, &Failure{r.In[i], tries, err}
}

// try calls the function once. It stops the Run if the output cannot be written.
func (r *run) try(i int) error {
	file, err := tensorfile.Begin(r.out[i])
	if err != nil {
		r.stop(err)
		return err
	}
	w := &writer{w: file}
	err = r.call(r.In[i], w)
	if w.err != nil {
		err = w.err
		r.stop(err)
	}
	if err != nil {
		file.Discard()
		return err
	}
	if err = file.Commit(); errors.Is(err, fs.ErrNotExist) {
		if _, there := os.Lstat(r.out[i]); there == nil {
			return nil // another process did it, and removed our temporary file
		}
	}
	if err != nil {
		r.stop(err)
	}
	return err
}

// call calls the function in a goroutine of its own, so that one that ends its goroutine ends no worker.
func (r *run) call(in string, w io.Writer) error {
	done := make(chan error, 1)
	go func() {
		returned := false
		defer func() {
			if !returned {
				done <- fmt.Errorf("%w: it ended with %v\n\n%s", ErrPanic, recover(), debug.Stack())
			}
		}()
		err := r.f(r.ctx, in, w)
		returned = true
		done <- err
	}()
	return <-done
}

// writer notes the file's own error, which f may hide.
type writer struct {
	w   io.Writer
	err error
}

func (w *writer) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, err
}

// tidy removes the temporary files that killed processes left of finished files, as far as the system
// allows it. A process that still writes one finds the file done.
func (r *run) tidy() {
	index := make(map[string]bool, len(r.out))
	folders := map[string]bool{}
	for _, path := range r.out {
		index[path] = true
		folders[filepath.Dir(path)] = true
	}
	for dir := range folders {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			path := owner(dir, e)
			if !index[path] {
				continue
			}
			if _, err := os.Lstat(path); err == nil {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
		}
	}
}
