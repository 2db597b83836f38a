package fusion

import (
	"cmp"
	"slices"
)

// builder is one kind of kernel that groups become. grow makes the groups that g and another group
// could become in g's domain. If this kind of kernel cannot do the other's work, it returns none
// and the reason.
type builder struct {
	grow func(x *explorer, g, other *group) ([]*group, string)
}

const (
	kindElementwise = iota
	kindRows
	kindContraction
	kindScatter
)

// builders is the table of kinds. It is filled in init, because the functions price groups and
// groups point to their builder.
var builders [4]builder

func init() {
	builders[kindElementwise] = builder{growElementwise}
	builders[kindRows] = builder{growRows}
	builders[kindContraction] = builder{growContraction}
	builders[kindScatter] = builder{growScatter}
}

func growElementwise(x *explorer, g, other *group) ([]*group, string) {
	if other.over >= 0 {
		return nil, "" // the domain of a row op is fixed: only its own builder can grow it
	}
	return x.growAlong(g, other, x.bridges(g, other))
}

func growRows(x *explorer, g, other *group) ([]*group, string) {
	switch {
	case other.contracts():
		return nil, reasonContraction
	case other.scatters():
		return nil, reasonScatter
	case other.over >= 0:
		if other.domain != g.domain {
			return nil, x.unrelated(g.domain, other.domain)
		}
		if !slices.Equal(g.axes, other.axes) {
			return x.withTotals(g, other)
		}
		return x.growAlong(g, other, []*indexMap{x.maps.identity(g.domain)})
	}
	return x.growAlong(g, other, x.bridges(g, other))
}

func growContraction(x *explorer, g, other *group) ([]*group, string) {
	if other.scatters() {
		return nil, reasonScatter
	}
	if other.over >= 0 {
		return nil, reasonContraction
	}
	return x.growAlong(g, other, x.bridges(g, other))
}

func (x *explorer) growAlong(g, other *group, bridges []*indexMap) ([]*group, string) {
	if len(bridges) == 0 {
		if x.feeds(g, other) || x.feeds(other, g) {
			return nil, reasonPoints
		}
		return nil, x.unrelated(g.domain, other.domain)
	}
	var out []*group
	why := ""
	for _, m := range bridges {
		n, reason := x.merged(g, other, m)
		if n != nil {
			reason = x.legal(n)
		}
		if reason != "" {
			if why == "" {
				why = reason
			}
			continue
		}
		out = append(out, n)
	}
	return out, why
}

// unrelated is the reason why nothing maps domain a onto domain b.
func (x *explorer) unrelated(a, b int32) string {
	if x.seg.Tensors[x.class.rep[a]].Shape.Equal(x.seg.Tensors[x.class.rep[b]].Shape) {
		return reasonChance
	}
	return reasonShapes
}

// verdict is the best kernel that two groups could become, or the reason why there is none.
type verdict struct {
	group  *group
	saving float64 // seconds
	why    string
	slow   *group // with reasonSlower: the best group, which was predicted to be slower
}

type pair struct{ a, b *group }

// join judges two groups, and caches the verdict. It ignores the other groups: see between.
func (x *explorer) join(a, b *group) verdict {
	key := pair{a, b}
	if v, ok := x.verdicts[key]; ok {
		return v
	}
	v := x.judge(a, b)
	x.verdicts[key] = v
	return v
}

func (x *explorer) judge(a, b *group) verdict {
	shared := x.shared(a, b)
	if !shared && a.domain != b.domain {
		return verdict{why: reasonAlone}
	}
	all, why := a.kind.grow(x, a, b)
	if len(all) == 0 || a.domain != b.domain {
		more, why2 := b.kind.grow(x, b, a)
		all = append(all, more...)
		if why == "" {
			why = why2
		}
	}
	apart := x.price(a).seconds + x.price(b).seconds
	var best verdict
	for _, g := range all {
		if s := apart - x.price(g).seconds; best.group == nil || s > best.saving {
			best = verdict{group: g, saving: s}
		}
	}
	switch {
	case best.group == nil:
		return verdict{why: why}
	case best.saving <= 0:
		return verdict{why: reasonSlower, slow: best.group}
	case !shared && best.saving < apart/aloneShare:
		return verdict{why: reasonAlone}
	}
	return best
}

// aloneShare: groups that share no data become one kernel only if that saves at least one part in
// so many of their time. A smaller saving is not worth the registers and memory streams that each
// group loses in a large kernel.
const aloneShare = 10

// mergeAll joins pairs of groups, always the pair that saves most, until no pair saves time.
func (x *explorer) mergeAll() {
	for {
		var best verdict
		bi, bj := 0, 0
		deps := x.dependencies()
		pairs := x.nearPairs()
		x.spend(len(pairs))
		for _, p := range pairs {
			if x.over() {
				return
			}
			i, j := p[0], p[1]
			v := x.join(x.groups[i], x.groups[j])
			if v.group != nil && v.saving > best.saving && !between(deps, i, j) {
				best, bi, bj = v, i, j
			}
		}
		if best.group == nil {
			return
		}
		x.noteMerge(x.groups[bi], x.groups[bj], best.group)
		x.replace(bi, bj, best.group)
	}
}

// near bounds how many groups a group is compared with, in each list of groups that touch one
// tensor or have one domain. So the time of exploration does not grow with the square of the number
// of results.
const near = 4

// nearPairs lists the pairs of groups worth judging: groups close to each other among those that
// touch one tensor, or among those that have one domain. The pairs are sorted and distinct.
func (x *explorer) nearPairs() [][2]int {
	byTensor := grown(&x.touch[0], len(x.seg.Tensors))
	byDomain := grown(&x.touch[1], len(x.class.rep))
	var pairs [][2]int
	touches := func(list *[]int, i int) {
		if n := len(*list); n > 0 && (*list)[n-1] == i {
			return // the group touches the tensor in several pieces
		}
		for _, j := range (*list)[max(0, len(*list)-near):] {
			pairs = append(pairs, [2]int{j, i})
		}
		*list = append(*list, i)
	}
	for i, g := range x.groups {
		x.eachTensor(g, func(t int32) { touches(&byTensor[t], i) })
		touches(&byDomain[g.domain], i)
	}
	for _, g := range x.groups { // clear only these lists: a part touches few of the segment's tensors
		x.eachTensor(g, func(t int32) { byTensor[t] = byTensor[t][:0] })
		byDomain[g.domain] = byDomain[g.domain][:0]
	}
	slices.SortFunc(pairs, func(p, q [2]int) int { return cmp.Or(p[0]-q[0], p[1]-q[1]) })
	return slices.Compact(pairs)
}

// grown extends a list to at least n elements.
func grown[T any](list *[]T, n int) []T {
	if len(*list) < n {
		*list = append(*list, make([]T, n-len(*list))...)
	}
	return *list
}

// mergeOnce is the cheap search: one pass in program order, in which each group joins the nearest
// earlier group that it can join.
func (x *explorer) mergeOnce() {
	for j := 1; j < len(x.groups) && !x.late(); j++ {
		var deps [][]int
		for i := j - 1; i >= max(0, j-near); i-- {
			v := x.join(x.groups[i], x.groups[j])
			if v.group == nil || v.saving <= 0 {
				continue
			}
			if deps == nil {
				deps = x.dependencies()
			}
			if !between(deps, i, j) {
				x.replace(i, j, v.group)
				j--
				break
			}
		}
	}
}

// replace puts g in the place of group i and removes group j.
func (x *explorer) replace(i, j int, g *group) {
	groups := slices.Clone(x.groups)
	groups[i] = g
	x.groups = slices.Delete(groups, j, j+1)
}
