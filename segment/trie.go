package segment

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Trie holds the known plans of a device by the relative ops they cover. A hot
// stream moves down one node per op, comparing the op with the child that was
// taken last; nothing is hashed and nothing is locked.
//
// K is the relative form of an op; legal reports whether a plan made under one
// key serves an op with another. P is whatever the stream keeps with a plan.
type Trie[K comparable, P any] struct {
	legal func(have, k *K) bool
	limit int
	lost  func(P) // nil: nobody asks

	mu     sync.Mutex // guards growth and eviction
	root   *Node[K, P]
	leaves map[*Leaf[K, P]]struct{}
	weight int // of all leaves
	clock  atomic.Uint64
	evict  atomic.Int64
}

// Node is a place in the trie. Nil is the place off the trie, where every step
// leads to nil again.
type Node[K comparable, P any] struct {
	parent *Node[K, P]
	key    K
	last   atomic.Pointer[Node[K, P]]    // child taken last
	kids   atomic.Pointer[[]*Node[K, P]] // immutable list
	ends   atomic.Pointer[[]*Leaf[K, P]] // immutable list
	note   string                        // what Add's visitor keeps here
}

// End says why a segment ended and what was asked for: the last edge of a plan.
type End struct {
	Reason Reason
	ID     int32 // relative id that is read or handed over, else -1
	// All is set where everything somebody may ask for is written, because
	// recipes pin too much memory.
	All bool
}

// Reason is why a segment ended.
type Reason uint8

const (
	ReasonRead Reason = iota + 1
	ReasonSync
	ReasonCap
	ReasonHandOver
)

var reasons = [...]string{ReasonRead: "read", ReasonSync: "sync", ReasonCap: "cap", ReasonHandOver: "hand-over"}

func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "unknown"
}

// Leaf holds the plans of one segment, tried in order.
type Leaf[K comparable, P any] struct {
	end   End
	node  *Node[K, P]
	plans atomic.Pointer[[]P]
	used  atomic.Uint64
	keys  int // how many lead to it
}

// Long segments have large plans: a leaf counts as one for each so many keys.
const keysPerLeaf = 256

func (l *Leaf[K, P]) weight() int { return 1 + l.keys/keysPerLeaf }

// NewTrie makes an empty trie that holds at most limit leaves, fewer where they are of
// long segments.
func NewTrie[K comparable, P any](limit int, legal func(have, k *K) bool) *Trie[K, P] {
	return &Trie[K, P]{
		legal:  legal,
		limit:  limit,
		root:   &Node[K, P]{},
		leaves: make(map[*Leaf[K, P]]struct{}),
	}
}

// OnDrop has a function told of plans that have to go to make room, once they
// cannot be found any more. It is set before the trie is used.
func (t *Trie[K, P]) OnDrop(lost func(P)) { t.lost = lost }

func (t *Trie[K, P]) tell(lost []P) {
	for _, p := range lost {
		if t.lost != nil {
			t.lost(p)
		}
	}
}

// Root is where every segment starts.
func (t *Trie[K, P]) Root() *Node[K, P] { return t.root }

// Step moves down by one op: to the child of exactly this key, else to one
// whose plans are legal for it, else off the trie.
func (t *Trie[K, P]) Step(n *Node[K, P], k *K) *Node[K, P] {
	if n == nil {
		return nil
	}
	if c := n.last.Load(); c != nil && c.key == *k { // what a program did last time it mostly does again
		return c
	}
	return t.search(n, k)
}

// Predicted is the child taken last, with its key: what comes next if a
// program does again what it did. It is nil where nobody has been.
func (n *Node[K, P]) Predicted() (*Node[K, P], *K) {
	if n == nil {
		return nil, nil
	}
	c := n.last.Load()
	if c == nil {
		return nil, nil
	}
	return c, &c.key
}

func (t *Trie[K, P]) search(n *Node[K, P], k *K) *Node[K, P] {
	kids := n.kids.Load()
	if kids == nil {
		return nil
	}
	for _, c := range *kids {
		if c.key == *k {
			n.last.Store(c)
			return c
		}
	}
	for _, c := range *kids {
		if t.legal(&c.key, k) {
			return c
		}
	}
	return nil
}

// Find returns the plans for a segment that ends at n, or nil.
func (t *Trie[K, P]) Find(n *Node[K, P], end End) *Leaf[K, P] {
	if n == nil {
		return nil
	}
	ends := n.ends.Load()
	if ends == nil {
		return nil
	}
	for _, l := range *ends {
		if l.end == end {
			l.used.Store(t.clock.Add(1))
			return l
		}
	}
	return nil
}

// Plans of the leaf, in the order they are to be tried.
func (l *Leaf[K, P]) Plans() []P { return *l.plans.Load() }

// Exactly reports that a segment of these keys is of the leaf's own form, and not
// only one that the leaf's plans serve.
func (l *Leaf[K, P]) Exactly(n int, key func(i int) *K) bool {
	at := l.node
	for i := n - 1; i >= 0; i-- {
		if at.parent == nil || at.key != *key(i) {
			return false
		}
		at = at.parent
	}
	return at.parent == nil
}

// plansPerLeaf bounds the plans of one leaf: those beyond it guard on sizes and
// scalars that keep changing.
const plansPerLeaf = 8

// Add stores a plan for the segment with these keys and end, behind the plans
// that are there. It may evict the leaf used longest ago. visit is called for
// the node of every key, with a note that stays there: plans with a common
// beginning can tell each other what only the first one saw.
func (t *Trie[K, P]) Add(keys []K, end End, p P, visit func(i int, note *string)) *Leaf[K, P] {
	leaf, lost := t.add(keys, end, p, visit)
	t.tell(lost)
	return leaf
}

func (t *Trie[K, P]) add(keys []K, end End, p P, visit func(i int, note *string)) (leaf *Leaf[K, P], lost []P) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.root
	for i, k := range keys {
		n = n.child(k)
		visit(i, &n.note)
	}
	leaf = n.leaf(end)
	lost = leaf.set(append(append([]P(nil), leaf.Plans()...), p))
	leaf.used.Store(t.clock.Add(1))
	if _, held := t.leaves[leaf]; !held {
		leaf.keys = len(keys)
		t.leaves[leaf] = struct{}{}
		t.weight += leaf.weight()
	}
	for t.weight > t.limit && len(t.leaves) > 1 {
		lost = append(lost, t.drop(leaf)...)
	}
	return leaf, lost
}

// set gives a leaf its plans, of which the first go where there are too many.
func (l *Leaf[K, P]) set(plans []P) (lost []P) {
	over := max(0, len(plans)-plansPerLeaf)
	plans, lost = plans[over:], plans[:over:over]
	l.plans.Store(&plans)
	return lost
}

// Holds reports that a leaf was not evicted.
func (t *Trie[K, P]) Holds(l *Leaf[K, P]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, held := t.leaves[l]
	return held
}

// Update replaces the plans of a leaf by what change makes of them; it must not
// edit the list it is given. The first plans go where there are too many. It
// reports false, and does nothing, where the leaf was evicted.
func (t *Trie[K, P]) Update(l *Leaf[K, P], change func(plans []P) []P) bool {
	lost, held := t.update(l, change)
	t.tell(lost)
	return held
}

func (t *Trie[K, P]) update(l *Leaf[K, P], change func(plans []P) []P) (lost []P, held bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, held = t.leaves[l]; held {
		lost = l.set(change(l.Plans()))
	}
	return lost, held
}

// All visits the leaves there are, in no order, with the keys that lead to them.
func (t *Trie[K, P]) All(visit func(keys []K, end End, plans []P)) {
	t.mu.Lock()
	leaves := make([]*Leaf[K, P], 0, len(t.leaves))
	for l := range t.leaves {
		leaves = append(leaves, l)
	}
	t.mu.Unlock()
	for _, l := range leaves {
		var keys []K
		for n := l.node; n.parent != nil; n = n.parent {
			keys = append(keys, n.key)
		}
		slices.Reverse(keys)
		visit(keys, l.end, l.Plans())
	}
}

// Note is what Add's visitors kept at n; empty off the trie.
func (t *Trie[K, P]) Note(n *Node[K, P]) string {
	if n == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return n.note
}

// Len is the number of leaves, Evictions how many were dropped so far.
func (t *Trie[K, P]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.leaves)
}

func (t *Trie[K, P]) Evictions() int64 { return t.evict.Load() }

func (n *Node[K, P]) child(k K) *Node[K, P] {
	var kids []*Node[K, P]
	if p := n.kids.Load(); p != nil {
		kids = *p
	}
	for _, c := range kids {
		if c.key == k {
			n.last.Store(c) // a step at the time of an eviction may have left a dead one there
			return c
		}
	}
	c := &Node[K, P]{parent: n, key: k}
	grown := append(append(make([]*Node[K, P], 0, len(kids)+1), kids...), c)
	n.kids.Store(&grown)
	n.last.Store(c)
	return c
}

func (n *Node[K, P]) leaf(end End) *Leaf[K, P] {
	var ends []*Leaf[K, P]
	if p := n.ends.Load(); p != nil {
		ends = *p
	}
	for _, l := range ends {
		if l.end == end {
			return l
		}
	}
	l := &Leaf[K, P]{end: end, node: n}
	l.plans.Store(new([]P))
	grown := append(append(make([]*Leaf[K, P], 0, len(ends)+1), ends...), l)
	n.ends.Store(&grown)
	return l
}

// drop evicts the leaf used longest ago, but not keep, and the nodes that
// lead nowhere without it. A stream that stands on such a node simply finds
// nothing there.
func (t *Trie[K, P]) drop(keep *Leaf[K, P]) (lost []P) {
	var old *Leaf[K, P]
	for l := range t.leaves {
		if l != keep && (old == nil || l.used.Load() < old.used.Load()) {
			old = l
		}
	}
	if old == nil {
		return nil
	}
	delete(t.leaves, old)
	t.weight -= old.weight()
	t.evict.Add(1)
	n := old.node
	n.ends.Store(without(n.ends.Load(), old))
	for n.parent != nil && empty(n.ends.Load()) && empty(n.kids.Load()) {
		p := n.parent
		p.kids.Store(without(p.kids.Load(), n))
		p.last.CompareAndSwap(n, nil)
		n = p
	}
	return old.Plans()
}

func empty[T any](list *[]T) bool { return list == nil || len(*list) == 0 }

func without[T comparable](list *[]T, gone T) *[]T {
	kept := make([]T, 0, len(*list))
	for _, e := range *list {
		if e != gone {
			kept = append(kept, e)
		}
	}
	return &kept
}
