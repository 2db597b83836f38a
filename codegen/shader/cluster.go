package shader

import "fmt"

// A workgroup may have several rows: with Variant.Beside those that are neighbours in memory, with
// Variant.Abreast any. With Variant.Cluster the invocations of a row are combined by shuffles, as far
// as they are in one cluster: that many consecutive invocations of a subgroup. The rest goes through
// workgroup memory. Clusters need subgroups that are full, and at least as large. A shader asks the
// device for that (the variable whole); if they are not, everything goes through workgroup memory.

// BesideRun is the number of neighbouring rows of a cluster with Variant.Beside: a sector of memory.
const BesideRun = 8

// apart is the distance of the invocations of a row in a cluster.
func (v *Variant) apart() int {
	if v.Beside > 0 {
		return BesideRun
	}
	return 1
}

// inCluster is the number of invocations of a row that are in one cluster.
func (v *Variant) inCluster() int { return max(v.Cluster, v.apart()) / v.apart() }

// severalRows prints the number slice of an invocation among those of its row, and returns the row's
// number.
func (p *printer) severalRows() string {
	v := p.v
	if v.Cluster > 1 {
		p.f("let members $u32 = min($members(), %du);", v.Group)
		p.f("let whole $bool = $subgroups() * members == %du && members >= %du;", v.Group, v.Cluster)
		p.open("if (whole) {")
		p.f("lane = $subgroup() * members + $member();")
		p.end()
	}
	switch {
	case v.Abreast > 0: // invocations without a row compute the last one, and store nothing
		if share := v.sharing(); share > 1 {
			p.f("let slice $u32 = lane %% %du;", share)
			p.f("let place $u32 = i * %du + lane / %du;", v.Abreast, share)
		} else {
			p.f("let slice $u32 = 0u;")
			p.f("let place $u32 = i * %du + lane;", v.Abreast)
		}
		p.f("let live $bool = place < %s;", runWord(wordCount))
		p.f("let abreast $u32 = min(place, %s - 1u);", runWord(wordCount))
		return "abreast"
	case v.Cluster > 1:
		p.f("let beside $u32 = i * %du + lane / %du %% %du * %du + lane %% %du;", v.Beside, v.Cluster, v.Beside/BesideRun, BesideRun, BesideRun)
		p.f("let slice $u32 = lane / %du * %du + lane %% %du / %du;", v.blockOfRows(), v.inCluster(), v.Cluster, BesideRun)
	default:
		p.f("let beside $u32 = i * %du + lane %% %du;", v.Beside, v.Beside)
		p.f("let slice $u32 = lane / %du;", v.Beside)
	}
	return "beside"
}

// blockOfRows is the number of invocations of the clusters that together have all rows of Beside.
func (v *Variant) blockOfRows() int { return v.Beside * v.inCluster() }

// sliceAt is the invocation that has slice s of the present row.
func (p *printer) sliceAt(s string) string {
	v := p.v
	if v.Abreast > 0 {
		return "lane - slice + " + s
	}
	m, in := v.blockOfRows(), v.inCluster()
	return fmt.Sprintf("lane %% %du - lane %% %du + lane %% %du + %s %% %du * %du + %s / %du * %du", m, v.Cluster, BesideRun, s, in, BesideRun, s, in, m)
}

// parts prints the variable step, the distance of slices whose results are in workgroup memory, and
// returns its name. Printed for clusters that have whole rows, it is for subgroups that are not full.
func (p *printer) parts() string {
	if in := p.v.inCluster(); in > 1 && in < p.v.sharing() {
		p.f("let step $u32 = %s;", p.call("select", 1, "1u", fmt.Sprintf("%du", in), "whole"))
		return "step"
	}
	return "1u"
}

// foldClusters combines o<i> over the invocations of each row.
func (p *printer) foldClusters(folds []int) {
	share, in := p.v.sharing(), p.v.inCluster()
	if in > 1 {
		p.open("if (whole) {")
		p.foldCluster(folds)
		p.end()
	}
	if share == 1 {
		return
	}
	if in == share {
		p.open("if (%s) {", p.call("not", 1, "whole"))
	} else {
		p.open("{")
	}
	p.share(folds, "w", "lane", p.v.Group)
	p.f("barrier;")
	at := p.sliceAt("0u")
	for _, i := range folds {
		p.f("o%d = %s;", i, p.taken(i, fmt.Sprintf("w%d[%s]", i, at)))
		if p.code[i].Op.Info().Position {
			p.f("on%d = wn%d[%s];", i, i, at)
		}
	}
	step := p.parts()
	p.loop("s", step, fmt.Sprintf("%du", share), step)
	p.f("let from $u32 = %s;", p.sliceAt("s"))
	for _, i := range folds {
		p.take(i, p.taken(i, fmt.Sprintf("w%d[from]", i)), fmt.Sprintf("wn%d[from]", i))
	}
	p.end()
	p.end()
}

// foldCluster combines o<i> over the invocations of a row in a cluster.
func (p *printer) foldCluster(folds []int) {
	v := p.v
	var shuffled []int
	for _, i := range folds {
		o := fmt.Sprintf("o%d", i)
		switch {
		case !v.Clustered || v.Beside > 0 || p.bools(i):
			shuffled = append(shuffled, i)
		case p.code[i].Op.Info().Position:
			p.f("let top%d $U = subgroupClusteredMax(%s, %du);", i, o, v.Cluster)
			p.f("on%d = subgroupClusteredMin($select(0xffffffffu, on%d, $eq(top%d, %s)), %du);", i, i, i, o, v.Cluster)
			p.f("%s = top%d;", o, i)
		default:
			p.f("%s = %s;", o, p.overSubgroup(i, o, "subgroupClustered", fmt.Sprintf(", %du", v.Cluster)))
		}
	}
	for d := v.apart(); d < v.Cluster && len(shuffled) > 0; d *= 2 {
		for _, i := range shuffled {
			p.open("{")
			p.f("let other %s = subgroupShuffleXor(o%d, %du);", p.accType(i, 1), i, d)
			if p.code[i].Op.Info().Position {
				p.f("let at $u32 = subgroupShuffleXor(on%d, %du);", i, d)
			}
			p.take(i, "other", "at")
			p.end()
		}
	}
}

// scanClusters sets e<i> to the result of a scan of x before this invocation, and updates the scan's
// state. w is workgroup memory.
func (p *printer) scanClusters(i int, x, state, w string) {
	in, typ := p.code[i], p.vec(scalarTypes[p.code[i].DT], 1)
	share, cluster := p.v.sharing(), p.v.inCluster()
	t, e, before := fmt.Sprintf("t%d", i), fmt.Sprintf("e%d", i), fmt.Sprintf("before%d", i)
	p.f("var %s %s = %s;", e, typ, state)
	p.f("var %s %s = %s;", t, typ, x)
	if cluster > 1 {
		p.f("var %s %s = %s;", before, typ, x)
		p.open("if (whole) {")
		for d := 1; d < cluster; d *= 2 {
			p.f("%s = subgroupShuffleUp(%s, %du);", before, t, d)
			p.open("if (slice %% %du >= %du) {", cluster, d)
			p.f("%s = %s;", t, p.combine(in, before, t))
			p.end()
		}
		p.f("%s = subgroupShuffleUp(%s, 1u);", before, t)
		if cluster == share {
			p.open("if (slice > 0u) {")
			p.f("%s = %s;", e, p.combine(in, e, before))
			p.end()
			p.f("%s = subgroupShuffle(%s, $member() | %du);", t, t, cluster-1)
			p.f("%s = %s;", state, p.combine(in, state, t))
		}
		p.end()
	}
	if share == 1 {
		p.f("%s = %s;", state, p.combine(in, state, t))
		return
	}
	if cluster == share {
		p.open("if (%s) {", p.call("not", 1, "whole"))
	} else {
		p.open("{")
	}
	p.f("%s[lane] = %s;", w, t)
	p.f("barrier;")
	step := p.parts()
	p.loop("s", "0u", fmt.Sprintf("%du", share), step)
	first, last := "slice", "s"
	if step == "step" {
		first, last = "slice - slice % step", "s + step - 1u"
	}
	p.open("if (s == %s) {", first)
	p.f("%s = %s;", e, state)
	p.end()
	p.f("%s = %s;", state, p.combine(in, state, fmt.Sprintf("%s[lane - slice + %s]", w, last)))
	p.end()
	p.f("barrier;")
	if step == "step" {
		p.open("if (slice %% step > 0u) {")
		p.f("%s = %s;", e, p.combine(in, e, before))
		p.end()
	}
	p.end()
}
