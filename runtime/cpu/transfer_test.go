package cpu

import (
	"errors"
	"sync"
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// TestTransferBounds checks that transfers stay within a buffer that is not freed.
func TestTransferBounds(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 2, Tier: -1})
	b, err := d.Alloc(40)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(b, ir.Int64, 4, []byte{1, 2, 3, 4, 5, 6, 7, 8}); err != nil {
		t.Error(err)
	}
	got := make([]byte, 4)
	if err := d.Read(got, ir.Int32, b, 8); err != nil || got[3] != 4 {
		t.Errorf("%v, %v", got, err)
	}
	for _, off := range []int64{-1, 5, 1 << 60} {
		if d.Write(b, ir.Int64, off, make([]byte, 8)) == nil || d.Read(make([]byte, 8), ir.Int64, b, off) == nil {
			t.Errorf("element %d of 5 exists", off)
		}
	}
	d.Free(b)
	if err := d.Write(b, ir.Float32, 0, make([]byte, 4)); err == nil {
		t.Error("Write to a freed buffer")
	}
}

// TestHammer frees, allocates, copies and runs on many goroutines.
func TestHammer(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 2, Tier: -1})
	k := reduction(ir.Sum, ir.Float32)
	p, err := d.Build(k)
	if err != nil {
		t.Fatal(err)
	}
	const n = 3000
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 30 {
				size := int64(n * (1 + (g+i)%3))
				b, err1 := d.Alloc(size * 4)
				out, err2 := d.Alloc(8)
				data := make([]byte, size*4)
				for j := range size {
					data[4*j+2], data[4*j+3] = 0x80, 0x3f // 1
				}
				err3 := d.Write(b, ir.Float32, 0, data)
				l := runtime.Launch{Prog: p, Rank: 1, Args: make([]runtime.Access, 3)}
				l.Dims[0] = size
				l.Args[0].Buf, l.Args[0].Stride[0] = b, 1
				l.Args[1].Buf, l.Args[2].Buf, l.Args[2].Offset = out, out, 1
				err4 := d.Run([]runtime.Launch{l})
				got := make([]byte, 4)
				err5 := d.Read(got, ir.Float32, out, 1)
				if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
					t.Error(err)
				}
				bits := uint32(got[0]) | uint32(got[1])<<8 | uint32(got[2])<<16 | uint32(got[3])<<24
				if want := map[int64]uint32{n: 0x453b8000, 2 * n: 0x45bb8000, 3 * n: 0x460ca000}[size]; bits != want {
					t.Errorf("sum of %d ones is %#x, want %#x", size, bits, want)
				}
				d.Free(b)
				d.Free(out)
			}
		})
	}
	wg.Wait()
}
