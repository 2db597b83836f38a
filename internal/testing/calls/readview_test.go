package calls_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
)

// heapOf returns how many bytes of Go's heap f allocated, freed or not.
func heapOf(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestReadingAViewTakesWhatIsRead checks that reading a view takes memory only for its elements,
// not for those between them. The device makes the view dense in pieces, even if it has very
// little memory for them.
func TestReadingAViewTakesWhatIsRead(t *testing.T) {
	const rows, cols = 2048, 4096 // 32 MiB
	for _, spec := range []string{"cpu:threads=2", "cpu:tier=0,threads=1,memory=33MiB"} {
		dev, other := openCPU(t, spec), openCPU(t, "cpu:tier=0,threads=1")
		x := millrace.ArangeOn(dev, millrace.Int32, 0, rows*cols, 1).Reshape(rows, cols)
		if err := x.Eval(); err != nil {
			t.Fatal(err)
		}
		at := func(i, j int) int32 { return int32(i*cols + j) }
		for _, c := range []struct {
			name  string
			view  func() *tensor
			want  func(i, j int) int32
			shape [2]int
		}{
			{"a column", func() *tensor { return x.Slice(millrace.All, millrace.R(7, 8)) }, func(i, _ int) int32 { return at(i, 7) }, [2]int{rows, 1}},
			{"ten columns backwards", func() *tensor { return x.Slice(millrace.R(-1, millrace.End, -1), millrace.R(100, 200, 10)) },
				func(i, j int) int32 { return at(rows-1-i, 100+10*j) }, [2]int{rows, 10}},
			{"the transposed half", func() *tensor { return x.Slice(millrace.All, millrace.R(0, cols/2)).T() },
				func(i, j int) int32 { return at(j, i) }, [2]int{cols / 2, rows}},
			{"an element, repeated", func() *tensor { return x.Slice(millrace.At(3), millrace.R(5, 6)).Expand(3000, 50, 1).Reshape(3000, 50) },
				func(_, _ int) int32 { return at(3, 5) }, [2]int{3000, 50}},
		} {
			v := c.view()
			check := func(way string, got []int32, err error) {
				t.Helper()
				if err != nil || len(got) != v.Len() || v.Len() != c.shape[0]*c.shape[1] {
					t.Errorf("%s, %s, %s: %d elements of %v, %v", spec, c.name, way, len(got), v.Shape(), err)
					return
				}
				for k, g := range got {
					if w := c.want(k/c.shape[1], k%c.shape[1]); g != w {
						t.Errorf("%s, %s, %s: element %d is %d, want %d", spec, c.name, way, k, g, w)
						return
					}
				}
			}
			bytesRead := int64(v.Len() * 4)
			besides, device := int64(3<<20), int64(0) // for a piece, and for the first use of a kernel
			if memoryOfGo {
				besides, device = 8<<20, bytesRead
			}
			launches := dev.Stats().Runtime.Launches
			var got []int32
			var err error
			if n := heapOf(func() { got, err = millrace.Values[int32](v) }); n > bytesRead+besides {
				t.Errorf("%s, %s: Values of %d bytes took %d", spec, c.name, bytesRead, n)
			}
			check("Values", got, err)
			if n := heapOf(func() { err = millrace.ReadInto(got, v) }); n > besides {
				t.Errorf("%s, %s: ReadInto took %d bytes", spec, c.name, n)
			}
			check("ReadInto", got, err)
			if dev.Stats().Runtime.Launches == launches {
				t.Errorf("%s, %s: the device did nothing", spec, c.name)
			}
			out := bytes.NewBuffer(make([]byte, 0, bytesRead))
			if n := heapOf(func() { _, err = v.WriteTo(out) }); n > besides {
				t.Errorf("%s, %s: WriteTo took %d bytes", spec, c.name, n)
			}
			got = make([]int32, out.Len()/4)
			binary.Decode(out.Bytes(), binary.LittleEndian, got)
			check("WriteTo", got, err)
			var moved *tensor
			if n := heapOf(func() { moved = v.To(other) }); n > device+besides {
				t.Errorf("%s, %s: To took %d bytes", spec, c.name, n)
			}
			got, err = millrace.Values[int32](moved)
			check("To", got, err)
			moved.Release()
			v.Release()
		}
		if n := dev.Stats(); n.Fallbacks != 0 || n.LiveBytes != rows*cols*4 {
			t.Errorf("%s: %d fallbacks, %d bytes live", spec, n.Fallbacks, n.LiveBytes)
		}
	}
}

// memoryOfGo reports whether a device's memory is Go's heap. It is if the program was built
// without cgo; the interpreter's memory is then there too.
var memoryOfGo = func() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"})
}()
