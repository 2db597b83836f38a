package segment

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Trie holds the known plans of a device by the relative operations that they cover. A hot stream
// moves down one node per operation: it compares the operation's key with that of the child taken
// last, without hashing or locking.
//
// K is the relative form of an operation. legal reports whether a plan made for key have serves an
// operation with key k. P is what the caller stores for a plan.
type Trie[K comparable, P any] struct {
	legal func(have, k *K) bool
	limit int
	lost  func(P) // see OnDrop; may be nil

	mu     sync.Mutex // guards growth and eviction
	root   *Node[K, P]
	leaves map[*Leaf[K, P]]struct{}
	weight int // of all leaves
	clock  atomic.Uint64
	evict  atomic.Int64
}

// Node is a place in the trie. A nil Node is the place off the trie, from which every step leads
// to nil again.
type Node[K comparable, P any] struct {
	parent *Node[K, P]
	key    K
	last   atomic.Pointer[Node[K, P]]    // child taken last
	kids   atomic.Pointer[[]*Node[K, P]] // immutable list
	ends   atomic.Pointer[[]*Leaf[K, P]] // immutable list
	note   string                        // a string for the visitors of Add
}

// End says why a segment ended and which result was needed: the last edge of a plan.
type End struct {
	Reason Reason
	ID     int32 // relative id that is read or handed over, else -1
	// All says that every result that a handle still names is written, because recipes keep too
	// much memory in use.
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

// Leaf holds the plans of one segment, in the order in which they are tried.
type Leaf[K comparable, P any] struct {
	end   End
	node  *Node[K, P]
	plans atomic.Pointer[[]P]
	used  atomic.Uint64
	keys  int // number of keys that lead to it
}

// keysPerLeaf: long segments have large plans, so a leaf weighs one more for each so many keys.
const keysPerLeaf = 256

func (l *Leaf[K, P]) weight() int { return 1 + l.keys/keysPerLeaf }

// NewTrie makes an empty trie that holds at most limit leaves, and fewer if their segments are
// long.
func NewTrie[K comparable, P any](limit int, legal func(have, k *K) bool) *Trie[K, P] {
	return &Trie[K, P]{
		legal:  legal,
		limit:  limit,
		root:   &Node[K, P]{},
		leaves: make(map[*Leaf[K, P]]struct{}),
	}
}

// OnDrop sets a function to call for each plan that was dropped to make room, when it can no longer
// be found. It must be called before the trie is used.
func (t *Trie[K, P]) OnDrop(lost func(P)) { t.lost = lost }

func (t *Trie[K, P]) tell(lost []P) {
	for _, p := range lost {
		if t.lost != nil {
			t.lost(p)
		}
	}
}

// Root is the node at which every segment starts.
func (t *Trie[K, P]) Root() *Node[K, P] { return t.root }

// Step moves down by one operation: to the child with exactly this key, else to one whose plans are
// legal for it, else off the trie.
func (t *Trie[K, P]) Step(n *Node[K, P], k *K) *Node[K, P] {
	if n == nil {
		return nil
	}
	if c := n.last.Load(); c != nil && c.key == *k { // a program mostly repeats what it did last time
		return c
	}
	return t.search(n, k)
}

// Predicted returns the child taken last and its key: the operation that comes next if the program
// repeats itself. It returns nil if no child was taken yet.
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

// Plans returns the plans of the leaf, in the order in which they are tried.
func (l *Leaf[K, P]) Plans() []P { return *l.plans.Load() }

// Exactly reports that a segment with these keys has the leaf's own form. It returns false for
// other forms, even if the leaf's plans serve them.
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

// plansPerLeaf limits the plans of one leaf. A leaf with more has guards on sizes and scalars that
// keep changing.
const plansPerLeaf = 8

// Add stores a plan for the segment with these keys and end, after the plans already there. It may
// evict the leaf unused for longest. It calls visit for the node of every key, with a note that
// stays in the node: a plan can leave information there for plans with the same beginning.
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

// set sets the plans of a leaf. If there are too many, it drops the first ones.
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

// Update replaces the plans of a leaf by the result of change, which must not edit the list that it
// is given. If there are too many, the first ones are dropped. Update does nothing and returns
// false if the leaf was evicted.
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

// All visits all leaves, in no order, with the keys that lead to them.
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

// Note returns the note that Add's visitors left at n; "" off the trie.
func (t *Trie[K, P]) Note(n *Node[K, P]) string {
	if n == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return n.note
}

// Len is the number of leaves; Evictions is the number of leaves dropped so far.
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
			n.last.Store(c) // a step during an eviction may have left a dropped node there
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

// drop evicts the leaf unused for longest, but not keep, and the nodes that lead only to it. A
// stream that stands on such a node finds no plan there.
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
