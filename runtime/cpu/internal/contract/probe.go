package contract

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// probe is a contraction whose results reveal compiler flags for fast but wrong
// arithmetic. It contains a product halfway between two numbers that a much smaller term decides,
// denormals, and blocks whose order of addition matters.
type probe struct {
	dt      ir.DType
	m, n, k int64
	digest  uint64 // of the results of the oracle
}

// probes covers panels, few rows, single results, and two blocks of k. A program waits for
// its first result while a device opens, and the oracle takes ten times as long as the
// contractions. Therefore the oracle's digests are constants here, and a test compares them with
// the oracle.
var probes = []probe{
	{ir.Float32, 20, 60, 1, 0xe0dc8813f9fb21b9},
	{ir.Float32, 20, 36, 3, 0x6414dbda5775622c},
	{ir.Float32, 1, 70, 26, 0xa6e412da384b6102},
	{ir.Float32, 2, 2, 4, 0xd25813db0cdbb2dc},
	{ir.Float32, 5, 33, 260, 0x40463b71deb0f5d7},
	{ir.Float64, 20, 60, 1, 0xea37bfe0f38ef6e9},
	{ir.Float64, 20, 36, 3, 0x6f1f8bc8e9a3eec4},
	{ir.Float64, 1, 70, 26, 0xa2fda30ce62612b0},
	{ir.Float64, 2, 2, 4, 0xc2cf6460900f46e0},
	{ir.Float64, 5, 33, 260, 0x855a26aaaf8b321a},
}

// values returns the numbers that the operands of both sides repeat.
func (p *probe) values() [4]float64 {
	if p.dt == ir.Float32 {
		return [4]float64{0x1p-30, 1 + 0x1p-12, 0x1p-70, 1e10}
	}
	return [4]float64{0x1p-60, 1 + 0x1p-27, 0x1p-520, 1e100}
}

// at returns the operand of row or column i at position q of the sum. Both sides use one list, to
// touch few pages. The signs make the order of addition visible.
func (p *probe) at(values *[4]float64, i, q int64) float64 {
	v := values[(i+q)%4]
	if at := (i + q) % 12; at > 3 && at%2 == 1 {
		return -v
	}
	return v
}

// runProbes runs the probes of a dtype.
func runProbes(dt ir.DType, run func(*Contraction) error) error {
	for i := range probes {
		p := &probes[i]
		if p.dt != dt {
			continue
		}
		got, err := p.run(run)
		if err != nil {
			return err
		}
		if got != p.digest {
			return fmt.Errorf("a test contraction of %v, %d×%d over %d, computed wrong bits", p.dt, p.m, p.n, p.k)
		}
	}
	return nil
}

// run returns the digest of a contraction's results.
func (p *probe) run(run func(*Contraction) error) (uint64, error) {
	if p.dt == ir.Float32 {
		return runProbe[float32](p, run, func(x float32) uint64 { return uint64(math.Float32bits(x)) })
	}
	return runProbe[float64](p, run, math.Float64bits)
}

func runProbe[T float32 | float64](p *probe, run func(*Contraction) error, bits func(T) uint64) (uint64, error) {
	m, n, k := p.m, p.n, p.k
	list, out := make([]T, max(m, n)+k), make([]T, m*n)
	values := p.values()
	for i := range list {
		list[i] = T(p.at(&values, int64(i), 0))
	}
	both := Side{Base: unsafe.Pointer(&list[0]), Stride: 1, KStride: 1}
	c := &Contraction{M: m, N: n, K: k, DT: p.dt, Threads: 1, Out: Results{Base: unsafe.Pointer(&out[0]), Row: n}, X: both, Y: both}
	if err := run(c); err != nil {
		return 0, err
	}
	h := newDigest()
	for _, v := range out {
		h.add(bits(v))
	}
	return uint64(h), nil
}

// digest is a hash of a list of results, none of which is NaN.
type digest uint64

func newDigest() digest { return 0x9e3779b97f4a7c15 }

func (h *digest) add(bits uint64) {
	x := (uint64(*h) ^ bits) * 0xff51afd7ed558ccd
	*h = digest(x ^ x>>32)
}
