package disttest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/ir"
)

// dtypes are all dtypes of tensors.
func dtypes() (all []millrace.DType) {
	for dt := range ir.NumDTypes {
		if dt.Tensor() {
			all = append(all, dt)
		}
	}
	return all
}

// part is the bytes of a rank's tensor: every rank can make those of all.
func part(rank int, dt millrace.DType, count int) []byte {
	r := rand.New(rand.NewPCG(uint64(rank), uint64(dt)<<32|uint64(count)))
	b := make([]byte, count*dt.Size())
	for i := range count {
		bits := r.Uint64()
		switch {
		case dt == millrace.Bool:
			bits &= 1
		case dt.IsFloat():
			bits = ir.FloatBits(dt, r.NormFloat64()*math.Exp2(float64(r.IntN(9))))
		}
		ir.StoreBits(dt, b[i*dt.Size():], bits)
	}
	return b
}

// parts are those of all ranks.
func parts(n int, dt millrace.DType, count int) (all [][]byte) {
	for r := range n {
		all = append(all, part(r, dt, count))
	}
	return all
}

// sum is the sum of parts: level by level, neighbours are added, and an odd one passes.
func sum(dt millrace.DType, parts [][]byte) []byte {
	out := make([]byte, len(parts[0]))
	for at := 0; at < len(out); at += dt.Size() {
		var level []uint64
		for _, p := range parts {
			level = append(level, enter(dt, ir.LoadBits(dt, p[at:])))
		}
		for len(level) > 1 {
			var next []uint64
			for i := 0; i < len(level); i += 2 {
				if i+1 < len(level) {
					next = append(next, add(dt, level[i], level[i+1]))
				} else {
					next = append(next, level[i])
				}
			}
			level = next
		}
		ir.StoreBits(dt, out[at:], leave(dt, level[0]))
	}
	return out
}

// enter converts a small float to float32, and leave rounds it.
func enter(dt millrace.DType, bits uint64) uint64 {
	if dt.IsFloat() && dt.Size() < 4 {
		return ir.FloatBits(millrace.Float32, ir.BitsFloat(dt, bits))
	}
	return bits
}

func leave(dt millrace.DType, bits uint64) uint64 {
	if dt.IsFloat() && dt.Size() < 4 {
		return ir.FloatBits(dt, ir.BitsFloat(millrace.Float32, bits))
	}
	return bits
}

func add(dt millrace.DType, a, b uint64) uint64 {
	switch {
	case dt == millrace.Float64:
		return math.Float64bits(math.Float64frombits(a) + math.Float64frombits(b))
	case dt.IsFloat():
		return uint64(math.Float32bits(math.Float32frombits(uint32(a)) + math.Float32frombits(uint32(b))))
	}
	return a + b
}

// place is a stream for tensors of one rank. Ranks that are goroutines must not share a stream: its
// jobs run in order, so those of one rank would wait for the other's.
func place() millrace.Place {
	d, err := millrace.Default()
	if err != nil {
		return nil // tensors in no place carry an error
	}
	return d.NewStream()
}

// tensor makes a tensor of bytes.
func tensor(b []byte, dt millrace.DType, shape ...int) (*millrace.Tensor, error) {
	return millrace.FromReaderOn(place(), bytes.NewReader(b), dt, shape...)
}

// check compares a tensor's shape and bytes, and releases it.
func check(what string, t *millrace.Tensor, shape []int, want []byte) error {
	defer t.Release()
	var got bytes.Buffer
	if _, err := t.WriteTo(&got); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if fmt.Sprint(t.Shape()) != fmt.Sprint(shape) {
		return fmt.Errorf("%s: shape %v, want %v", what, t.Shape(), shape)
	}
	for i, b := range got.Bytes() {
		if b != want[i] {
			return fmt.Errorf("%s: byte %d of %d is %d, want %d", what, i, len(want), b, want[i])
		}
	}
	return nil
}

// rows are numbers of rows that a rank adds, or that it sends to another; each has 3 columns. The
// last one is more than a block of a sum, of which there are two kinds.
func rows(dt millrace.DType) []int {
	if dt == millrace.Float32 || dt == millrace.BFloat16 {
		return []int{0, 1, 5, 701}
	}
	return []int{0, 1, 5}
}

// op is a collective with its definition in Go, of all ranks' parts, each of n rows for each rank.
type op struct {
	name  string
	sum   bool
	run   func(w *dist.World, t *millrace.Tensor) *millrace.Tensor
	want  func(rank int, dt millrace.DType, parts [][]byte) []byte
	shape func(ranks, rows int) int // rows of the result
}

// slice is the k-th of n equal pieces.
func slice(b []byte, k, n int) []byte { return b[len(b)/n*k : len(b)/n*(k+1)] }

var ops = []op{
	{"allreduce", true, (*dist.World).AllReduce,
		func(_ int, dt millrace.DType, parts [][]byte) []byte { return sum(dt, parts) },
		func(_, rows int) int { return rows }},
	{"reducescatter", true, (*dist.World).ReduceScatter,
		func(rank int, dt millrace.DType, parts [][]byte) []byte {
			return slice(sum(dt, parts), rank, len(parts))
		},
		func(n, rows int) int { return rows / n }},
	{"allgather", false, (*dist.World).AllGather,
		func(_ int, _ millrace.DType, parts [][]byte) []byte { return bytes.Join(parts, nil) },
		func(n, rows int) int { return rows * n }},
	{"alltoall", false, (*dist.World).AllToAll,
		func(rank int, _ millrace.DType, parts [][]byte) (all []byte) {
			for _, p := range parts {
				all = append(all, slice(p, rank, len(parts))...)
			}
			return all
		},
		func(_, rows int) int { return rows }},
	{"broadcast", false, func(w *dist.World, t *millrace.Tensor) *millrace.Tensor { return w.Broadcast(t, w.Size()-1) },
		func(_ int, _ millrace.DType, parts [][]byte) []byte { return parts[len(parts)-1] },
		func(_, rows int) int { return rows }},
}

func values() (cases []Case) {
	for _, o := range ops {
		cases = append(cases, Case{Name: o.name, Ranks: Sizes, Run: func(ctx context.Context, w *dist.World) error {
			for _, dt := range dtypes() {
				for _, rows := range rows(dt) {
					if err := o.check(w, dt, rows*w.Size()); err != nil {
						return fmt.Errorf("%v, %d rows: %w", dt, rows, err)
					}
				}
			}
			return w.Barrier(ctx)
		}})
	}
	cases = append(cases, Case{Name: "uneven sums", Ranks: Sizes, Run: func(_ context.Context, w *dist.World) error {
		for _, count := range []int{1, 2, 5, 4097} { // of which ranks add different numbers
			all := parts(w.Size(), millrace.Float32, count)
			t, err := tensor(all[w.Rank()], millrace.Float32, count)
			if err != nil {
				return err
			}
			defer t.Release()
			if err := check("allreduce", w.AllReduce(t), []int{count}, sum(millrace.Float32, all)); err != nil {
				return fmt.Errorf("%d elements: %w", count, err)
			}
		}
		return nil
	}}, Case{Name: "scalar", Ranks: Sizes, Run: func(_ context.Context, w *dist.World) error {
		all := parts(w.Size(), millrace.Float64, 1)
		t, err := tensor(all[w.Rank()], millrace.Float64)
		if err != nil {
			return err
		}
		defer t.Release()
		return check("allreduce", w.AllReduce(t), []int{}, sum(millrace.Float64, all))
	}}, Case{Name: "views", Ranks: Sizes, Run: func(_ context.Context, w *dist.World) error {
		t := millrace.ArangeOn(place(), millrace.Float32, 0, 12, 1).Reshape(3, 4).Transpose(0, 1)
		defer t.Release()
		want := t.MulScalar(float64(w.Size()))
		defer want.Release()
		var b bytes.Buffer
		if _, err := want.WriteTo(&b); err != nil {
			return err
		}
		return check("allreduce of a transposed tensor", w.AllReduce(t), []int{4, 3}, b.Bytes())
	}})
	return cases
}

func (o op) check(w *dist.World, dt millrace.DType, rows int) error {
	all := parts(w.Size(), dt, 3*rows)
	t, err := tensor(all[w.Rank()], dt, rows, 3)
	if err != nil {
		return err
	}
	defer t.Release()
	r := o.run(w, t)
	if o.sum && dt == millrace.Bool {
		return want(r.Err(), isDType, "bool has no sum")
	}
	return check(o.name, r, []int{o.shape(w.Size(), rows), 3}, o.want(w.Rank(), dt, all))
}
