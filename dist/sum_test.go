package dist

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/half"
	"github.com/millrace-go/millrace/ir"
)

// TestSums: each dtype of tensors has a sum, but for bool.
func TestSums(t *testing.T) {
	for dt := range ir.NumDTypes {
		if dt.Tensor() && (sums[dt] != nil) == (dt == millrace.Bool) {
			t.Errorf("%v: there is a sum: %v", dt, sums[dt] != nil)
		}
	}
}

// TestRoundedOnce: 1 + u + u, with u half of the last bit of 1, is rounded once.
func TestRoundedOnce(t *testing.T) {
	one, u := millrace.NewBF16(1), millrace.NewBF16(1.0/256)
	parts := make([][]byte, 3)
	for r, x := range []millrace.BF16{u, u, one} {
		parts[r] = aligned(2)
		as[millrace.BF16](parts[r])[0] = x
	}
	dst := aligned(2)
	if err := (summing{dt: millrace.BFloat16}).add(dst, parts); err != nil {
		t.Fatal(err)
	}
	if got := as[millrace.BF16](dst)[0].Float32(); got != 1+1.0/128 {
		t.Errorf("the sum is %v", got)
	}
}

// TestRoundedEach: a step's sum of bfloat16 has the bits of additions that are rounded each, so parts
// of it may be added before.
func TestRoundedEach(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 4, 5, 8} {
		parts, want := make([][]byte, n), make([][]millrace.BF16, n)
		for i := range parts {
			parts[i] = aligned(2 * 3000)
			for k := range as[millrace.BF16](parts[i]) {
				as[millrace.BF16](parts[i])[k] = millrace.NewBF16(float32(r.NormFloat64() * math.Pow(4, float64(i))))
			}
			want[i] = slices.Clone(as[millrace.BF16](parts[i]))
		}
		for len(want) > 1 {
			var next [][]millrace.BF16
			for i := 0; i < len(want); i += 2 {
				next = append(next, want[i])
				if i+1 < len(want) {
					for k, x := range want[i+1] {
						want[i][k] = millrace.NewBF16(want[i][k].Float32() + x.Float32())
					}
				}
			}
			want = next
		}
		for how, add := range adders(t, stepSum(millrace.BFloat16)) {
			dst := aligned(2 * 3000)
			add(dst, parts)
			if !slices.Equal(as[millrace.BF16](dst), want[0]) {
				t.Errorf("%s, %d parts: other bits", how, n)
			}
		}
	}
}

// plainSum is the sum of elements one by one: it says which bits a sum has.
func plainSum[T number](parts []T) T {
	for len(parts) > 1 {
		var next []T
		for i := 0; i+1 < len(parts); i += 2 {
			next = append(next, parts[i]+parts[i+1])
		}
		parts = append(next, parts[len(parts)/2*2:]...)
	}
	return parts[0]
}

// halfKinds has the conversions of single 16-bit floats.
var halfKinds = map[millrace.DType]struct {
	wide   func(uint16) float32
	narrow func(float32) uint16
}{
	millrace.Float16:  {half.WidenFloat16, half.NarrowFloat16},
	millrace.BFloat16: {half.WidenBFloat16, half.NarrowBFloat16},
}

// TestSumBits compares sums of 2 to 9 parts, by machine code and by loops of Go, with the plain sum,
// bit for bit but for those of NaN. They change no part, but the one that may be the result's memory.
func TestSumBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 20))
	for n := 2; n <= 9; n++ {
		for _, elems := range []int{0, 1, 7, sumBlock - 1, sumBlock + 5, 3*sumBlock + 1} {
			for _, inPlace := range []bool{false, true} {
				name := fmt.Sprintf("%d parts of %d, in place %v", n, elems, inPlace)
				sameSum(t, name, millrace.Float32, rng, n, elems, inPlace, func() uint32 { return math.Float32bits(rng.Float32() - 0.5) },
					func(p []uint32) uint32 {
						var f []float32
						for _, x := range p {
							f = append(f, math.Float32frombits(x))
						}
						return math.Float32bits(plainSum(f))
					})
				sameSum(t, name, millrace.Int64, rng, n, elems, inPlace, func() int64 { return int64(rng.Uint64()) }, plainSum[int64])
				sameSum(t, name, millrace.Uint16, rng, n, elems, inPlace, func() uint16 { return uint16(rng.Uint64()) }, plainSum[uint16])
				sameSum(t, name, millrace.Uint8, rng, n, elems, inPlace, func() uint8 { return uint8(rng.Uint64()) }, plainSum[uint8])
				sameSum(t, name, millrace.Int8, rng, n, elems, inPlace, func() int8 { return int8(rng.Uint32()) }, plainSum[int8])
				for dt, k := range halfKinds {
					sameSum(t, name, dt, rng, n, elems, inPlace, func() uint16 { return uint16(rng.Uint32()) }, func(p []uint16) uint16 {
						var f []float32
						for _, x := range p {
							f = append(f, k.wide(x))
						}
						return k.narrow(plainSum(f))
					})
				}
			}
		}
	}
}

func sameSum[T comparable](t *testing.T, name string, dt millrace.DType, rng *rand.Rand, n, elems int, inPlace bool, random func() T, plain func([]T) T) {
	t.Helper()
	given := make([][]byte, n)
	for r := range given {
		given[r] = aligned(elems * dt.Size())
		for k := range as[T](given[r]) {
			as[T](given[r])[k] = random()
		}
	}
	own := -1
	if inPlace {
		own = rng.IntN(n)
	}
	for how, add := range adders(t, summing{dt: dt}) {
		dst, parts := aligned(elems*dt.Size()), make([][]byte, n)
		for r := range parts {
			parts[r] = append(aligned(0), given[r]...)
			if r == own {
				dst = parts[r]
			}
		}
		add(dst, parts)
		for r := range parts {
			if r != own && !bytes.Equal(parts[r], given[r]) {
				t.Fatalf("%v, %s, %s: part %d was changed", dt, how, name, r)
			}
		}
		for k, got := range as[T](dst) {
			var column []T
			for r := range given {
				column = append(column, as[T](given[r])[k])
			}
			if want := plain(append([]T(nil), column...)); got != want && !bothNaN(dt, got, want) {
				t.Fatalf("%v, %s, %s: element %d of %v is %#v, want %#v", dt, how, name, k, column, got, want)
			}
		}
	}
}

// bothNaN reports that two 16-bit floats are NaN, whose bits are not specified.
func bothNaN[T comparable](dt millrace.DType, x, y T) bool {
	k, ok := halfKinds[dt]
	if !ok {
		return false
	}
	f, g := k.wide(any(x).(uint16)), k.wide(any(y).(uint16))
	return f != f && g != g
}

// adders are the ways to add parts.
func adders(t testing.TB, s summing) map[string]func(dst []byte, parts [][]byte) {
	all := map[string]func(dst []byte, parts [][]byte){"Go": s.loops()}
	c, err := s.code()
	if err != nil {
		t.Fatal(err)
	}
	if c != nil {
		all["machine code"] = c.add
	}
	return all
}

// TestHalfPairs compares the loops for 16-bit floats with conversions of single numbers: each number
// beside numbers of all exponents, infinities and NaN.
func TestHalfPairs(t *testing.T) {
	var others []uint16
	for e := range uint16(256) {
		others = append(others, e<<8, e<<8|0x7f, e<<8|0x80, e<<8|0xff)
	}
	all := aligned(2 << 16)
	for i := range as[uint16](all) {
		as[uint16](all)[i] = uint16(i)
	}
	stride := 1
	if testing.Short() {
		stride = 7
	}
	other, dst := aligned(len(all)), aligned(len(all))
	for dt, k := range halfKinds {
		for how, add := range adders(t, summing{dt: dt}) {
			for i := 0; i < len(others); i += stride {
				for k := range as[uint16](other) {
					as[uint16](other)[k] = others[i]
				}
				add(dst, [][]byte{all, other})
				y := k.wide(others[i])
				for x, got := range as[uint16](dst) {
					if want := k.narrow(k.wide(uint16(x)) + y); got != want && !bothNaN(dt, got, want) {
						t.Fatalf("%v, %s: %#x + %#x is %#x, want %#x", dt, how, x, others[i], got, want)
					}
				}
			}
		}
	}
}

func BenchmarkSum(b *testing.B) {
	const n = 1 << 20
	for _, dt := range []millrace.DType{millrace.Float32, millrace.BFloat16, millrace.Float16} {
		for _, ranks := range []int{2, 3} {
			for how, add := range adders(b, summing{dt: dt}) {
				b.Run(fmt.Sprintf("%v/%d/%s", dt, ranks, how), func(b *testing.B) {
					var parts [][]byte
					rng := rand.New(rand.NewPCG(1, 2))
					for range ranks {
						p := aligned(n)
						for k := range n / dt.Size() { // neither denormal nor large
							switch x := rng.Float32() + 1; dt {
							case millrace.Float32:
								as[float32](p)[k] = x
							default:
								as[uint16](p)[k] = halfKinds[dt].narrow(x)
							}
						}
						parts = append(parts, p)
					}
					dst := aligned(n)
					b.SetBytes(n)
					for b.Loop() {
						add(dst, parts)
					}
				})
			}
		}
	}
}
