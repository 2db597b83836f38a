package main

import (
	"context"

	"github.com/millrace-go/millrace"
	batches "github.com/millrace-go/millrace/serve"
)

// answers are the ways in which a service computes a request on a stream and reads the result,
// unless ctx ends before; ctx may be nil.
var answers = map[string]func(v *service, ctx context.Context, s *millrace.Stream, p *problem, out []float32) error{
	"batch":    (*service).eager,
	"recorded": (*service).record,
	"together": (*service).joined,
}

// prepare makes what its way of answering needs.
func (v *service) prepare() (err error) {
	forward := func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return []*millrace.Tensor{v.asks[0].program(append(in[:1:1], v.weights...))}, nil
	}
	switch v.way {
	case "recorded":
		v.recording = millrace.NewRecording(forward)
	case "together":
		v.together, err = batches.New[float32, float32](forward, batches.Options{Device: v.bench.dev}, v.asks[0].inputs[0].shape[1:])
	}
	return err
}

func (v *service) close() {
	if v.recording != nil {
		v.recording.Release()
	}
	if v.together != nil {
		_ = v.together.Close() // its errors were those of requests
	}
}

// eager enqueues the request's ops on the stream.
func (v *service) eager(ctx context.Context, s *millrace.Stream, p *problem, out []float32) error {
	return s.Scope(func(sc *millrace.Scope) error {
		x := p.inputs[0]
		in := append(make([]*millrace.Tensor, 0, 8), millrace.FromSliceOn(sc, x.f32, x.shape...))
		y := p.program(append(in, v.weights...))
		if ctx != nil {
			if err := y.EvalContext(ctx); err != nil {
				return err
			}
		}
		return millrace.ReadInto(out, y)
	})
}

// record runs one recording for all goroutines, on the stream.
func (v *service) record(ctx context.Context, s *millrace.Stream, p *problem, out []float32) error {
	if ctx == nil {
		ctx = context.Background()
	}
	x := p.inputs[0]
	in := millrace.FromSliceOn(s, x.f32, x.shape...)
	defer in.Release()
	y, err := v.recording.RunWith(ctx, millrace.RunOptions{On: s}, in)
	if err != nil {
		return err
	}
	defer y[0].Release()
	return millrace.ReadInto(out, y[0])
}

// joined sends the request to a Batcher, which computes those that wait together.
func (v *service) joined(ctx context.Context, _ *millrace.Stream, p *problem, out []float32) error {
	if ctx == nil {
		ctx = context.Background()
	}
	y, err := v.together.Run(ctx, p.inputs[0].f32)
	if err != nil {
		return err
	}
	copy(out, y[0])
	return nil
}
