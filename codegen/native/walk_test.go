package native_test

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
)

// TestWalk compares copies between memory and blocks with the definition, with pieces of all
// lengths.
func TestWalk(t *testing.T) {
	eachDot(t, walkTest[float32], walkTest[float64], walkTest[uint32], walkTest[uint64])
}

func walkTest[T number](t *testing.T, d *mappedDot) {
	rng := rand.New(rand.NewPCG(7, 8))
	size := int64(d.Size)
	for range 200 {
		rows, count := 1+rng.IntN(4), 1+rng.IntN(5)
		var pieces []native.WalkPiece
		inMemory, inBlock := 0, 0
		for range count {
			n := 1 + rng.IntN(6*d.Lanes)
			inMemory += rng.IntN(3)
			pieces = append(pieces, native.WalkPiece{int64(inMemory) * size, int64(inBlock) * size, int64(n) * size})
			inMemory, inBlock = inMemory+n, inBlock+n+rng.IntN(2)
		}
		offsets := make([]int64, rows)
		ld := inBlock + rng.IntN(3)
		for i := range offsets {
			offsets[i] = int64(i*(inMemory+rng.IntN(3))) * size
		}
		memory, block := someNumbers[T](rng, int(offsets[rows-1]/size)+inMemory+1), someNumbers[T](rng, rows*ld+1)
		f := &native.WalkFrame{Memory: unsafe.Pointer(&memory[0]), Block: unsafe.Pointer(&block[0]), LdBlock: int64(ld) * size,
			Offsets: unsafe.Pointer(&offsets[0]), Rows: int64(rows), Pieces: unsafe.Pointer(&pieces[0]), Count: int64(count)}
		for _, load := range []bool{true, false} {
			to, from, call := block, memory, d.Load
			if !load {
				to, from, call = from, to, d.Store
			}
			want := append([]T(nil), to...)
			for i, off := range offsets {
				for _, p := range pieces {
					m, b, n := int((off+p.Memory)/size), i*ld+int(p.Block/size), int(p.Bytes/size)
					if load {
						copy(want[b:b+n], from[m:])
					} else {
						copy(want[m:m+n], from[b:])
					}
				}
			}
			d.call(call, unsafe.Pointer(f))
			for i := range to {
				if !sameNumber(to[i], want[i]) {
					t.Fatalf("load %t, %d rows of %v: element %d is %v, not %v", load, rows, pieces, i, to[i], want[i])
				}
			}
			copy(block, someNumbers[T](rng, len(block)))
		}
	}
}
