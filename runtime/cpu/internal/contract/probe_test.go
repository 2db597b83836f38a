package contract

import (
	"math"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
)

// TestProbeContraction checks that the probe accepts correct arithmetic, and detects flushed
// denormals and chains that round twice.
func TestProbeContraction(t *testing.T) {
	for name, n := range contractors(1) {
		run := func(c *Contraction) error { return n.contract(c, Memory, Memory, false) }
		flush := func(c *Contraction) error {
			err := run(c)
			for i := range c.M * c.N {
				if p := (*float32)(unsafe.Add(c.Out.Base, 4*i)); c.DT == ir.Float32 && math.Abs(float64(*p)) < 0x1p-126 {
					*p = 0
				}
			}
			return err
		}
		for _, dt := range contractDTypes {
			if err := runProbes(dt, run); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if runProbes(ir.Float32, flush) == nil {
			t.Errorf("%s: flushed denormals pass", name)
		}
	}
	twice := func(c *Contraction) error {
		at := func(s *Side, i, p int64) float64 {
			return float64(*(*float32)(unsafe.Add(s.Base, 4*(i*s.Stride+p*s.KStride))))
		}
		for i := range c.M {
			for j := range c.N {
				var total, block float32
				for p := range c.K {
					block = float32(float64(at(&c.X, i, p)*at(&c.Y, j, p)) + float64(block))
					if p%blockK == blockK-1 || p == c.K-1 {
						total, block = total+block, 0
					}
				}
				*(*float32)(unsafe.Add(c.Out.Base, 4*(i*c.N+j))) = total
			}
		}
		return nil
	}
	if err := runProbes(ir.Float32, twice); err == nil {
		t.Error("sums that are rounded twice pass")
	} else {
		t.Log(err)
	}
}

// TestContractProbeDigests compares the digests with the oracle. Rows and columns repeat after
// twelve, so few results have to be computed.
func TestContractProbeDigests(t *testing.T) {
	for i := range probes {
		p := &probes[i]
		values := p.values()
		operand := func(i, q int64) uint64 {
			if v := p.at(&values, i, q); p.dt == ir.Float32 {
				return uint64(math.Float32bits(float32(v)))
			} else {
				return math.Float64bits(v)
			}
		}
		var want [12][12]uint64
		for i := range min(p.m, 12) {
			for j := range min(p.n, 12) {
				fold := ir.NewFold(ir.Dot, p.dt)
				for q := range p.k {
					fold.Add([]uint64{operand(i, q)}, []uint64{operand(j, q)})
				}
				want[i][j] = fold.Result()
				nan := uint64(math.Float32bits(float32(math.NaN())))
				if p.dt == ir.Float64 {
					nan = math.Float64bits(math.NaN())
				}
				if kernels.SameBits(p.dt, want[i][j], nan) {
					t.Fatalf("%v over %d: a result is NaN", p.dt, p.k)
				}
			}
		}
		h := newDigest()
		for i := range p.m {
			for j := range p.n {
				h.add(want[i%12][j%12])
			}
		}
		if p.digest != uint64(h) {
			t.Errorf("%v, %d×%d over %d: digest %#x, the oracle has %#x", p.dt, p.m, p.n, p.k, p.digest, uint64(h))
		}
	}
}
