package apitest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
)

// trained is a model with a training step.
type trained interface {
	step(*millrace.Scope, []*tensor) ([]*tensor, error)
	weights() []*tensor
	input(at millrace.Place, seed uint64) []*tensor
}

// makemore is the character model of Bengio with two tanh layers, its derivatives by hand: an
// embedding of three characters, cross entropy over 27 of them, SGD.
type makemore struct {
	hidden, batch int
	table         *tensor // of embeddings
	w, b          [3]*tensor
}

const (
	letters, before, embedded = 27, 3, 10
	learningRate              = 0.05
)

func newMakemore(at millrace.Place, hidden, batch int) *makemore {
	m := &makemore{hidden: hidden, batch: batch}
	uniform := func(seed uint64, dims ...int) *tensor {
		return millrace.UniformOn(at, millrace.Float32, seed, dims...).AddScalar(-0.5).MulScalar(0.2)
	}
	m.table = uniform(1, letters, embedded)
	width := [4]int{before * embedded, hidden, hidden, letters}
	for i := range m.w {
		m.w[i], m.b[i] = uniform(uint64(2+i), width[i], width[i+1]), uniform(uint64(10+i), width[i+1])
	}
	for _, t := range m.weights() {
		if err := t.Eval(); err != nil {
			panic(err)
		}
	}
	return m
}

func (m *makemore) weights() []*tensor {
	return []*tensor{m.table, m.w[0], m.b[0], m.w[1], m.b[1], m.w[2], m.b[2]}
}

// step does forward, backward and update for (batch, 3) characters and the characters after them.
// It returns the mean loss.
func (m *makemore) step(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
	x := m.table.Take(in[0], 0).Reshape(m.batch, before*embedded)
	h := [4]*tensor{x}
	for i := range 2 {
		h[i+1] = h[i].MatMul(m.w[i]).Add(m.b[i]).Tanh()
	}
	logits := h[2].MatMul(m.w[2]).Add(m.b[2])
	loss := millrace.CrossEntropy(logits, in[1]).Mean()

	d := logits.Softmax(1).Sub(in[1].OneHot(millrace.Float32, letters)).MulScalar(1 / float64(m.batch))
	var dw, db [3]*tensor
	for i := 2; i >= 0; i-- {
		dw[i], db[i] = h[i].T().MatMul(d), d.Sum(0)
		d = d.MatMul(m.w[i].T())
		if i > 0 {
			d = d.Mul(h[i].Square().Neg().AddScalar(1))
		}
	}
	dx := d.Reshape(m.batch*before, embedded)
	m.table.Set(m.table.IndexAdd(in[0].Reshape(m.batch*before), dx.MulScalar(-learningRate), 0))
	for i := range 3 {
		m.w[i].Set(m.w[i].Sub(dw[i].MulScalar(learningRate)))
		m.b[i].Set(m.b[i].Sub(db[i].MulScalar(learningRate)))
	}
	return []*tensor{loss}, nil
}

// input returns a batch of characters with the characters after them.
func (m *makemore) input(at millrace.Place, seed uint64) []*tensor {
	rng := rand.New(rand.NewPCG(seed, 1))
	draw := func(n int) []int32 {
		list := make([]int32, n)
		for i := range list {
			list[i] = rng.Int32N(letters)
		}
		return list
	}
	return []*tensor{millrace.FromSliceOn(at, draw(m.batch*before), m.batch, before), millrace.FromSliceOn(at, draw(m.batch), m.batch)}
}

// small is a step of about ops small ops, a thousand in each segment: chains with sums between
// them, and states that are set.
type small struct {
	ops    int
	states []*tensor
}

func newSmall(at millrace.Place, ops int) *small {
	m := &small{ops: ops}
	for i := range 16 {
		m.states = append(m.states, millrace.FullOn(at, millrace.Float32, float64(i)/16, 8, 24))
	}
	return m
}

func (m *small) weights() []*tensor { return m.states }

func (m *small) input(at millrace.Place, seed uint64) []*tensor {
	return []*tensor{millrace.UniformOn(at, millrace.Float32, seed, 8, 24)}
}

func (m *small) step(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
	x := in[0]
	n := 0
	for n < m.ops {
		for i, w := range m.states {
			x = x.Mul(w).Tanh().AddScalar(0.1)
			x = x.Sub(x.SumKeep(1).MulScalar(1.0 / 24))
			n += 6
			if n >= m.ops-3*len(m.states) {
				m.states[i].Set(w.Sub(x.MulScalar(0.01)))
				n += 3
			}
		}
	}
	return []*tensor{x.Sum()}, nil
}

// BenchmarkReplay times a training step in a Recording, with waiting, and its kernels alone in the
// cases named kernels.
func BenchmarkReplay(b *testing.B) {
	run := func(name string, make func(d *millrace.Device) (func(*millrace.Scope, []*tensor) ([]*tensor, error), []*tensor)) {
		b.Run(name, func(b *testing.B) {
			dev := open(b, millrace.Options{Compile: millrace.CompileWait, Explore: millrace.ExploreWait})
			s := dev.NewStream()
			f, in := make(dev)
			rec := millrace.NewRecording(f)
			defer rec.Release()
			step := func() {
				out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, in...)
				if err != nil {
					b.Fatal(err)
				}
				for _, t := range out {
					t.Release()
				}
			}
			for range 20 {
				step()
			}
			was := dev.Stats()
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
			now, n := dev.Stats(), int64(b.N)
			b.ReportMetric(float64((now.Segments-was.Segments)/n), "segments/op")
			b.ReportMetric(float64((now.Kernels-was.Kernels)/n), "kernels/op")
			b.ReportMetric(float64(now.Replays-was.Replays)/float64(n), "replays/op")
			if now.Explorations != was.Explorations || now.Runtime.Compiles != was.Runtime.Compiles {
				b.Errorf("%d explorations, %d compiles", now.Explorations-was.Explorations, now.Runtime.Compiles-was.Runtime.Compiles)
			}
		})
	}
	for _, batch := range []int{1, 64} {
		for _, hidden := range []int{4, 64, 1024} {
			run(fmt.Sprintf("makemore/hidden=%d/batch=%d", hidden, batch), func(d *millrace.Device) (func(*millrace.Scope, []*tensor) ([]*tensor, error), []*tensor) {
				m := newMakemore(d, hidden, batch)
				return m.step, m.input(d, 1)
			})
		}
	}
	run("small/ops=2000", func(d *millrace.Device) (func(*millrace.Scope, []*tensor) ([]*tensor, error), []*tensor) {
		m := newSmall(d, 2000)
		return m.step, m.input(d, 1)
	})
}
