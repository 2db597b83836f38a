package contract

import (
	"math"
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// The size of a tile of the Go contraction: small enough to stay in cache with its blocks of x and
// y.
const (
	goTileRows = 32
	goTileCols = 128
	blockK     = 256 // products in a chain, see Contraction
)

// goThreadMuls is the number of multiplications that justifies another goroutine.
const goThreadMuls = 32 << 10

// softLoops flush denormals.
var softLoops = map[ir.DType]func(e *Engine, c *Contraction){
	ir.Float32: loopsOf(softChain32, softSum(ir.FlushAdd32)),
	ir.Float64: loopsOf(softChain64, softSum(ir.FlushAdd64)),
}

// loops has the loops of each dtype. Integers wrap, so their signs do not matter.
var loops = func() (of [ir.NumDTypes]func(e *Engine, c *Contraction)) {
	of[ir.Float32] = loopsOf(chain32, sum[float32])
	of[ir.Float64] = loopsOf(chain64, sum[float64])
	bySize := [...]func(e *Engine, c *Contraction){
		1: loopsOf(chainInt[uint8], sum[uint8]),
		2: loopsOf(chainInt[uint16], sum[uint16]),
		4: loopsOf(chainInt[uint32], sum[uint32]),
		8: loopsOf(chainInt[uint64], sum[uint64]),
	}
	for dt := range ir.NumDTypes {
		if dt.IsInt() {
			of[dt] = bySize[dt.Size()]
		}
	}
	return of
}()

// The chain functions add a*y[j] to c[j]; y is at least as long as c.

func chain32(c, y []float32, a float32) {
	y = y[:len(c)]
	wide := float64(a)
	for j, v := range c {
		// The product is exact. The float64 sum is right after rounding to float32, except where
		// it was itself rounded to the middle of two float32 numbers.
		s := float64(float64(wide*float64(y[j])) + float64(v))
		if ir.RoundedTwice(s) {
			c[j] = ir.FMA32(a, y[j], v)
		} else {
			c[j] = float32(s)
		}
	}
}

func chain64(c, y []float64, a float64) {
	y = y[:len(c)]
	for j, v := range c {
		c[j] = math.FMA(a, y[j], v)
	}
}

// softChain32 is chain32 with flushed denormals. A sum as small as a denormal becomes 0, whatever
// its last digits are.
func softChain32(c, y []float32, a float32) {
	y = y[:len(c)]
	wide := float64(ir.Flush32(a))
	for j, v := range c {
		s := float64(float64(wide*float64(ir.Flush32(y[j]))) + float64(v))
		switch {
		case -0x1p-127 < s && s < 0x1p-127:
			c[j] = float32(math.Copysign(0, s))
		case ir.RoundedTwice(s):
			c[j] = ir.FlushFMA32(a, y[j], v)
		default:
			c[j] = float32(s)
		}
	}
}

func softChain64(c, y []float64, a float64) {
	y, a = y[:len(c)], ir.Flush64(a)
	for j, v := range c {
		s := math.FMA(a, ir.Flush64(y[j]), v)
		if math.Abs(s) <= 0x1p-1022 && s != 0 {
			s = ir.FlushFMA64(a, y[j], v)
		}
		c[j] = s
	}
}

// sum adds the results of a block to the totals.
func sum[T element](total, block []T) {
	for j, v := range block {
		total[j] += v
	}
}

func softSum[T element](add func(x, y T) T) func(total, block []T) {
	return func(total, block []T) {
		for j, v := range block {
			total[j] = add(total[j], v)
		}
	}
}

func chainInt[T uint8 | uint16 | uint32 | uint64](c, y []T, a T) {
	y = y[:len(c)]
	for j := range c {
		c[j] += a * y[j]
	}
}

type element interface {
	float32 | float64 | uint8 | uint16 | uint32 | uint64
}

// goTile is the memory of one share of work.
type goTile[T element] struct {
	x     [goTileRows * blockK]T
	y     [blockK * goTileCols]T
	stage [blockK * goTileCols]T
	total [goTileRows * goTileCols]T
	block [goTileCols]T
}

func loopsOf[T element](chain func(c, y []T, a T), sum func(total, block []T)) func(*Engine, *Contraction) {
	free := sync.Pool{New: func() any { return new(goTile[T]) }}
	return func(e *Engine, c *Contraction) {
		rows, cols := (c.M+goTileRows-1)/goTileRows, (c.N+goTileCols-1)/goTileCols
		units := c.batches() * rows * cols
		muls := float64(float64(c.batches()) * float64(c.M) * float64(c.N) * float64(c.K))
		threads := e.pool.Threads()
		if c.Threads > 0 {
			threads = min(threads, c.Threads)
		}
		threads = int(min(muls/goThreadMuls+1, float64(threads)))
		grain := max(units/int64(8*threads), 1)
		if threads == 1 {
			grain = max(units, 1)
		}
		e.split(threads, units, grain, func(begin, end int64) {
			t := free.Get().(*goTile[T])
			for u := begin; u < end; u++ {
				t.run(c, chain, sum, u/(rows*cols), u/cols%rows*goTileRows, u%cols*goTileCols)
			}
			free.Put(t)
		})
	}
}

// run computes the tile whose first output is (row, col).
func (t *goTile[T]) run(c *Contraction, chain func(c, y []T, a T), sum func(total, block []T), batch, row, col int64) {
	rows, cols := min(c.M-row, goTileRows), min(c.N-col, goTileCols)
	clear(t.total[:])
	for p := int64(0); p < c.K; p += blockK {
		k := min(c.K-p, blockK)
		// Rows of x are stored along k, rows of y along columns.
		sideTo(c, &c.X, AlongK, batch, row, rows, p, k, t.x[:], blockK, t.stage[:])
		sideTo(c, &c.Y, AlongI, batch, col, cols, p, k, t.y[:], cols, t.stage[:])
		for i := range rows {
			block := t.block[:cols]
			clear(block)
			for q := range k {
				chain(block, t.y[q*cols:], t.x[i*blockK+q])
			}
			sum(t.total[i*goTileCols:i*goTileCols+cols], block)
		}
	}
	if c.drains() {
		c.drain(batch, row, rows, col, cols, unsafe.Pointer(&t.total[0]), goTileCols)
		return
	}
	size := int64(unsafe.Sizeof(t.x[0]))
	at := c.offset(c.Out.Batch, batch) + row*c.Out.Row + col
	for i := range rows {
		copy(unsafe.Slice((*T)(unsafe.Add(c.Out.Base, (at+i*c.Out.Row)*size)), cols), t.total[i*goTileCols:])
	}
}

// sideTo writes elements [i, i+n) by [p, p+k) of a side in the wanted direction. Rows of dst are
// ld elements apart.
func sideTo[T element](c *Contraction, s *Side, want Kind, batch, i, n, p, k int64, dst []T, ld int64, stage []T) {
	size := int64(unsafe.Sizeof(dst[0]))
	if s.Kind == want {
		c.fill(s, batch, i, i+n, p, p+k, unsafe.Pointer(&dst[0]), ld)
		return
	}
	src, is, ps := unsafe.Pointer(&stage[0]), k, int64(1)
	switch s.Kind {
	case Memory:
		is, ps = s.Stride, s.KStride
		src = unsafe.Add(s.Base, (c.offset(s.Batch, batch)+i*is+p*ps)*size)
	case AlongI:
		is, ps = 1, n
		c.fill(s, batch, i, i+n, p, p+k, src, n)
	case AlongK:
		c.fill(s, batch, i, i+n, p, p+k, src, k)
	}
	outer, inner, os, ns := n, k, is, ps
	if want == AlongI {
		outer, inner, os, ns = k, n, ps, is
	}
	for a := range outer {
		to := dst[a*ld : a*ld+inner]
		if ns == 1 {
			copy(to, unsafe.Slice((*T)(unsafe.Add(src, a*os*size)), inner))
			continue
		}
		for b := range to {
			to[b] = *(*T)(unsafe.Add(src, (a*os+int64(b)*ns)*size))
		}
	}
}
