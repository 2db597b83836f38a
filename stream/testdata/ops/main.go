// Ops runs a few segments on a device with a cache, and prints how many plans each segment
// explored: see TestPlansOutliveOtherOps.
package main

import (
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"os"

	"github.com/millrace-go/millrace/internal/engine/device"
	_ "github.com/millrace-go/millrace/internal/testing/refdev"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

type value = stream.Value

func op(op ir.Op, args ...stream.Arg) *value {
	v := new(value)
	stream.Apply(v, op, args)
	return v
}

func of(v *value) stream.Arg { return stream.Arg{V: v} }

func number(x float32) stream.Arg { return stream.Arg{Bits: uint64(math.Float32bits(x))} }

func main() {
	d, err := stream.Open(device.Options{Device: "ref", Explore: device.ExploreWait, Cache: os.Args[1]})
	if err != nil {
		log.Fatal(err)
	}
	place := stream.Place{S: d.Default()}
	record := func(op ir.Op, dt ir.DType, attr *ir.Attr, args ...stream.Arg) *value {
		v := new(value)
		stream.Record(v, place, op, dt, nil, attr, args)
		return v
	}
	segments := []struct {
		name string
		run  func(x *value) *value
	}{
		{"chain", func(x *value) *value {
			y := op(ir.Erf, of(op(ir.Mul, of(x), number(2))))
			return op(ir.Where, of(op(ir.Lt, of(y), number(0))), of(y), of(x))
		}},
		{"rows", func(x *value) *value {
			sum := record(ir.Sum, ir.Float32, &ir.Attr{Axes: []int{1}, Keep: true}, of(x))
			half := record(ir.Cast, ir.Float16, nil, of(op(ir.Div, of(x), of(sum))))
			return record(ir.Cast, ir.Float32, nil, of(op(ir.Maximum, of(half), of(half))))
		}},
		{"scatter", func(x *value) *value {
			at := record(ir.Cast, ir.Int32, nil, of(x))
			return record(ir.Scatter, ir.Float32, &ir.Attr{Axes: []int{1}, Mode: ir.IndexClamp, Combine: ir.CombineMax}, of(x), of(at), of(x))
		}},
		{"softplus", func(x *value) *value { return op(ir.Softplus, of(x)) }},
	}
	before := d.Stats().Explorations
	for _, s := range segments {
		var data []byte
		for i := range 6 {
			data = binary.NativeEndian.AppendUint32(data, math.Float32bits(float32(i)))
		}
		x := new(value)
		stream.FromHost(x, place, ir.Float32, ir.Shape{2, 3}, data)
		y := s.run(x)
		if err := stream.Read(y, make([]byte, 24)); err != nil {
			log.Fatal(s.name, ": ", err)
		}
		now := d.Stats().Explorations
		fmt.Println(s.name, now-before)
		before = now
	}
	if err := d.Close(); err != nil {
		log.Fatal(err)
	}
}
