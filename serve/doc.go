// Package serve answers the requests of many goroutines with runs of a [millrace.Recording] on
// batches: the requests that wait while a batch is computed are the next batch.
//
//	b, err := serve.New[float32, float32](func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
//		return []*millrace.Tensor{model.Forward(nn.Eval(), in[0]).Softmax(1)}, nil
//	}, serve.Options{}, []int{784})
//	out, err := b.Run(ctx, pixels) // in many goroutines, such as handlers of net/http
//	probabilities := out[0]
//
// A request that comes while nothing is computed does not wait for others, so a single client
// has nothing to lose but the hand-over to another goroutine, some microseconds. A batch costs a
// run once, and reads the weights once, whatever its rows: see docs/benchmarks/serving.md for
// the gain. On the device cpu a request's answer has the bits that it has alone, if f's ops
// treat rows alike, as those of package nn do in [nn.Eval].
//
// Of the source, read batcher.go first.
package serve
