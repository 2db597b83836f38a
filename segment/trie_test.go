package segment

import (
	"fmt"
	"slices"
	"testing"
)

// legal lets an even number serve the odd one that follows it.
func legal(have, k *int) bool { return *have%2 == 0 && *k == *have+1 }

func keep(int, *string) {}

func walk(t *Trie[int, string], keys ...int) *Node[int, string] {
	n := t.Root()
	for _, k := range keys {
		n = t.Step(n, &k)
	}
	return n
}

var read = End{Reason: ReasonRead, ID: 3}

func TestStep(t *testing.T) {
	tr := NewTrie[int, string](10, legal)
	tr.Add([]int{2, 4, 6}, read, "a", keep)
	tr.Add([]int{2, 5, 8}, read, "b", keep)
	for _, c := range []struct {
		keys []int
		want string
	}{
		{[]int{2, 4, 6}, "a"},
		{[]int{3, 4, 7}, "a"}, // legal twice
		{[]int{2, 5, 8}, "b"}, // the exact child is preferred to the legal one
		{[]int{2, 5, 6}, ""},
		{[]int{2, 4}, ""},
		{[]int{9, 4, 6}, ""},
	} {
		got := ""
		if l := tr.Find(walk(tr, c.keys...), read); l != nil {
			got = l.Plans()[0]
		}
		if got != c.want {
			t.Errorf("%v: plan %q, want %q", c.keys, got, c.want)
		}
	}
	for _, end := range []End{{Reason: ReasonRead, ID: 2}, {Reason: ReasonSync, ID: 3}, {Reason: ReasonRead, ID: 3, All: true}} {
		if tr.Find(walk(tr, 2, 4, 6), end) != nil {
			t.Errorf("a plan for %+v", end)
		}
	}
	if n := walk(tr, 1, 1, 1); n != nil || tr.Step(n, new(2)) != nil {
		t.Error("there is a way back onto the trie")
	}
}

func TestNotes(t *testing.T) {
	tr := NewTrie[int, string](10, legal)
	tr.Add([]int{2, 4}, read, "a", func(i int, note *string) { *note = fmt.Sprint("line ", i) })
	var seen []string
	tr.Add([]int{2, 6}, read, "b", func(i int, note *string) { seen = append(seen, *note) })
	if want := []string{"line 0", ""}; !slices.Equal(seen, want) {
		t.Errorf("notes %q, want %q", seen, want)
	}
	if got := tr.Note(walk(tr, 2, 4)); got != "line 1" {
		t.Errorf("note %q", got)
	}
	if got := tr.Note(nil); got != "" {
		t.Errorf("note off the trie %q", got)
	}
}

// A leaf distinguishes the keys for which it was made from those for which it is legal.
func TestExactly(t *testing.T) {
	tr := NewTrie[int, string](10, legal)
	leaf := tr.Add([]int{2, 4}, read, "a", keep)
	for _, c := range []struct {
		keys []int
		want bool
	}{{[]int{2, 4}, true}, {[]int{3, 4}, false}, {[]int{2, 5}, false}, {[]int{4}, false}, {[]int{2, 2, 4}, false}, {nil, false}} {
		if got := leaf.Exactly(len(c.keys), func(i int) *int { return &c.keys[i] }); got != c.want {
			t.Errorf("%v: %v", c.keys, got)
		}
	}
}

// All visits every leaf with its keys, from the root on.
func TestAll(t *testing.T) {
	tr := NewTrie[int, string](10, legal)
	tr.Add([]int{2, 4}, read, "a", keep)
	tr.Add([]int{2, 4}, read, "b", keep)
	tr.Add([]int{2, 4, 6}, read, "c", keep)
	tr.Add([]int{2, 4}, End{Reason: ReasonSync, ID: -1}, "d", keep)
	tr.Add(nil, read, "e", keep)
	var got []string
	tr.All(func(keys []int, end End, plans []string) { got = append(got, fmt.Sprint(keys, end.Reason, plans)) })
	slices.Sort(got)
	want := []string{"[2 4 6] read [c]", "[2 4] read [a b]", "[2 4] sync [d]", "[] read [e]"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The leaf unused for longest is evicted with the nodes that only it needed. A stream on these
// nodes finds no plan, and a new plan is found again.
func TestEvict(t *testing.T) {
	tr := NewTrie[int, string](2, legal)
	tr.Add([]int{2, 4}, read, "a", keep)
	tr.Add([]int{2, 6}, read, "b", keep)
	at := walk(tr, 2, 4)
	tr.Find(walk(tr, 2, 6), read)
	tr.Add([]int{8}, read, "c", keep)
	if tr.Len() != 2 || tr.Evictions() != 1 {
		t.Errorf("%d leaves, %d evictions", tr.Len(), tr.Evictions())
	}
	if tr.Find(at, read) != nil || tr.Find(walk(tr, 2, 4), read) != nil {
		t.Error("the plan used longest ago is still there")
	}
	if tr.Find(walk(tr, 2, 6), read) == nil || tr.Find(walk(tr, 8), read) == nil {
		t.Error("another plan is gone")
	}
	tr.Root().last.Store(at.parent.parent) // as a step does that races with the eviction
	walk(tr, 2).last.Store(at)
	tr.Add([]int{2, 4}, read, "a", keep)
	if tr.Find(walk(tr, 2, 4), read) == nil {
		t.Error("a node that was evicted hides the new one")
	}
}

// A leaf of a long segment takes the room of several.
func TestEvictLong(t *testing.T) {
	tr := NewTrie[int, string](4, legal)
	long := make([]int, 2*keysPerLeaf)
	for i := range 3 {
		tr.Add([]int{10 + i}, read, "short", keep)
	}
	tr.Add(long, read, "long", keep)
	if tr.Len() != 2 || tr.Evictions() != 2 {
		t.Errorf("%d leaves, %d evictions", tr.Len(), tr.Evictions())
	}
	tr.Add(append(long, long...), read, "longer", keep) // the newest leaf stays, however long it is
	if tr.Len() != 1 || tr.Find(walk(tr, append(long, long...)...), read) == nil {
		t.Errorf("%d leaves, the longest one is not there", tr.Len())
	}
	tr.Add([]int{1}, read, "short", keep)
	if tr.Len() != 1 {
		t.Errorf("%d leaves", tr.Len())
	}
}

// OnDrop's function is called once for every dropped plan.
func TestOnDrop(t *testing.T) {
	tr := NewTrie[int, string](1, legal)
	var lost []string
	tr.OnDrop(func(p string) {
		lost = append(lost, p)
		tr.Len() // the function is called outside the lock
	})
	leaf := tr.Add([]int{2}, read, "a", keep)
	tr.Update(leaf, func(plans []string) []string { return append(slices.Clone(plans), "b") })
	tr.Add([]int{4}, read, "c", keep)
	if want := []string{"a", "b"}; !slices.Equal(lost, want) {
		t.Errorf("told of %q, want %q", lost, want)
	}
	if got := tr.Find(walk(tr, 4), read).Plans(); !slices.Equal(got, []string{"c"}) {
		t.Errorf("what stays is %q", got)
	}
	for i := range plansPerLeaf {
		tr.Add([]int{4}, read, fmt.Sprint(i), keep)
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(lost, want) {
		t.Errorf("told of %q, want %q", lost, want)
	}
}

// Plans of one leaf whose guards never hold twice do not accumulate.
func TestPlansPerLeaf(t *testing.T) {
	tr := NewTrie[int, string](2, legal)
	var leaf *Leaf[int, string]
	for i := range 3 * plansPerLeaf {
		leaf = tr.Add([]int{2}, read, fmt.Sprint(i), keep)
	}
	plans := leaf.Plans()
	if len(plans) != plansPerLeaf || plans[len(plans)-1] != fmt.Sprint(3*plansPerLeaf-1) {
		t.Errorf("%q", plans)
	}
}

// A leaf's plans change as a whole; an evicted leaf has none to change.
func TestUpdate(t *testing.T) {
	tr := NewTrie[int, string](1, legal)
	leaf := tr.Add([]int{2}, read, "a", keep)
	before := leaf.Plans()
	ok := tr.Update(leaf, func(plans []string) []string {
		return append([]string{"b"}, plans...)
	})
	if got := leaf.Plans(); !ok || !tr.Holds(leaf) || !slices.Equal(got, []string{"b", "a"}) || !slices.Equal(before, []string{"a"}) {
		t.Errorf("%v: %q, before %q", ok, got, before)
	}
	tr.Update(leaf, func(plans []string) []string { return slices.Repeat([]string{"c"}, 2*plansPerLeaf) })
	if n := len(leaf.Plans()); n != plansPerLeaf {
		t.Errorf("%d plans", n)
	}
	tr.Add([]int{4}, read, "d", keep)
	if tr.Holds(leaf) || tr.Update(leaf, func([]string) []string { t.Error("asked for plans"); return nil }) {
		t.Error("an evicted leaf was changed")
	}
}

func TestCut(t *testing.T) {
	loop := func(i int) int { return i % 6 }
	line := func(i int) int { return i }
	p := Policy{Soft: 16, Hard: 40, Window: Window}
	for _, c := range []struct {
		name  string
		n     int
		local func(int) int
		want  int
	}{
		{"too short", 15, loop, 0},
		{"not come round", 17, loop, 0},
		{"come round", 22, loop, 18},
		{"never comes round", 39, line, 0},
		{"hard cap", 40, line, 40},
	} {
		if got := Cut(p, c.n, c.local); got != c.want {
			t.Errorf("%s: cut at %d, want %d", c.name, got, c.want)
		}
	}
	for soft := 1; soft < 2*Window; soft++ { // even tiny limits cut where they say
		p := Policy{Soft: soft, Hard: soft, Window: Window}
		if got := Cut(p, soft, line); got != soft {
			t.Errorf("cap %d: cut at %d", soft, got)
		}
	}
}
