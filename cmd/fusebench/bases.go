package main

import (
	"time"

	"github.com/millrace-go/millrace"
)

// bases are the contestants by whose times a device's variants are divided. Variants that move
// equally many bytes share one.
type bases struct {
	copies map[int][]*contestant // by bytes of inputs and result together
	reads  map[int]*contestant   // by bytes of inputs
	gemms  map[gemm]*contestant
	peaks  *peakBases // of the CPU
	all    []*contestant
}

// newBases makes the base contestants of a device. For every problem these are plain copies: one
// by the device's own kernel that only loads and stores, and on the CPU also one by memcpy. On
// the CPU there are more if problems need them: a plain read, another library's product, and the
// most that the cores can do.
func newBases(c *config, b *bench, all []*timed) *bases {
	bs := &bases{copies: map[int][]*contestant{}, reads: map[int]*contestant{}, gemms: map[gemm]*contestant{}}
	cpu := b.dev.Name() == "cpu"
	largest := 0
	for _, t := range all {
		largest = max(largest, t.problem.bytes(c.dtype)/2, t.problem.inputBytes())
	}
	var host *hostMemory
	if cpu {
		host, bs.peaks = newHostMemory(largest, c.threads), newPeakBases()
	}
	add := func(name string, run func() (time.Duration, error)) *contestant {
		k := &contestant{name: name, base: true, run: run}
		bs.all = append(bs.all, k)
		return k
	}
	for _, t := range all {
		if t.row.Error != "" {
			continue
		}
		p := t.problem
		moved := p.bytes(c.dtype)
		if bs.copies[moved] == nil {
			half := moved / 2 / c.dtype.size()
			x, err := b.plain(half, c.dtype)
			bs.copies[moved] = append(bs.copies[moved], add("copy kernel", func() (time.Duration, error) {
				if err != nil {
					return 0, err
				}
				return b.once(copyKernel, []*millrace.Tensor{x})
			}))
			if cpu {
				bs.copies[moved] = append(bs.copies[moved], add("memcpy", func() (time.Duration, error) {
					return host.copy(half * c.dtype.size()), nil
				}))
			}
		}
		if read := p.inputBytes(); cpu && p.reads && bs.reads[read] == nil {
			bs.reads[read] = add("read", func() (time.Duration, error) { return host.read(read), nil })
		}
		if p.gemm != nil && cpu && haveBLAS && c.dtype.size() >= 4 && bs.gemms[*p.gemm] == nil {
			bs.gemms[*p.gemm] = add("OpenBLAS", p.gemm.contestant(c, p.inputs[0], p.inputs[1]))
		}
		if bs.peaks != nil {
			bs.peaks.add(c, p, host, add)
		}
		for _, k := range bs.of(c, p) {
			k.users = append(k.users, t.contestant)
		}
	}
	return bs
}

// of returns the base contestants of one problem.
func (bs *bases) of(c *config, p *problem) []*contestant {
	list := append([]*contestant(nil), bs.copies[p.bytes(c.dtype)]...)
	if k := bs.read(p); k != nil {
		list = append(list, k)
	}
	if k := bs.blas(p); k != nil {
		list = append(list, k)
	}
	if bs.peaks != nil {
		list = append(list, bs.peaks.of(c, p)...)
	}
	return list
}

// copied returns the faster of the plain copies of a problem's bytes.
func (bs *bases) copied(c *config, p *problem) *contestant {
	var best *contestant
	for _, k := range bs.copies[p.bytes(c.dtype)] {
		best = faster(best, k)
	}
	return best
}

func (bs *bases) read(p *problem) *contestant {
	if !p.reads {
		return nil
	}
	return bs.reads[p.inputBytes()]
}

func (bs *bases) blas(p *problem) *contestant {
	if p.gemm == nil {
		return nil
	}
	return bs.gemms[*p.gemm]
}

// copyKernel makes the device run the cheapest kernel that reads and writes every element. (A
// kernel without an operation would not run: the engine would return the same memory.)
func copyKernel(x []*millrace.Tensor) *millrace.Tensor { return x[0].Neg() }

// A gemm is a product of matrices, m×k by k×n.
type gemm struct{ m, k, n int }

// blasRest is longer than OpenBLAS's threads spin after a product before they sleep. Until then
// they take the cores from the next contestant.
const blasRest = 60 * time.Millisecond

func (g gemm) contestant(c *config, a, b *array) func() (time.Duration, error) {
	multiply, _ := g.openBLAS(c.threads, a, b)
	return func() (time.Duration, error) {
		start := time.Now()
		multiply()
		took := time.Since(start)
		time.Sleep(blasRest)
		return took, nil
	}
}
