package native_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/codegen/native/amd64"
	"github.com/millrace-go/millrace/codegen/native/arm64"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
)

// number is an element of a contraction.
type number interface {
	float32 | float64 | uint32 | uint64
}

// eachDot runs a test for each ISA that this processor has and each kind of element.
func eachDot(t *testing.T, f32 func(*testing.T, *mappedDot), f64 func(*testing.T, *mappedDot), i32 func(*testing.T, *mappedDot), i64 func(*testing.T, *mappedDot)) {
	for i, isa := range []*native.ISA{amd64.AVX2, amd64.AVX512, arm64.NEON} {
		if !machine.Level().Has(machine.ISA(i + 1)) {
			t.Logf("no %s here", isa.Name)
			continue
		}
		for dt, f := range map[ir.DType]func(*testing.T, *mappedDot){ir.Float32: f32, ir.Float64: f64, ir.Int32: i32, ir.Uint64: i64} {
			if isa == arm64.NEON && dt == ir.Uint64 {
				if _, err := native.NewDot(isa, dt, false); err == nil {
					t.Errorf("%v: not said to be there", dt)
				}
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", isa.Name, dt), func(t *testing.T) { f(t, mapDot(t, isa, dt)) })
		}
	}
}

// mappedDot is code that can be called.
type mappedDot struct {
	*native.Dot
	ISA  *native.ISA
	code *machine.Code
}

func mapDot(t testing.TB, isa *native.ISA, dt ir.DType) *mappedDot {
	t.Helper()
	d, err := native.NewDot(isa, dt, false)
	if err != nil {
		t.Fatal(err)
	}
	code, err := machine.Map(d.Code)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(code.Free)
	return &mappedDot{d, isa, code}
}

func (d *mappedDot) call(at int, frame unsafe.Pointer) {
	machine.Call(d.code.Addr(at), frame, machine.KeepMXCSR)
}

// chain is one step of a chain as docs/numerics/order.md defines it.
func chain[T number](x, y, sum T) T {
	switch x := any(x).(type) {
	case float32:
		return T(ir.FMA32(x, float32(y), float32(sum)))
	case float64:
		return T(math.FMA(x, float64(y), float64(sum)))
	}
	return sum + x*y
}

func sameNumber[T number](x, y T) bool {
	if x != x {
		return y != y
	}
	return x == y && math.Signbit(float64(x)) == math.Signbit(float64(y))
}

// someNumbers makes numbers whose sums round; some are zero, or far from the others.
func someNumbers[T number](rng *rand.Rand, n int) []T {
	list := make([]T, n)
	var one T = 1
	whole := one/2 == 0
	for i := range list {
		switch {
		case whole:
			list[i] = T(rng.Uint64())
		case rng.IntN(20) == 0:
			list[i] = T(math.Copysign(0, rng.NormFloat64()))
		case rng.IntN(20) == 0:
			list[i] = T(math.Ldexp(rng.NormFloat64(), rng.IntN(240)-140))
		default:
			list[i] = T(rng.NormFloat64())
		}
	}
	return list
}

// TestTile compares tiles of all forms with the definition: packed or in place, chains that begin
// and end in Acc, and missing columns, which must not be touched.
func TestTile(t *testing.T) {
	eachDot(t, tileTest[float32], tileTest[float64], tileTest[uint32], tileTest[uint64])
}

func tileTest[T number](t *testing.T, d *mappedDot) {
	rng := rand.New(rand.NewPCG(1, 2))
	for rows := 1; rows <= d.Rows; rows++ {
		for vecs := range 9 {
			if d.Tiles[rows][vecs] < 0 {
				continue
			}
			for _, k := range []int{0, 1, 3, 4, 5, 7, 8, 9, 31} {
				for range 3 {
					tileCase[T](t, d, rng, rows, vecs, k)
				}
			}
			if t.Failed() {
				return
			}
		}
	}
}

func tileCase[T number](t *testing.T, d *mappedDot, rng *rand.Rand, rows, vecs, k int) {
	t.Helper()
	panels, tail := 1+rng.IntN(3), 1+rng.IntN(d.Lanes)
	wide := vecs * d.Lanes
	cols := panels*wide - d.Lanes + tail
	ldx, ldc := k+rng.IntN(4)+1, cols+rng.IntN(9)
	ldy, stepY := wide, k*wide // packed
	if rng.IntN(2) == 0 {
		ldy, stepY = panels*wide+rng.IntN(5), wide
	}
	x, y := someNumbers[T](rng, rows*ldx+1), someNumbers[T](rng, max(k*wide*panels, k*ldy+panels*wide)+1)
	c, acc := someNumbers[T](rng, rows*ldc+3*d.Lanes), someNumbers[T](rng, rows*panels*wide+1)
	wantC, wantAcc := append([]T(nil), c...), append([]T(nil), acc...)
	flags := rng.IntN(8)
	for i := range rows {
		for j := range panels * wide {
			var s T
			if flags&native.TileOpen == 0 {
				s = acc[i*panels*wide+j]
			}
			for p := range k {
				s = chain(x[i*ldx+p], y[j/wide*stepY+p*ldy+j%wide], s)
			}
			switch at := i*ldc + j; {
			case flags&native.TileClose == 0:
				wantAcc[i*panels*wide+j] = s
			case j >= cols:
			case flags&native.TileFirst != 0:
				wantC[at] = 0 + s
			default:
				wantC[at] += s
			}
		}
	}
	size := int64(d.Size)
	f := &native.TileFrame{X: unsafe.Pointer(&x[0]), Y: unsafe.Pointer(&y[0]), C: unsafe.Pointer(&c[0]), Acc: unsafe.Pointer(&acc[0]),
		LdX: int64(ldx) * size, LdY: int64(ldy) * size, LdC: int64(ldc) * size, LdAcc: int64(panels*wide) * size,
		StepY: int64(stepY) * size, StepC: int64(wide) * size, K: int64(k), Panels: int64(panels), Tail: int64(tail), Flags: int64(flags)}
	if rng.IntN(2) == 0 { // prefetching changes nothing, at any address
		f.Near, f.LdNear = rng.Int64()>>20, 1+rng.Int64N(1<<13)
	}
	d.call(d.Tile(rows, vecs), unsafe.Pointer(f))
	for i := range c {
		if !sameNumber(c[i], wantC[i]) {
			t.Fatalf("%d×%d vectors, k %d, %d panels, tail %d, flags %d: result %d of row %d is %v, not %v", rows, vecs, k, panels, tail, flags, i%ldc, i/ldc, c[i], wantC[i])
		}
	}
	for i := range acc {
		if !sameNumber(acc[i], wantAcc[i]) {
			t.Fatalf("%d×%d vectors, k %d, %d panels, flags %d: chain %d is %v, not %v", rows, vecs, k, panels, flags, i, acc[i], wantAcc[i])
		}
	}
}

// TestTranspose transposes rows into vectors, and copies rows of columns into panels.
func TestTranspose(t *testing.T) {
	eachDot(t, transposeTest[float32], transposeTest[float64], transposeTest[uint32], transposeTest[uint64])
}

func transposeTest[T number](t *testing.T, d *mappedDot) {
	rng := rand.New(rand.NewPCG(3, 4))
	piece, size := 16/d.Size, int64(d.Size)
	for n := 1; n < 6; n++ {
		k, ld := n*piece, d.Lanes+rng.IntN(5)
		from, to := someNumbers[T](rng, d.Lanes*k), make([]T, k*ld)
		f := &native.TransposeFrame{Dst: unsafe.Pointer(&to[0]), LdDst: int64(ld) * size, K: int64(k)}
		for i := range d.Lanes {
			f.Rows[i] = unsafe.Pointer(&from[i*k])
		}
		d.call(d.Transpose, unsafe.Pointer(f))
		for i, x := range to {
			var want T
			if i%ld < d.Lanes {
				want = from[i%ld*k+i/ld]
			}
			if !sameNumber(x, want) {
				t.Fatalf("k %d: lane %d of vector %d is %v, not %v", k, i%ld, i/ld, x, want)
			}
		}
	}
	for range 40 {
		k, cols, wide := 1+rng.IntN(5), 1+rng.IntN(5*d.Lanes), 2*d.Lanes
		ld, panel := cols+rng.IntN(3), k*wide+rng.IntN(9)
		from, to := someNumbers[T](rng, k*ld+1), someNumbers[T](rng, (cols/wide+2)*panel)
		want := append([]T(nil), to...)
		for i := range k {
			for j := range (cols + wide - 1) / wide * wide {
				at := j/wide*panel + i*wide + j%wide
				if want[at] = 0; j < cols {
					want[at] = from[i*ld+j]
				}
			}
		}
		d.call(d.Panels, unsafe.Pointer(&native.PanelsFrame{Src: unsafe.Pointer(&from[0]), Dst: unsafe.Pointer(&to[0]),
			LdSrc: int64(ld) * size, Panel: int64(panel) * size, Full: int64(cols / wide), Rest: int64(cols % wide), K: int64(k)}))
		for i := range to {
			if !sameNumber(to[i], want[i]) {
				t.Fatalf("%d rows of %d columns: element %d is %v, not %v", k, cols, i, to[i], want[i])
			}
		}
	}
}

// TestAlong compares tiles of columns along k with the definition.
func TestAlong(t *testing.T) {
	eachDot(t, alongTest[float32], alongTest[float64], alongTest[uint32], alongTest[uint64])
}

func alongTest[T number](t *testing.T, d *mappedDot) {
	rng := rand.New(rand.NewPCG(5, 6))
	size := int64(d.Size)
	for rows := 1; rows <= d.AlongRows(); rows++ {
		for flags := range 8 {
			k, tail := d.AlongStep*(1+rng.IntN(3)), 1+rng.IntN(d.Lanes)
			ldx, ldc := k+rng.IntN(4), tail+rng.IntN(9)
			x, y := someNumbers[T](rng, rows*ldx), someNumbers[T](rng, tail*k)
			c, acc := someNumbers[T](rng, rows*ldc), someNumbers[T](rng, rows*d.Lanes)
			want, wantAcc := append([]T(nil), c...), append([]T(nil), acc...)
			f := &native.AlongFrame{TileFrame: native.TileFrame{X: unsafe.Pointer(&x[0]), C: unsafe.Pointer(&c[0]), Acc: unsafe.Pointer(&acc[0]), LdX: int64(ldx) * size,
				LdC: int64(ldc) * size, LdAcc: int64(d.Lanes) * size, K: int64(k), Tail: int64(tail), Flags: int64(flags)}}
			for j := range d.Lanes {
				column := min(j, tail-1)
				f.Columns[j] = unsafe.Pointer(&y[column*k])
				for i := range rows {
					var s T
					if flags&native.TileOpen == 0 {
						s = acc[i*d.Lanes+j]
					}
					for p := range k {
						s = chain(x[i*ldx+p], y[column*k+p], s)
					}
					switch {
					case flags&native.TileClose == 0:
						wantAcc[i*d.Lanes+j] = s
					case j >= tail:
					case flags&native.TileFirst != 0:
						want[i*ldc+j] = 0 + s
					default:
						want[i*ldc+j] += s
					}
				}
			}
			d.call(d.Along(rows), unsafe.Pointer(f))
			for i := range c {
				if !sameNumber(c[i], want[i]) {
					t.Fatalf("%d rows, k %d, tail %d, flags %d: result %d is %v, not %v", rows, k, tail, flags, i, c[i], want[i])
				}
			}
			for i := range acc {
				if !sameNumber(acc[i], wantAcc[i]) {
					t.Fatalf("%d rows, k %d, flags %d: chain %d is %v, not %v", rows, k, flags, i, acc[i], wantAcc[i])
				}
			}
		}
	}
}

// TestDots compares chains of neighbours by neighbours with the definition.
func TestDots(t *testing.T) {
	eachDot(t, dotsTest[float32], dotsTest[float64], dotsTest[uint32], dotsTest[uint64])
}

func dotsTest[T number](t *testing.T, d *mappedDot) {
	if d.Dots < 0 {
		return
	}
	rng := rand.New(rand.NewPCG(9, 10))
	for range 30 {
		k := 16 / d.Size * (1 + rng.IntN(9))
		x, y := someNumbers[T](rng, d.Lanes*k+3), someNumbers[T](rng, d.Lanes*k+3)
		to, want := make([]T, d.Lanes+1), make([]T, d.Lanes+1)
		f := &native.DotsFrame{To: unsafe.Pointer(&to[0]), K: int64(k)}
		for l := range d.Lanes {
			i, j := rng.IntN(len(x)-k), rng.IntN(len(y)-k)
			f.X[l], f.Y[l] = unsafe.Pointer(&x[i]), unsafe.Pointer(&y[j])
			for p := range k {
				want[l] = chain(x[i+p], y[j+p], want[l])
			}
		}
		d.call(d.Dots, unsafe.Pointer(f))
		for l := range to {
			if !sameNumber(to[l], want[l]) {
				t.Fatalf("k %d: lane %d is %v, not %v", k, l, to[l], want[l])
			}
		}
	}
}

// TestScan searches for elements that are not zero, and for elements that are not small.
func TestScan(t *testing.T) {
	eachDot(t, scanTest[float32], scanTest[float64], scanTest[uint32], scanTest[uint64])
}

func scanTest[T number](t *testing.T, d *mappedDot) {
	rng := rand.New(rand.NewPCG(7, 8))
	size := int64(d.Size)
	top := uint64(1) << (8*d.Size - 1)
	for range 200 {
		rows, vectors := 1+rng.IntN(4), rng.IntN(6)
		ld := vectors*d.Lanes + 1 + rng.IntN(5)
		x := make([]T, rows*ld+1)
		from, to := vectors, vectors
		for range rng.IntN(3) {
			if at := rng.IntN(rows * ld); at%ld/d.Lanes < vectors {
				x[at] = T(1 + rng.IntN(9))
				if v := at % ld / d.Lanes; from == vectors {
					from, to = v, v+1
				} else {
					from, to = min(from, v), max(to, v+1)
				}
			}
		}
		f := &native.DiffersFrame{X: unsafe.Pointer(&x[0]), Ld: int64(ld) * size, Rows: int64(rows), Vectors: int64(vectors), Bits: math.MaxUint64}
		d.call(d.Differs, unsafe.Pointer(f))
		if f.From != int64(from) || f.To != int64(to) {
			t.Fatalf("%d rows of %d vectors: from %d to %d, want %d to %d", rows, vectors, f.From, f.To, from, to)
		}
		if vectors == 0 {
			continue
		}
		b := &native.BeyondFrame{X: f.X, Ld: f.Ld, Rows: f.Rows, Vectors: f.Vectors, Bits: top - 1, Limit: bitsOf(T(4))}
		beyond := false
		for i, v := range x {
			beyond = beyond || v > 4 && i%ld/d.Lanes < vectors
		}
		d.call(d.Beyond, unsafe.Pointer(b))
		if (b.Beyond != 0) != beyond {
			t.Fatalf("%d rows of %d vectors: beyond the limit %d, want %t", rows, vectors, b.Beyond, beyond)
		}
	}
}

func bitsOf[T number](x T) uint64 {
	switch x := any(x).(type) {
	case float32:
		return uint64(math.Float32bits(x))
	case float64:
		return math.Float64bits(x)
	}
	return uint64(x)
}
