package contract

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/ccode"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/threads"
)

// contractor runs contractions: Go's own loops, machine code for each level, and C.
type contractor interface {
	// contract runs c. Sides of other kinds than Memory are written by functions or walks, and so
	// are the results if drain is set.
	contract(c *Contraction, xkind, ykind Kind, drain bool) error
}

func contractors(n int) map[string]contractor {
	all := map[string]contractor{}
	add := func(name string, s Source) {
		all[name] = goContractor{NewEngine(threads.NewPool(n), memory.New(0), s)}
	}
	for level := machine.None; level <= machine.Level(); level++ {
		if !machine.Level().Has(level) {
			continue // for other processors
		}
		add(strings.TrimSuffix("go "+level.String(), " none"), Source{Level: level})
	}
	if ccode.Supported {
		add("c", Source{C: true})
	}
	return all
}

type goContractor struct{ e *Engine }

func (g goContractor) contract(c *Contraction, xkind, ykind Kind, drain bool) error {
	if xkind == Memory && ykind == Memory && !drain {
		g.e.Run(c) // benchmarks time this path
		return nil
	}
	mine := *c
	size := int64(c.DT.Size())
	var beyond atomic.Bool
	inBatches := func(batch int64) {
		if batch < 0 || batch >= c.batches() {
			beyond.Store(true)
		}
	}
	move := func(dst, src unsafe.Pointer) {
		copy(unsafe.Slice((*byte)(dst), size), unsafe.Slice((*byte)(src), size))
	}
	walks := (c.M+c.N+c.K)%2 == 0
	through := func(s Side, kind Kind, n int64) Side {
		if kind == Memory {
			return s
		}
		if walks {
			own, along := dimOf(n, s.Stride), dimOf(c.K, s.KStride)
			if kind == AlongI {
				own, along = along, own
			}
			return Side{Kind: kind, Walk: &Walk{Base: s.Base, Batch: s.Batch, Outer: own, Inner: along}}
		}
		return Side{Kind: kind, Fill: func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64) {
			inBatches(batch)
			at := c.offset(s.Batch, batch)
			for i := i0; i < i1; i++ {
				for p := p0; p < p1; p++ {
					to := (i-i0)*ld + p - p0
					if kind == AlongI {
						to = (p-p0)*ld + i - i0
					}
					move(unsafe.Add(dst, to*size), unsafe.Add(s.Base, (at+i*s.Stride+p*s.KStride)*size))
				}
			}
		}}
	}
	mine.X, mine.Y = through(c.X, xkind, c.M), through(c.Y, ykind, c.N)
	switch {
	case drain && walks:
		mine.Out = Results{Walk: &Walk{Base: c.Out.Base, Batch: c.Out.Batch, Outer: dimOf(c.M, c.Out.Row), Inner: dimOf(c.N, 1)}}
	case drain:
		mine.Out.Drain = func(batch, row0, rows, col0, cols int64, tile unsafe.Pointer, ld int64) {
			inBatches(batch)
			at := c.offset(c.Out.Batch, batch)
			for i := range rows {
				for j := range cols {
					move(unsafe.Add(c.Out.Base, (at+(row0+i)*c.Out.Row+col0+j)*size), unsafe.Add(tile, (i*ld+j)*size))
				}
			}
		}
	}
	g.e.Run(&mine)
	if beyond.Load() {
		return errors.New("a batch that there is not")
	}
	return nil
}

// dimOf returns a walk along n elements, as two dims if n is even.
func dimOf(n, stride int64) Dims {
	var d Dims
	if d.Rank, d.Size[0], d.Stride[0] = 1, n, stride; n%2 == 0 {
		d.Rank, d.Size[0], d.Size[1], d.Stride[0], d.Stride[1] = 2, n/2, 2, 2*stride, stride
	}
	return d
}

// naiveContract computes the rule of docs/numerics/order.md, one output at a time.
func naiveContract(c *Contraction, x, y, out []byte) {
	size := c.DT.Size()
	xs, ys := wholeOf(x, size), wholeOf(y, size)
	for b := range c.batches() {
		for i := range c.M {
			for j := range c.N {
				at := c.offset(c.X.Batch, b) + i*c.X.Stride
				bt := c.offset(c.Y.Batch, b) + j*c.Y.Stride
				total, block := uint64(0), uint64(0)
				for p := range c.K {
					u, v := xs[at+p*c.X.KStride], ys[bt+p*c.Y.KStride]
					switch c.DT {
					case ir.Float32:
						f := math.Float32frombits
						block = uint64(math.Float32bits(ir.FMA32(f(uint32(u)), f(uint32(v)), f(uint32(block)))))
					case ir.Float64:
						f := math.Float64frombits
						block = math.Float64bits(math.FMA(f(u), f(v), f(block)))
					default:
						block += u * v
					}
					if (p+1)%256 != 0 && p+1 != c.K {
						continue
					}
					switch c.DT {
					case ir.Float32:
						f := math.Float32frombits
						total = uint64(math.Float32bits(f(uint32(total)) + f(uint32(block))))
					case ir.Float64:
						f := math.Float64frombits
						total = math.Float64bits(f(total) + f(block))
					default:
						total += block
					}
					block = 0
				}
				putElement(out, c.offset(c.Out.Batch, b)+i*c.Out.Row+j, size, total)
			}
		}
	}
}

// wholeOf returns elementAt of every element.
func wholeOf(b []byte, size int) []uint64 {
	all := make([]uint64, len(b)/size)
	for i := range all {
		all[i] = elementAt(b, int64(i), size)
	}
	return all
}

func elementAt(b []byte, i int64, size int) uint64 {
	var w [8]byte
	copy(w[:], b[i*int64(size):][:size])
	return binary.LittleEndian.Uint64(w[:])
}

func putElement(b []byte, i int64, size int, v uint64) {
	var w [8]byte
	binary.LittleEndian.PutUint64(w[:], v)
	copy(b[i*int64(size):][:size], w[:])
}

// contractValues returns numbers mostly of one magnitude, so that sums round, and among them
// numbers of any magnitude, denormals and zeros; with wild also NaN and infinities.
func contractValues(rng *rand.Rand, dt ir.DType, n int64, wild bool) []byte {
	b := make([]byte, (n+1)*int64(dt.Size()))
	for i := range n {
		v := rng.Uint64()
		f := rng.NormFloat64()
		switch rng.IntN(16) {
		case 0:
			f = 0
		case 1:
			f = math.Copysign(0, -1)
		case 2:
			f = math.Ldexp(f, rng.IntN(40)-20)
		case 3:
			if wild {
				f = math.Ldexp(f, rng.IntN(300)-150)
			}
		case 4:
			if wild && rng.IntN(20) == 0 {
				f = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[rng.IntN(3)]
			}
		}
		switch dt {
		case ir.Float32:
			v = uint64(math.Float32bits(float32(f)))
		case ir.Float64:
			v = math.Float64bits(f)
		}
		putElement(b, i, dt.Size(), v)
	}
	return b
}

var contractSizes = []int64{0, 1, 2, 3, 5, 13, 16, 17, 31, 32, 33, 63, 64, 65, 127, 255, 256, 257, 258, 512, 513}

var contractDTypes = []ir.DType{ir.Float32, ir.Float64, ir.Int8, ir.Uint8, ir.Int16, ir.Uint16, ir.Int32, ir.Uint32, ir.Int64, ir.Uint64}

// contractLayout sets a side's strides: dense along k, along the other dim, or along neither.
func contractLayout(s *Side, how int, n, k int64) int64 {
	switch how {
	case 0:
		s.Stride, s.KStride = k+3, 1
		return n * (k + 3)
	case 1:
		s.Stride, s.KStride = 1, n+1
		return k * (n + 1)
	}
	s.Stride, s.KStride = 2*k+1, 2
	return n * (2*k + 1)
}

// checkContraction runs one contraction on all contractors and compares every byte of the output,
// including gaps between rows.
func checkContraction(t *testing.T, all map[string]contractor, rng *rand.Rand, dt ir.DType, m, n, k int64) {
	t.Helper()
	checkContractionOf(t, all, rng, dt, m, n, k, func(*Contraction, []byte, []byte) {})
}

// checkContractionOf does the same with operands changed by edit.
func checkContractionOf(t *testing.T, all map[string]contractor, rng *rand.Rand, dt ir.DType, m, n, k int64, edit func(c *Contraction, x, y []byte)) {
	t.Helper()
	c := &Contraction{M: m, N: n, K: k, DT: dt, Threads: rng.IntN(5)}
	for range rng.IntN(3) {
		c.Dims = append(c.Dims, int64(1+rng.IntN(3)))
	}
	layX, layY := rng.IntN(3), rng.IntN(3)
	xs, ys := contractLayout(&c.X, layX, m, k), contractLayout(&c.Y, layY, n, k)
	c.Out.Row = n + int64(rng.IntN(3))
	os := m * c.Out.Row
	nx, ny, no := xs, ys, os
	for _, d := range c.Dims {
		// one batch after the other, or one for all
		bx, by := nx*int64(rng.IntN(2)), ny*int64(rng.IntN(2))
		c.X.Batch, c.Y.Batch, c.Out.Batch = append(c.X.Batch, bx), append(c.Y.Batch, by), append(c.Out.Batch, no)
		nx, ny, no = nx*d, ny*d, no*d
	}
	wild := rng.IntN(3) == 0
	x, y := contractValues(rng, dt, nx, wild), contractValues(rng, dt, ny, wild)
	edit(c, x, y)
	blank := make([]byte, (no+1)*int64(dt.Size()))
	for i := range blank {
		blank[i] = 0xa5
	}
	want := append([]byte(nil), blank...)
	naiveContract(c, x, y, want)
	c.X.Base, c.Y.Base = unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0])
	xkind, ykind, drain := Kind(max(rng.IntN(5)-2, 0)), Kind(max(rng.IntN(5)-2, 0)), rng.IntN(2) == 0
	for name, run := range all {
		got := append([]byte(nil), blank...)
		c.Out.Base = unsafe.Pointer(&got[0])
		what := func() string {
			return fmt.Sprintf("%s: %v m %d n %d k %d batch %v threads %d, x laid out %d read %d, y %d %d, drain %v, wild %v", name, dt, m, n, k, c.Dims, c.Threads, layX, xkind, layY, ykind, drain, wild)
		}
		if err := run.contract(c, xkind, ykind, drain); err != nil {
			t.Fatalf("%s: %v", what(), err)
		}
		for i := range no + 1 {
			u, v := elementAt(got, i, dt.Size()), elementAt(want, i, dt.Size())
			if !kernels.SameBits(dt, u, v) {
				t.Fatalf("%s: element %d is %#x, not %#x", what(), i, u, v)
			}
		}
	}
}

// TestContract compares every level with the rule, bit for bit, at sizes around the limits of
// vectors, tiles and blocks.
func TestContract(t *testing.T) {
	all := contractors(4)
	for _, dt := range contractDTypes {
		t.Run(dt.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(11, uint64(dt)))
			few := []int64{1, 3, 5, 17, 33}
			pick := func() int64 { return few[rng.IntN(len(few))] }
			for _, s := range contractSizes {
				if testing.Short() && dt != ir.Float32 && s%2 == 0 {
					continue
				}
				checkContraction(t, all, rng, dt, s, pick(), pick())
				checkContraction(t, all, rng, dt, pick(), s, pick())
				checkContraction(t, all, rng, dt, pick(), pick(), s)
				checkContraction(t, all, rng, dt, s, 1, s)
				checkContraction(t, all, rng, dt, 1, s, s)
			}
		})
	}
}

// TestContractNarrow has few rows and columns, around the size of a vector, and one or several
// blocks of k.
func TestContractNarrow(t *testing.T) {
	all := contractors(2)
	rng := rand.New(rand.NewPCG(13, 1))
	for _, dt := range []ir.DType{ir.Float32, ir.Float64, ir.Int8} {
		for _, m := range []int64{1, 2, 3, 7, 9} {
			for _, n := range []int64{1, 2, 4, 5, 7, 15, 16, 33, 47} {
				for _, k := range []int64{1, 15, 16, 30, 256, 300, 600} {
					if !testing.Short() || dt == ir.Float32 || (m+n+k)%4 == 0 {
						checkContraction(t, all, rng, dt, m, n, k)
					}
				}
			}
		}
	}
}

// TestContractLarge has enough rows, columns and blocks for every way to share the work: panels
// packed for all threads, strips kept, tiles of one thread.
func TestContractLarge(t *testing.T) {
	t.Parallel()
	all := contractors(4)
	rng := rand.New(rand.NewPCG(12, 1))
	shapes := [][3]int64{{700, 70, 40}, {40, 1100, 30}, {60, 40, 1030}, {300, 150, 258}, {14, 700, 300}, {16, 600, 513}, {520, 8, 520}, {257, 130, 64}}
	if testing.Short() {
		shapes = shapes[:3]
	}
	for _, s := range shapes {
		for _, dt := range []ir.DType{ir.Float32, ir.Float64, ir.Uint16} {
			for range 3 {
				checkContraction(t, all, rng, dt, s[0], s[1], s[2])
			}
		}
	}
}

// TestContractZeros has rows of x that begin and end with zeros of either sign, and whole rows of
// them. Chains may skip such zeros only if y has no infinity and no NaN there, because 0 times
// these is NaN.
func TestContractZeros(t *testing.T) {
	all := contractors(3)
	rng := rand.New(rand.NewPCG(14, 1))
	shapes := [][3]int64{{40, 70, 600}, {3, 40, 300}, {90, 33, 257}, {30, 200, 64}, {200, 64, 300}, {64, 5, 512}}
	if testing.Short() {
		shapes = shapes[:2]
	}
	for _, s := range shapes {
		for _, dt := range []ir.DType{ir.Float32, ir.Float64, ir.Int8, ir.Uint32} {
			for round := range 4 {
				edges := func(i int64) (from, to int64) {
					switch round {
					case 0: // as under a causal mask
						return 0, min(i*s[2]/s[0]+1, s[2])
					case 1: // a band
						return max(i*s[2]/s[0]-40, 0), min(i*s[2]/s[0]+40, s[2])
					case 2: // as under padding
						return 0, s[2] / 2
					}
					return s[2] / 3, s[2] / 3
				}
				checkContractionOf(t, all, rng, dt, s[0], s[1], s[2], func(c *Contraction, x, y []byte) {
					for b := range c.batches() {
						for i := range c.M {
							from, to := edges(i)
							for p := range c.K {
								if from <= p && p < to {
									continue
								}
								zero := uint64(0)
								if (dt == ir.Float32 || dt == ir.Float64) && rng.IntN(2) == 0 {
									zero = 1 << (8*dt.Size() - 1)
								}
								putElement(x, c.offset(c.X.Batch, b)+i*c.X.Stride+p*c.X.KStride, dt.Size(), zero)
							}
						}
					}
					if at := rng.IntN(3 * len(y)); dt == ir.Float32 && at+8 < len(y) { // one is enough
						putElement(y, int64(at/4), 4, uint64(math.Float32bits(float32(math.Inf(1)))))
					}
				})
			}
		}
	}
}

// TestContractDenormal ends chains at -0 by underflow, and rounds halfway between two numbers and
// between two denormals: a level without fma differs there first.
func TestContractDenormal(t *testing.T) {
	all := contractors(2)
	pairs := [][2]float32{
		{0x1p-100, -0x1p-100}, {1 + 0x1p-12, 1 + 0x1p-12}, {0x1p-60, 0x1p-60}, {0x1.8p-75, 0x1p-75}, {0x1.000002p-75, 0x1.000002p-75},
		{0x1.fffffep127, 2}, {0x1p-126, 0.5}, {-0x1p-149, 0.5}, {1, -1}, {0x1.000002p0, 0x1.000002p0},
	}
	for range 2 {
		rng := rand.New(rand.NewPCG(13, 7))
		for _, k := range []int64{1, 2, 3, 260} {
			m, n := int64(7), int64(37)
			c := &Contraction{M: m, N: n, K: k, DT: ir.Float32, Out: Results{Row: n}, X: Side{Stride: k, KStride: 1}, Y: Side{Stride: k, KStride: 1}}
			x, y := make([]byte, m*k*4), make([]byte, n*k*4)
			for p := range k {
				q := pairs[rng.IntN(len(pairs))]
				for i := range m {
					putElement(x, i*k+p, 4, uint64(math.Float32bits(q[0])))
				}
				for j := range n {
					q := pairs[(rng.IntN(2)*int(j)+int(p))%len(pairs)]
					putElement(y, j*k+p, 4, uint64(math.Float32bits(q[1])))
				}
			}
			want, got := make([]byte, m*n*4), make([]byte, m*n*4)
			naiveContract(c, x, y, want)
			c.X.Base, c.Y.Base, c.Out.Base = unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0]), unsafe.Pointer(&got[0])
			for name, run := range all {
				if err := run.contract(c, Memory, Memory, false); err != nil {
					t.Fatal(err)
				}
				for i := range m * n {
					if u, v := elementAt(got, i, 4), elementAt(want, i, 4); !kernels.SameBits(ir.Float32, u, v) {
						t.Fatalf("%s: k %d, element %d is %#x, not %#x", name, k, i, u, v)
					}
				}
			}
		}
	}
}
