package gpurun

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
)

// Many short rows, each contiguous in memory, are abreast: a workgroup takes several.
//
// On hardware neighbouring invocations share a row, so that they read adjacent memory, and fold by
// shuffles. A row of up to abreastSteps vectors for each of them needs no barrier. This is not
// measured: no graphics card was at hand.
//
// On a software adapter a shuffle is a loop over the lanes of a CPU's vector, and costs more than the
// rest of a short row. There each invocation has a row of its own, and nothing is folded across. It
// pays for scans of any length, and otherwise for rows that are read several times and fit in
// registers, or in vectors. Mesa 26 loads neighbouring elements of one row faster than those of
// several, so longer rows keep their workgroup.
const (
	abreastRows  = 1 << 8  // least rows
	abreastBusy  = 1 << 15 // least invocations that keep hardware busy
	abreastGroup = 128     // invocations per workgroup of hardware
	abreastShare = 32      // most invocations of a row, if subgroups are not larger
	abreastSteps = 8       // most steps of each of them

	abreastKept = 64       // on software: most points of a row that several passes read
	abreastOnce = 256      // and of one that one pass reads by vectors
	abreastLong = colSteps // most steps of a scan
)

// abreast reports whether workgroups of a kernel of rows take several of them.
func (p *piece) abreast(k *codegen.Kernel) bool {
	l := &p.launch
	n, rows := reducedSize(l), points(l.Dims[:l.Kept])
	switch {
	case n < 2 || rows < abreastRows || !alongRows(k, l):
		return false
	case !p.software:
		share := int64(p.mostShare())
		return p.shuffles && n <= 4*share*abreastSteps && rows*min(share, (n+3)/4) >= abreastBusy
	case scans(k):
		return n >= shortRow && n <= abreastLong
	case shader.Passes(k) > 1:
		return n <= abreastKept
	}
	return n >= shortRow && n <= abreastOnce && n%4 == 0
}

// mostShare is the largest number of invocations of a row on hardware. Subgroups below it are
// combined through workgroup memory.
func (p *piece) mostShare() int { return max(p.size, abreastShare) }

// takeAbreast makes workgroups of v take several rows.
func takeAbreast(v *shader.Variant, k *codegen.Kernel, p *piece) {
	steps := v.RowSteps(&p.launch)
	share := 1
	if p.software {
		v.Group = group
		for v.Group > unrollings[true].groups[0] && points(p.launch.Dims[:p.launch.Kept]) < stepGroups*int64(v.Group) {
			v.Group /= 2
		}
	} else {
		share = sharesOf(steps, p.mostShare())
		v.Group = max(min(abreastGroup, p.groupSize), share)
		v.Cluster = min(share, p.size)
		v.Clustered = p.clusters && v.Cluster > 1
	}
	v.Abreast = v.Group / share
	if scans(k) || shader.Passes(k) < 2 {
		return
	}
	un, n := unrollings[p.software], (steps+share-1)/share
	if n <= un.steps && n*shader.CountRowWork(k, v, true).Instrs <= un.work {
		v.Unroll, v.Exact = n, n*share == steps && !v.Ragged
	}
}

// sharesOf is the number of invocations that share a row of some steps: the largest power of two of
// which at most a fourth is idle, up to most.
func sharesOf(steps, most int) int {
	best, least := 1, steps
	for share := most; share > 1; share /= 2 {
		all := (steps + share - 1) / share * share
		if 3*all <= 4*steps {
			return share
		}
		if all < least {
			best, least = share, all
		}
	}
	return best
}

// takeCluster makes the rows of v that are beside each other fold by shuffles. A cluster has several
// invocations of each of a few rows. Only adapters with subgroups above 8 have that.
func takeCluster(v *shader.Variant, p *piece) {
	if c := min(p.size, v.Group/v.Beside*shader.BesideRun); p.shuffles && c > shader.BesideRun {
		v.Cluster = c
	}
}
