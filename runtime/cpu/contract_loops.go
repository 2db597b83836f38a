package cpu

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
	contractK  = 256 // products in a chain, see contraction
)

// goThreadMuls is the number of multiplications that justifies another goroutine.
const goThreadMuls = 32 << 10

// contract runs a contraction, by machine code or C if possible.
func (e *executor) contract(c *contraction) {
	if e.contractNative(c) {
		return
	}
	c.tape.lose()
	run := goContractions[c.dt]
	if soft := softContractions[c.dt]; c.soft && soft != nil {
		run = soft
	}
	run(e, c)
}

// softContractions flush denormals.
var softContractions = map[ir.DType]func(e *executor, c *contraction){
	ir.Float32: contractGo(softChain32, softSum(ir.FlushAdd32)),
	ir.Float64: contractGo(softChain64, softSum(ir.FlushAdd64)),
}

var goContractions = map[ir.DType]func(e *executor, c *contraction){
	ir.Float32: contractGo(chain32, sum[float32]),
	ir.Float64: contractGo(chain64, sum[float64]),
	ir.Int32:   contractGo(chainInt[uint32], sum[uint32]),
	ir.Uint32:  contractGo(chainInt[uint32], sum[uint32]),
	ir.Int64:   contractGo(chainInt[uint64], sum[uint64]),
	ir.Uint64:  contractGo(chainInt[uint64], sum[uint64]),
	ir.Int16:   contractGo(chainInt[uint16], sum[uint16]),
	ir.Uint16:  contractGo(chainInt[uint16], sum[uint16]),
	ir.Int8:    contractGo(chainInt[uint8], sum[uint8]),
	ir.Uint8:   contractGo(chainInt[uint8], sum[uint8]),
}

// The chain functions add a*y[j] to c[j]; y is at least as long as c.

func chain32(c, y []float32, a float32) {
	y = y[:len(c)]
	wide := float64(a)
	for j, v := range c {
		// The product is exact. The float64 sum is right after rounding to float32, except where
		// it was itself rounded to the middle of two float32 numbers.
		s := float64(float64(wide*float64(y[j])) + float64(v))
		if twice(s) {
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
		case twice(s):
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
func sum[T contractElement](total, block []T) {
	for j, v := range block {
		total[j] += v
	}
}

func softSum[T contractElement](add func(x, y T) T) func(total, block []T) {
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

type contractElement interface {
	float32 | float64 | uint8 | uint16 | uint32 | uint64
}

// goTile is the memory of one share of work.
type goTile[T contractElement] struct {
	x     [goTileRows * contractK]T
	y     [contractK * goTileCols]T
	stage [contractK * goTileCols]T
	total [goTileRows * goTileCols]T
	block [goTileCols]T
}

func contractGo[T contractElement](chain func(c, y []T, a T), sum func(total, block []T)) func(*executor, *contraction) {
	free := sync.Pool{New: func() any { return new(goTile[T]) }}
	return func(e *executor, c *contraction) {
		rows, cols := (c.m+goTileRows-1)/goTileRows, (c.n+goTileCols-1)/goTileCols
		units := c.batches() * rows * cols
		muls := float64(float64(c.batches()) * float64(c.m) * float64(c.n) * float64(c.k))
		threads := e.threads
		if c.threads > 0 {
			threads = min(threads, c.threads)
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
func (t *goTile[T]) run(c *contraction, chain func(c, y []T, a T), sum func(total, block []T), batch, row, col int64) {
	rows, cols := min(c.m-row, goTileRows), min(c.n-col, goTileCols)
	clear(t.total[:])
	for p := int64(0); p < c.k; p += contractK {
		k := min(c.k-p, contractK)
		// Rows of x are stored along k, rows of y along columns.
		sideTo(c, &c.x, sideFillK, batch, row, rows, p, k, t.x[:], contractK, t.stage[:])
		sideTo(c, &c.y, sideFillI, batch, col, cols, p, k, t.y[:], cols, t.stage[:])
		for i := range rows {
			block := t.block[:cols]
			clear(block)
			for q := range k {
				chain(block, t.y[q*cols:], t.x[i*contractK+q])
			}
			sum(t.total[i*goTileCols:i*goTileCols+cols], block)
		}
	}
	if c.drain != nil {
		c.drain(batch, row, rows, col, cols, unsafe.Pointer(&t.total[0]), goTileCols)
		return
	}
	size := int64(unsafe.Sizeof(t.x[0]))
	at := c.offset(c.outBatch, batch) + row*c.outRow + col
	for i := range rows {
		copy(unsafe.Slice((*T)(unsafe.Add(c.out, (at+i*c.outRow)*size)), cols), t.total[i*goTileCols:])
	}
}

// sideTo writes elements [i, i+n) by [p, p+k) of a side in the wanted direction. Rows of dst are
// ld elements apart.
func sideTo[T contractElement](c *contraction, s *side, want int, batch, i, n, p, k int64, dst []T, ld int64, stage []T) {
	size := int64(unsafe.Sizeof(dst[0]))
	if s.kind == want {
		s.fill(batch, i, i+n, p, p+k, unsafe.Pointer(&dst[0]), ld)
		return
	}
	src, is, ps := unsafe.Pointer(&stage[0]), k, int64(1)
	switch s.kind {
	case sideMem:
		is, ps = s.stride, s.kstride
		src = unsafe.Add(s.base, (c.offset(s.batch, batch)+i*is+p*ps)*size)
	case sideFillI:
		is, ps = 1, n
		s.fill(batch, i, i+n, p, p+k, src, n)
	case sideFillK:
		s.fill(batch, i, i+n, p, p+k, src, k)
	}
	outer, inner, os, ns := n, k, is, ps
	if want == sideFillI {
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
