package acrosstest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
	"github.com/millrace-go/millrace/safetensors"
)

// Result is what a training leaves: a line for each loss and for each tensor of the state.
type Result struct {
	Lines []string
	File  []byte // of World.Save, on rank 0
}

// Without drops the lines of tensors whose names contain a text.
func (r Result) Without(text string) Result {
	kept := Result{File: r.File}
	for _, l := range r.Lines {
		if !strings.Contains(l, text) {
			kept.Lines = append(kept.Lines, l)
		}
	}
	return kept
}

// Differs returns an error that shows the first line in which two results differ.
func (r Result) Differs(want Result) error {
	for i := range max(len(r.Lines), len(want.Lines)) {
		a, b := "nothing more", "nothing more"
		if i < len(r.Lines) {
			a = r.Lines[i]
		}
		if i < len(want.Lines) {
			b = want.Lines[i]
		}
		if a != b {
			return fmt.Errorf("%s, want %s", a, b)
		}
	}
	return nil
}

// result reads losses and the state.
func (t *Training) result(losses []*millrace.Tensor) (Result, error) {
	list := t.named(t.Optimizer.State())
	return lines(losses, list, func(i int) *millrace.Tensor { return list[i].Tensor() })
}

// named lists parameters, state of the optimiser, and random numbers.
func (t *Training) named(state []nn.Named) []nn.Named {
	list := slices.Concat(t.Params, state)
	if t.Random != nil {
		list = append(list, t.Random.State()...)
	}
	return list
}

// lines reads losses, and the tensors of a list.
func lines(losses []*millrace.Tensor, list []nn.Named, tensor func(i int) *millrace.Tensor) (r Result, err error) {
	for i, l := range losses {
		v, err := millrace.Item[float64](l.Cast(millrace.Float64))
		if err != nil {
			return r, fmt.Errorf("loss %d: %w", i, err)
		}
		r.Lines = append(r.Lines, fmt.Sprintf("loss %d is %v", i, v))
	}
	for i, p := range list {
		h, t := xxhash.New(), tensor(i)
		if _, err := t.WriteTo(h); err != nil {
			return r, fmt.Errorf("%s: %w", p.Name, err)
		}
		text := ""
		if t.Len() <= 4 {
			text = fmt.Sprintf(" %v", t)
		}
		r.Lines = append(r.Lines, fmt.Sprintf("%s has hash %016x%s", p.Name, h.Sum64(), text))
	}
	return r, nil
}

// saved reads losses, and the state that all ranks write to a file. If that is divided, other ranks
// than 0 have it without the optimiser's.
func (t *Training) saved(ctx context.Context, w *dist.World, h How, losses []*millrace.Tensor) (Result, error) {
	dir, err := os.MkdirTemp("", "across")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(dir)
	parts := []any{t, t.Optimizer}
	if t.Random != nil {
		parts = append(parts, t.Random)
	}
	path := filepath.Join(dir, "all.safetensors")
	if err := w.Save(ctx, path, parts...); err != nil {
		return Result{}, err
	}
	switch {
	case w.Rank() > 0 && !h.Sharded:
		return t.result(losses)
	case w.Rank() > 0:
		list := t.named(nil)
		return lines(losses, list, func(i int) *millrace.Tensor { return list[i].Tensor() })
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return Result{}, err
	}
	in, err := safetensors.Load(path)
	if err != nil {
		return Result{}, err
	}
	list := t.named(t.Optimizer.State())
	r, err := lines(losses, list, func(i int) *millrace.Tensor { return in[list[i].Name] })
	r.File = file
	return r, err
}

// How says how ranks run a model: results do not depend on it.
type How struct {
	Record  bool
	Buckets int  // about how many the gradients are sent in; 0: as many as the default size gives
	Late    bool // losses are read after the last run
	Sharded bool // the state is divided among the ranks, if the model's rule can
	File    bool // the result has the file of the state
	Views   bool // inputs are views of larger tensors, made on another stream
	At      millrace.Place
}

// inputs makes the inputs of rows of a batch.
func (h How) inputs(b Batch, from, to int) []*millrace.Tensor {
	s, ok := h.At.(*millrace.Stream)
	if !h.Views || !ok {
		return b.Tensors(h.At, from, to)
	}
	other := s.Device().NewStream()
	all := b.Tensors(other, 0, b.Rows)
	for i, a := range b.In {
		if !a.Shared {
			view := all[i].Slice(millrace.R(from, to))
			all[i].Release()
			all[i] = view
		}
	}
	return all
}

func (h How) String() string {
	return fmt.Sprintf("recorded %v, %d buckets, late %v, views %v, sharded %v", h.Record, h.Buckets, h.Late, h.Views, h.Sharded)
}

// options are the options of the model's step.
func (m Model) options(t *Training, w *dist.World, h How) []optim.StepOption {
	size := 0
	for _, p := range t.Params {
		if !p.Buffer() {
			size += p.Tensor().Len() * max(4, p.Tensor().DType().Size())
		}
	}
	ranks := optim.Ranks{Leaves: m.Leaves, Wire: m.Wire, Sharded: h.Sharded && !m.Whole}
	if h.Buckets > 0 {
		ranks.Bucket = (size-1)/h.Buckets + 1
	}
	list := []optim.StepOption{optim.Across(w, ranks)}
	if t.Random != nil {
		list = append(list, optim.Random(t.Random))
	}
	if m.Parts > 1 {
		list = append(list, optim.Accumulate(m.Parts))
	}
	if m.Compute != millrace.Invalid {
		list = append(list, optim.Compute(m.Compute))
	}
	if h.Record {
		list = append(list, optim.Record())
	}
	return list
}

// Run trains the model on a rank.
func (m Model) Run(ctx context.Context, w *dist.World, h How) (Result, error) {
	t := m.New(h.At)
	s := t.Optimizer.Step(t.Loss, m.options(t, w, h)...)
	defer s.Close()
	losses, err := m.runs(ctx, w, h, t, s, 0, m.Steps)
	if err != nil {
		return Result{}, err
	}
	if h.File || h.Sharded {
		return t.saved(ctx, w, h, losses)
	}
	return t.result(losses)
}

// runs runs some of the model's steps.
func (m Model) runs(ctx context.Context, w *dist.World, h How, t *Training, s *optim.Step, from, to int) ([]*millrace.Tensor, error) {
	var losses []*millrace.Tensor
	for step := from; step < to; step++ {
		if m.Before != nil {
			m.Before(t, step)
		}
		b := m.Batch(step)
		at := m.bounds(step, b.Rows, w.Size())
		in := h.inputs(b, at[w.Rank()], at[w.Rank()+1])
		loss, err := s.Run(ctx, in...)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", step, err)
		}
		if !h.Late {
			if err := loss.Eval(); err != nil {
				return nil, fmt.Errorf("step %d: %w", step, err)
			}
		}
		for _, x := range in {
			x.Release()
		}
		losses = append(losses, loss)
	}
	return losses, nil
}
