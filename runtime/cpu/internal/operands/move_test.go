package operands

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
)

// place returns the position of the operand's element at a point.
func place(o *Operand, at []int64) int64 {
	p := o.Offset
	for d, i := range at {
		p += i * o.Stride[d]
	}
	for i := range o.Stages {
		p = o.Stages[i].Position(p)
	}
	return p
}

// TestMove compares every kind of move with positions found point by point, through plain and
// flipped accesses and views with one and two stages.
func TestMove(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	transposed := runtime.Stage{Dims: []int64{8, 15}, Stride: []int64{1, 8}}
	flipped := runtime.Stage{Offset: 119, Dims: []int64{120}, Stride: []int64{-1}}
	for _, c := range []struct {
		dims []int64
		o    Operand
	}{
		{nil, Operand{Offset: 7}},
		{[]int64{120}, Operand{Stride: [runtime.MaxRank]int64{1}}},
		{[]int64{6, 20}, Operand{Stride: [runtime.MaxRank]int64{20, 1}}},
		{[]int64{6, 20}, Operand{Offset: 119, Stride: [runtime.MaxRank]int64{-20, -1}}},
		{[]int64{6, 4, 5}, Operand{Stride: [runtime.MaxRank]int64{1, 30, 6}}},
		{[]int64{6, 20}, Operand{Stride: [runtime.MaxRank]int64{20, 1}, Stages: []runtime.Stage{transposed}}},
		{[]int64{4, 30}, Operand{Stride: [runtime.MaxRank]int64{1, 4}, Stages: []runtime.Stage{transposed, flipped}}},
		{[]int64{5, 8}, Operand{Offset: 2, Stride: [runtime.MaxRank]int64{0, 3}, Stages: []runtime.Stage{flipped}}},
	} {
		for _, size := range []int{1, 2, 4, 8} {
			memory := make([]byte, 120*size)
			for i := range memory {
				memory[i] = byte(rng.Uint32())
			}
			c.o.Base = unsafe.Pointer(&memory[0])
			testMove(t, rng, c.dims, c.o, size, memory)
		}
	}
}

func testMove(t *testing.T, rng *rand.Rand, dims []int64, o Operand, size int, memory []byte) {
	a := &Args{Rank: len(dims)}
	total := int64(1)
	for d, n := range dims {
		a.Dims[d] = n
		total *= n
	}
	first := rng.Int64N(total)
	n := 1 + rng.Int64N(total-first)
	point := func(p int64) (at [runtime.MaxRank]int64) {
		for d := len(dims) - 1; d >= 0; d-- {
			at[d], p = p%dims[d], p/dims[d]
		}
		return at
	}
	at := point(first)
	block := make([]byte, n*int64(size))
	wide, half := make([]int64, n), make([]uint32, 2*n)
	a.Move(Gather, &o, size, &at, n, unsafe.Pointer(&block[0]))
	a.Move(Positions, &o, size, &at, n, unsafe.Pointer(&wide[0]))
	a.Move(PosLo, &o, 4, &at, n, unsafe.Pointer(&half[0]))
	a.Move(PosHi, &o, 4, &at, n, unsafe.Pointer(&half[n]))
	for i := range n {
		x := point(first + i)
		p := place(&o, x[:len(dims)])
		from := p * int64(size)
		if got := block[i*int64(size) : (i+1)*int64(size)]; string(got) != string(memory[from:from+int64(size)]) {
			t.Fatalf("dims %v, point %d: gathered %x, not %x", dims, first+i, got, memory[from:from+int64(size)])
		}
		if wide[i] != from || half[i] != uint32(p) || half[n+i] != uint32(p>>32) {
			t.Fatalf("dims %v, point %d: positions %d, %d and %d, not %d", dims, first+i, wide[i], half[i], half[n+i], p)
		}
	}
	to := make([]byte, len(memory))
	o.Base = unsafe.Pointer(&to[0])
	a.Move(Scatter, &o, size, &at, n, unsafe.Pointer(&block[0]))
	for i := range n {
		x := point(first + i)
		from := place(&o, x[:len(dims)]) * int64(size)
		if got, want := to[from:from+int64(size)], memory[from:from+int64(size)]; string(got) != string(want) {
			t.Fatalf("dims %v, point %d: scattered %x, not %x", dims, first+i, got, want)
		}
	}
}

// TestGuard checks that only points at position 0 of a guarded dim are stored.
func TestGuard(t *testing.T) {
	const rows, cols = 3, 5
	values := make([]int32, rows*cols)
	for i := range values {
		values[i] = int32(i + 1)
	}
	for dim, want := range [][]int32{{1, 2, 3, 4, 5}, {1, 6, 11}} {
		stored := make([]int32, len(want))
		o := Operand{Base: unsafe.Pointer(&stored[0]), Guard: 1 << dim}
		o.Stride[1-dim] = 1
		a := &Args{Rank: 2, Dims: [runtime.MaxRank]int64{rows, cols}}
		var at [runtime.MaxRank]int64
		a.Move(Scatter, &o, 4, &at, rows*cols, unsafe.Pointer(&values[0]))
		if !slices.Equal(stored, want) {
			t.Errorf("guard of dim %d: %v, not %v", dim, stored, want)
		}
	}
}

// TestLine checks positions without gaps across 32 bits.
func TestLine(t *testing.T) {
	lo, hi := make([]uint32, 4), make([]uint32, 4)
	first := int64(1)<<32 - 2
	Line(PosLo, first, 4, unsafe.Pointer(&lo[0]))
	Line(PosHi, first, 4, unsafe.Pointer(&hi[0]))
	for i := range lo {
		if p := uint64(first) + uint64(i); lo[i] != uint32(p) || hi[i] != uint32(p>>32) {
			t.Errorf("position %d: halves %d and %d", p, lo[i], hi[i])
		}
	}
}

// TestIndexFault checks that the least index is kept, and of equal ones the first operand's.
func TestIndexFault(t *testing.T) {
	var f IndexFault
	for _, n := range [][2]int64{{1, 9}, {3, 4}, {2, 4}, {0, 7}} {
		f.Note(int(n[0]), n[1])
	}
	if !f.Set || f.Operand != 2 || f.Index != 4 {
		t.Errorf("operand %d, index %d are kept", f.Operand, f.Index)
	}
	if f.Reset(); f.Set {
		t.Error("a fault is kept after Reset")
	}
}
