package gputest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
)

// testEnginePieces: tensors are concatenated by kernels of one operand each, for which a device's
// limit on bindings does not matter. Every element is read and written once.
func testEnginePieces(t *testing.T) {
	d := openEngine(t)
	for _, parts := range []int{2, 9, 64} {
		for axis := range 2 {
			const other = 37
			var xs []*millrace.Tensor
			var lines [][]float32 // of the result, along axis 1
			if axis == 1 {
				lines = make([][]float32, other)
			}
			bytes, next := int64(0), float32(0)
			for i := range parts {
				rows, columns := 1000+33*(i%3), other
				if axis == 1 {
					rows, columns = columns, rows
				}
				data := make([]float32, rows*columns)
				for j := range data {
					data[j] = next
					next++
				}
				if axis == 0 {
					lines = append(lines, data)
				}
				for r := range rows * axis {
					lines[r] = append(lines[r], data[r*columns:][:columns]...)
				}
				x := millrace.FromSliceOn(d, data, rows, columns)
				must(t, x.Eval())
				xs, bytes = append(xs, x), bytes+4*int64(len(data))
			}
			name := fmt.Sprintf("%d along axis %d", parts, axis)
			all := millrace.Concat(axis, xs...)
			before := d.Stats().Runtime
			if err := all.Eval(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			after := d.Stats().Runtime
			got, err := millrace.Values[float32](all)
			if err != nil || !slices.Equal(got, slices.Concat(lines...)) {
				t.Errorf("%s: other elements; %v", name, err)
			}
			read, written, n := after.BytesRead-before.BytesRead, after.BytesWritten-before.BytesWritten, after.Launches-before.Launches
			if read > bytes*6/5 || written > bytes*6/5 || n > int64(parts) {
				t.Errorf("%s: %d bytes read and %d written in %d launches, %d bytes are joined", name, read, written, n, bytes)
			}
			for _, x := range append(xs, all) {
				x.Release()
			}
		}
	}
}
