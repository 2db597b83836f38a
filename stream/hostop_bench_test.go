package stream

import (
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/ir"
)

// BenchmarkHostOps runs a step of 8 layers, with a host op that moves nothing behind each or without
// them, as a list and bound.
func BenchmarkHostOps(b *testing.B) {
	d, err := Open(device.Options{Device: "cpu", Explore: device.ExploreWait, Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	s, lane := d.NewStream(), d.NewHostLane()
	const n = 512
	data := make([]byte, 4*n*n)
	host := func() *Value {
		v := new(Value)
		FromHost(v, Place{S: s}, ir.Float32, ir.Shape{n, n}, data)
		return v
	}
	x := host()
	var weights []*Value
	for range 8 {
		weights = append(weights, host())
	}
	op := func(op ir.Op, attr *ir.Attr, args ...*Value) *Value {
		r := new(Value)
		var list []Arg
		for _, a := range args {
			list = append(list, Arg{V: a})
		}
		Record(r, Place{}, op, ir.Invalid, nil, attr, list)
		return r
	}
	nothing := func() HostFunc { return func(_, _ []byte, fault error) error { return fault } }
	tape := func(hosts bool) *Tape {
		sc := s.OpenScope()
		in := new(Value)
		To(in, Place{S: s, Scope: sc}, x)
		taping := s.StartTape([]*Value{in})
		y := in
		var sums []*Value
		for _, w := range weights {
			for range 3 {
				y = op(ir.Tanh, nil, op(ir.Add, nil, y, w))
			}
			g := op(ir.Mul, nil, y, y)
			if hosts {
				r := new(Value)
				HostOp{Lane: lane, Name: "nothing", DT: ir.Float32, Shape: ir.Shape{n, n}, Begin: nothing}.Record(r, g)
				g = r
			} else if st, err := handOver(g, nil, s); err == nil { // cuts the stream, too
				st.Release()
			}
			sums = append(sums, g)
		}
		for i, w := range weights {
			sums[i] = op(ir.Add, nil, w, sums[i])
			sc.Keep(sums[i])
		}
		sc.Close()
		t := taping.End(sums)
		if t == nil {
			b.Fatal("it cannot be run again")
		}
		return t
	}
	results := func() (out []*Value) {
		for range weights {
			out = append(out, new(Value))
		}
		return out
	}
	for _, hosts := range []bool{false, true} {
		name := map[bool]string{false: "without", true: "8 host ops"}[hosts]
		t := tape(hosts)
		b.Run("list, "+name, func(b *testing.B) {
			for b.Loop() {
				out := results()
				if done, err := t.Play(s, []*Value{x}, nil, out, true); !done || err != nil {
					b.Fatal(done, err)
				}
				for _, v := range out {
					Release(v)
				}
			}
		})
		out := results()
		bound, err := t.Bind(s, []*Value{x}, out)
		if err != nil || bound == nil {
			b.Fatal(bound, err)
		}
		b.Run("bound, "+name, func(b *testing.B) {
			for b.Loop() {
				if err := bound.Run(1); err != nil {
					b.Fatal(err)
				}
			}
		})
		bound.Close()
		t.Release()
	}
}
