package millrace

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"
)

// tables has the tables of earlier transforms, in the form of a tensor's elements, by their keys.
// If they take more than tableBytes, the oldest ones are dropped.
var tables struct {
	mu    sync.Mutex
	byKey map[string]numbers
	order []string
	bytes int
}

// tableBytes is enough for the tables of a line of about a million numbers whose length is a
// prime.
const tableBytes = 128 << 20

// maxTable is the largest dimension for which a table is made. A recorded tensor may have any
// size, because it takes no memory yet; a table takes memory at once.
const maxTable = 1 << 28

// numbers are the elements of a table, as Float32 or as Float64.
type numbers struct {
	narrow []float32
	wide   []float64
}

func (n numbers) bytes() int { return 4*len(n.narrow) + 8*len(n.wide) }

// table returns a constant with x's dtype, on x's stream.
func table(x *Tensor, name string, dims []int, value func(i int) float64) *Tensor {
	return kept(x, name, dims, func(list []float64) {
		for i := range list {
			list[i] = value(i)
		}
	})
}

// complexTable returns a table of complex numbers, with the parts along axis 1. Axis 1 is the
// first dimension that is not 1.
func complexTable(x *Tensor, name string, dims []int, value func(i int) complex128) *Tensor {
	return kept(x, name, dims, func(list []float64) {
		n := len(list) / 2
		for i := range n {
			w := value(i)
			list[i], list[n+i] = real(w), imag(w)
		}
	})
}

// kept returns a table that is filled once, and filled again only if it was dropped.
func kept(x *Tensor, name string, dims []int, fill func(list []float64)) *Tensor {
	key := fmt.Sprint(name, dims, x.DType())
	tables.mu.Lock()
	list, known := tables.byKey[key]
	tables.mu.Unlock()
	if !known {
		list.wide = make([]float64, product(dims))
		fill(list.wide)
		if x.DType() != Float64 {
			list.narrow, list.wide = narrow(list.wide), nil
		}
		keep(key, list)
	}
	if list.narrow != nil {
		return FromSliceOn(x.Stream(), list.narrow, dims...)
	}
	return FromSliceOn(x.Stream(), list.wide, dims...)
}

func keep(key string, list numbers) {
	tables.mu.Lock()
	defer tables.mu.Unlock()
	if _, known := tables.byKey[key]; known || list.bytes() > tableBytes {
		return
	}
	if tables.byKey == nil {
		tables.byKey = map[string]numbers{}
	}
	for tables.bytes+list.bytes() > tableBytes {
		oldest := tables.order[0]
		tables.order = slices.Delete(tables.order, 0, 1)
		tables.bytes -= tables.byKey[oldest].bytes()
		delete(tables.byKey, oldest)
	}
	tables.byKey[key] = list
	tables.order = append(tables.order, key)
	tables.bytes += list.bytes()
}

// powerOfTwo transforms a table's elements in place. Their number is a power of two.
func powerOfTwo(x []complex128) {
	n := len(x)
	shift := 64 - bits.Len(uint(n-1))
	for i := range x {
		if j := int(bits.Reverse64(uint64(i)) >> shift); i < j {
			x[i], x[j] = x[j], x[i]
		}
	}
	roots := make([]complex128, n/2)
	for i := range roots {
		roots[i] = root(i, n, true)
	}
	for half := 1; half < n; half *= 2 {
		step := n / (2 * half)
		for i := 0; i < n; i += 2 * half {
			low, high := x[i:i+half], x[i+half:i+2*half]
			for k, a := range low {
				y := roots[k*step] * high[k]
				low[k], high[k] = a+y, a-y
			}
		}
	}
}
