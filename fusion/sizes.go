package fusion

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace/segment"
)

// Size is one condition of a plan's size class: tensor Of has at most (with AtLeast: at least) Per
// times as many elements as tensor Over, plus Plus. A plan is right at every size that its guards
// admit. Outside its class another plan may be faster, because a choice that rests on predicted
// times would be another there. Most plans have no such choice, and so no class.
type Size struct {
	Of, Over  int // tensors; Over is -1 if Of is compared with Plus only
	AtLeast   bool
	Per, Plus int64
}

// Suits reports whether a segment of the plan's relative form is in a size class.
func Suits(sizes []Size, seg *segment.Segment) bool {
	for i := range sizes {
		if !sizes[i].holds(seg) {
			return false
		}
	}
	return true
}

func (s *Size) holds(seg *segment.Segment) bool {
	n, limit := float64(seg.Tensors[s.Of].Shape.Elems()), float64(s.Plus)
	if s.Over >= 0 {
		limit += float64(s.Per) * float64(seg.Tensors[s.Over].Shape.Elems())
	}
	if s.AtLeast {
		return n >= limit
	}
	return n <= limit
}

func (s *Size) verify(seg *segment.Segment) error {
	if n := len(seg.Tensors); s.Of < 0 || s.Of >= n || s.Over < -1 || s.Over >= n {
		return fmt.Errorf("no such tensor")
	}
	return nil
}

// alike reports that two conditions differ in their numbers only. Then, if both numbers of one are
// lower, one condition implies the other.
func (s *Size) alike(o *Size) bool {
	return s.Of == o.Of && s.Over == o.Over && s.AtLeast == o.AtLeast
}

// Widen is a class that contains both a and b. It is for a plan that was found at sizes of both.
func Widen(a, b []Size) []Size {
	var both []Size
	for _, s := range a {
		kept := false
		for i := range b {
			o := &b[i]
			switch {
			case !s.alike(o):
				continue
			case s.AtLeast:
				s.Per, s.Plus = min(s.Per, o.Per), min(s.Plus, o.Plus)
			default:
				s.Per, s.Plus = max(s.Per, o.Per), max(s.Plus, o.Plus)
			}
			kept = true
		}
		if kept {
			both = append(both, s)
		}
	}
	return both
}

// Same reports that two plans of one relative form run the same kernels. They may have been
// explored at different sizes.
func (p *Plan) Same(q *Plan) bool {
	return len(p.Steps) == len(q.Steps) && p.bare() == q.bare()
}

// bare is the plan's text without refusals, score and size class.
func (p *Plan) bare() string {
	q := *p
	q.Refusals, q.Score, q.Sizes = nil, 0, nil
	return q.String()
}

// text prints a condition, for example: size t9 most 2 t4 plus 5000.
func (s *Size) text(b *strings.Builder) {
	word := "most"
	if s.AtLeast {
		word = "least"
	}
	fmt.Fprintf(b, "size t%d %s", s.Of, word)
	if s.Over >= 0 {
		fmt.Fprintf(b, " %d t%d plus", s.Per, s.Over)
	}
	fmt.Fprintf(b, " %d\n", s.Plus)
}

// size parses what text prints.
func (p *planParser) size(string) {
	s := Size{Over: -1, Of: p.number("t")}
	switch w := p.next(); w {
	case "most":
	case "least":
		s.AtLeast = true
	default:
		p.fail("got %q, want most or least", w)
	}
	if s.Plus = p.count(); len(p.words) > 0 {
		s.Per, s.Over = s.Plus, p.number("t")
		p.expect("plus")
		s.Plus = p.count()
	}
	p.plan.Sizes = append(p.plan.Sizes, s)
}

// count parses a number of elements.
func (p *planParser) count() int64 {
	w := p.next()
	n, err := strconv.ParseUint(w, 10, 63)
	if err != nil {
		p.fail("got %q, want a number", w)
	}
	return int64(n)
}

// slack is the factor by which a class extends beyond the size at which two choices are predicted
// to take the same time. Near that size neither choice is worth a search.
const slack = 2

// choice is a choice between two plans that was made by predicted times. Either a value is computed
// once per element, by a kernel of its own, and stored in memory ("apart"), or it is computed where
// it is read, at every point of a domain.
type choice struct {
	value  int32   // the tensor that may be made apart
	domain int32   // class of the domain over which it is made otherwise
	launch float64 // seconds for launches that making it apart adds
	rest   float64 // seconds for all else that it adds; negative if it saves work
	own    float64 // seconds to make it apart, once per element, without the launch
}

// note adds to the plan's class the sizes at which a choice would change. Making a value apart
// costs launches and a time per element of the value. Making it where it is read costs a time per
// point of the domain.
func (x *explorer) note(c choice) {
	value, domain := x.class.of[c.value], c.domain
	n, of := x.elems(c.value), x.class.rep[domain]
	if n == 0 || of < 0 || c.launch < 0 {
		return
	}
	if x.ratioVaries(domain, c.value) {
		if again := (c.own - c.rest) / float64(x.maps.elems(domain)); again > 0 {
			s := Size{Of: int(of), Over: int(x.class.rep[value])}
			x.bound(s, x.maps.elems(domain), n, c.own/float64(n)/again, c.launch/again)
		}
	} else if less := -c.rest / float64(n); less != 0 {
		x.bound(Size{Of: int(x.class.rep[value]), Over: -1}, n, 0, 0, c.launch/less)
	}
}

// bound adds the condition of one choice. The other choice becomes better when Of has per elements
// for each of Over's elements, plus plus. now is the number of Of's elements, over of Over's.
func (x *explorer) bound(s Size, now, over int64, per, plus float64) {
	at := per*float64(over) + plus
	switch {
	case at <= 0 || per > 1<<50 || plus > 1<<50:
		return
	case float64(now) > at:
		s.AtLeast = true
		s.Per, s.Plus = int64(per/slack), int64(plus/slack)
	default:
		s.Per, s.Plus = int64(math.Ceil(per*slack)), int64(math.Ceil(plus*slack))
	}
	if s.AtLeast && s.Per == 0 && s.Plus == 0 || !s.AtLeast && s.Per == 0 && s.Over >= 0 {
		return
	}
	for i := range x.sizes {
		if o := &x.sizes[i]; o.alike(&s) {
			lower := o.Per <= s.Per && o.Plus <= s.Plus
			higher := o.Per >= s.Per && o.Plus >= s.Plus
			switch {
			case s.AtLeast && higher || !s.AtLeast && lower:
				return
			case lower || higher:
				*o = s
				return
			}
		}
	}
	x.sizes = append(x.sizes, s)
}

// ratioVaries reports a domain whose size in proportion to a tensor may differ at other sizes. It
// does not if the two have the same dims, in any order.
func (x *explorer) ratioVaries(domain, t int32) bool {
	a, b := x.lengths(domain), x.lengths(x.class.of[t])
	return !slices.Equal(a, b) && (x.maps.elems(domain) != x.elems(t) || x.class.broadcasts(domain, x.class.of[t]))
}

// lengths lists the dims of a class that are not 1 by structure, sorted.
func (x *explorer) lengths(class int32) []int32 {
	dims := slices.DeleteFunc(slices.Clone(x.class.dims[class]), func(v int32) bool { return v == one })
	slices.Sort(dims)
	return dims
}

// noteMerge notes the choice between two groups and the group that they become together.
func (x *explorer) noteMerge(a, b, together *group) {
	if a.domain == together.domain {
		a, b = b, a
	}
	if a.domain == together.domain {
		return // no value is computed more often than before
	}
	for _, r := range together.roots {
		if r.tensor == a.roots[0].tensor && together.over >= 0 && x.isRow(together, r.at) {
			return // a's values are computed once per row, as often as before
		}
	}
	// The work of a is done over b's domain.
	c := choice{value: a.roots[0].tensor, domain: together.domain, launch: x.model.launch}
	c.own = x.price(a).seconds - x.model.launch
	c.rest = x.price(a).seconds + x.price(b).seconds - x.price(together).seconds - c.launch
	x.note(c)
}

// noteSlower notes the pairs of groups that were not joined because one kernel would be slower.
func (x *explorer) noteSlower() {
	for _, p := range x.nearPairs() {
		a, b := x.groups[p[0]], x.groups[p[1]]
		if !x.onePart(a, b) {
			continue
		}
		if v := x.join(a, b); v.slow != nil && x.shared(a, b) {
			x.noteMerge(a, b, v.slow)
		}
	}
}

// noteWriting notes the choice whether to write value t, which groups over these domains compute.
// Making t apart takes own seconds without the launch. It was predicted to change the total from
// before to after, and it adds more groups.
func (x *explorer) noteWriting(t int32, domains []int32, own float64, more int, before, after float64) {
	c := choice{value: t, launch: float64(more) * x.model.launch, own: own}
	c.rest = after - before - c.launch
	for _, c.domain = range domains {
		x.note(c)
	}
}

// noteUnrepeated notes a value that is computed once per element only at the current sizes: its
// domain has as many elements as the value now, but may have more at other sizes.
func (x *explorer) noteUnrepeated(t int32) {
	for _, domain := range x.usersOf(t) {
		if domain == x.class.of[t] || x.maps.elems(domain) != x.elems(t) || !x.class.broadcasts(domain, x.class.of[t]) {
			continue
		}
		alone := x.alone(t)
		if alone.err != nil || alone.weight < worthWriting {
			return
		}
		own := alone.seconds - x.model.launch
		work := float64(alone.weight) * float64(x.elems(t)) * x.model.op
		x.note(choice{value: t, domain: domain, launch: x.model.launch, rest: own - work, own: own})
	}
}

// alone is the cost of a value in a kernel of its own. It does not count as effort of the search,
// which must not depend on notes.
func (x *explorer) alone(t int32) *cost {
	search := x.search
	x.search = false
	c := x.price(x.groupOf(t))
	x.search = search
	return c
}

// usersOf lists the domains of the groups that compute a value.
func (x *explorer) usersOf(t int32) (domains []int32) {
	for _, g := range x.groups {
		if x.price(g).nodes.has(x.seg.Tensors[t].Def) && !slices.Contains(domains, g.domain) {
			domains = append(domains, g.domain)
		}
	}
	return domains
}
