package optim

import (
	"cmp"
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/distapi"
	"github.com/millrace-go/millrace/internal/hostapi"
)

// A bucket is some addends of one dtype in one tensor, which all ranks add up by one call. A call
// begins while later ops of the backward pass are still recorded and run.

const (
	usualBucket = 4 << 20
	firstBucket = 1 << 20 // the others wait for nothing then
)

// kindOfBucket says which addends are in one bucket.
type kindOfBucket struct {
	dt      millrace.DType
	divided bool // gradients, of whose sum each rank gets its part
}

type bucket struct {
	kindOfBucket
	parts []*millrace.Tensor // as vectors, or matrices with a row for each rank
	to    []place
	lines []string // name, dtype and shape of each
	bytes int
	sum   *millrace.Tensor
}

// place is where a sum is wanted, and its shape.
type place struct {
	t     **millrace.Tensor
	shape []int
}

// gradient sends the gradient of a parameter's last leaf, or nil, with those of the others.
func (j *joint) gradient(p *param, t *millrace.Tensor) {
	for k := len(j.whole) - 1; k >= 0; k-- {
		if grads := j.whole[k].grads; grads != nil {
			t = add(grads[p.index], t)
		}
	}
	j.gone[p.index] = t != nil
	divided := j.s.o.sums() != nil
	switch {
	case t == nil:
	case j.w.Size() == 1: // it is the sum; the loss and the rows are sent in any case, as each run is a call
		if divided {
			v := j.keep(t.Reshape(t.Len()))
			hostapi.Drop(t)
			t = v
		}
		j.total.grads[p.index] = t
	default:
		j.send(t, fmt.Sprintf("%s %v %v", p.Name, p.Tensor().DType(), t.Shape()), &j.total.grads[p.index], divided)
	}
}

// rest sends what is left when the last backward pass has ended; last is that leaf's.
func (j *joint) rest(last addends) {
	for _, p := range j.s.o.params {
		if !j.gone[p.index] {
			j.gradient(p, nil)
		}
	}
	for k := len(j.whole) - 1; k >= 0; k-- {
		last.loss, last.buffers = add(j.whole[k].loss, last.loss), addAll(j.whole[k].buffers, last.buffers)
	}
	j.send(last.loss, fmt.Sprintf("loss %v %v", j.loss, last.loss.Shape()), &j.total.loss, false)
	j.total.buffers = make([]*millrace.Tensor, len(last.buffers))
	for i, t := range last.buffers {
		if t != nil {
			j.send(t, fmt.Sprintf("%s %v %v", bufferName(i), j.floats[j.buffers[i]], t.Shape()), &j.total.buffers[i], false)
		}
	}
	j.send(j.keep(millrace.FullOn(j.now, millrace.Float32, float64(j.rows))), "rows", &j.all, false)
	for _, divided := range []bool{true, false} {
		for _, dt := range []millrace.DType{millrace.Float64, millrace.BFloat16, millrace.Float32} {
			j.flush(j.open[kindOfBucket{dt, divided}])
		}
	}
}

func bufferName(i int) string { return fmt.Sprintf("buffer %d", i) }

// send adds a tensor to a bucket and ends it.
func (j *joint) send(t *millrace.Tensor, line string, to **millrace.Tensor, divided bool) {
	kind := kindOfBucket{t.DType(), divided}
	if kind.dt == millrace.Invalid { // it carries an error
		if j.bad == nil {
			j.bad = t.Err()
		}
		return
	}
	b := j.open[kind]
	if b != nil && b.bytes >= j.limit() { // not before: an op still holds the last gradient, which a cut would store
		j.flush(b)
		b = nil
	}
	if b == nil {
		b = &bucket{kindOfBucket: kind}
		j.open[kind] = b
	}
	b.lines = append(b.lines, line)
	b.bytes += t.Len() * kind.dt.Size()
	shape := t.Shape()
	if divided {
		t = j.keep(j.s.o.shard.rows(t))
		shape = []int{t.Dim(1)}
	} else {
		v := j.keep(t.Reshape(t.Len()))
		hostapi.Drop(t)
		t = v
	}
	b.to = append(b.to, place{to, shape})
	b.parts = append(b.parts, t)
}

func (j *joint) limit() int {
	if j.opt.Bucket == 0 && len(j.sent) == 0 {
		return firstBucket
	}
	return cmp.Or(j.opt.Bucket, usualBucket)
}

// flush adds a bucket up over all ranks. After an error the run fails, of which the ranks that wait
// for this one hear; a bucket without what carries the error would be a mistake of order.
func (j *joint) flush(b *bucket) {
	if b == nil || j.bad != nil {
		return
	}
	delete(j.open, b.kindOfBucket)
	axis, call := 0, distapi.AllReduce
	if b.divided {
		axis, call = 1, distapi.ReduceScatter
	}
	t := millrace.Concat(axis, b.parts...)
	for _, p := range b.parts {
		hostapi.Drop(p)
	}
	lines := b.lines
	if len(j.sent) == 0 {
		lines = append(j.plan(), lines...)
	}
	b.sum = j.keep(call(j.w, fmt.Sprintf("step, bucket %d", len(j.sent)), lines, t).(*millrace.Tensor))
	hostapi.Drop(t)
	j.sent = append(j.sent, b)
}

// split takes the sums of a bucket apart.
func (b *bucket) split() {
	at := 0
	if b.divided {
		row := b.sum.Reshape(b.sum.Len())
		hostapi.Drop(b.sum)
		b.sum = row
	}
	for _, p := range b.to {
		n := 1
		for _, d := range p.shape {
			n *= d
		}
		*p.t = b.sum.Slice(millrace.R(at, at+n)).Reshape(p.shape...)
		at += n
	}
}
