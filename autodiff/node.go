package autodiff

import (
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/follow"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/operror"
)

type tensor = millrace.Tensor

// node is an op that was followed, or a watched tensor. Nodes point at those of their
// operands and at nothing else: what nobody can reach any more is the collector's.
type node struct {
	seq   uint64 // in order of recording
	call  *follow.Call[tensor]
	rule  *rule // nil: a leaf
	where operror.Trail
	in    [3]link    // of the operands; a group has its own list
	kinds [3]kind    // of the operands
	kept  [4]*tensor // operands and, last, the result, as far as the rule asks for them
	group *group     // Custom and Checkpoint
	made  *tensor    // the result

	mu    sync.Mutex     // of what follows, and of the links once others have the node
	debug bool           // CheckFinite: made is kept; this never changes
	gone  bool           // given up
	users int32          // walks that are at the node: the last one gives up what it kept
	by    *operror.Trail // who gave it up
	ended bool           // that was the end of the function that recorded it, and no Grad
}

// link is where an operand comes from: result out of a node, nil for none.
type link struct {
	*node
	out int
}

// output is what results of a group carry: which one they are.
type output struct{ link }

// kind is an operand's dtype and its shape, which is the operand's own: it is read only.
type kind struct {
	dt    millrace.DType
	shape []int
}

func kindOf(t *tensor) kind { return kind{t.DType(), follow.Shape(t)} }

var recorded atomic.Uint64

// linkOf is what a tensor carries.
func linkOf(t *tensor) link { return asLink(follow.Node(t)) }

func asLink(carried any) link {
	switch n := carried.(type) {
	case *node:
		return link{n, 0}
	case *output:
		return n.link
	}
	return link{}
}

// operands are the links of all operands, in buf if they fit. Some walks look at them while
// others cut them.
func (n *node) operands(buf []link) []link {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.group != nil {
		return append(buf, n.group.in...)
	}
	return append(buf, n.in[:]...)
}

// cut has the node lead nowhere, unless a walk is there.
func (n *node) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.users == 0 {
		n.in = [3]link{}
		if n.group != nil {
			n.group.in = nil
		}
	}
}

func init() { follow.Hook = hook }

// hook makes the node of an op, nil where no derivative goes through it.
func hook(c *follow.Call[tensor]) any {
	r := ruleOf(c)
	if !c.Out.DType().IsFloat() || r != nil && r.none != "" {
		drop(c.In[:]...)
		return nil
	}
	n := &node{seq: recorded.Add(1), call: c, rule: r, where: operror.TrailHere()}
	for i, t := range c.In {
		if t == nil {
			continue
		}
		n.in[i], n.kinds[i] = linkOf(t), kindOf(t)
		n.debug = n.debug || n.in[i].node != nil && n.in[i].debug
	}
	if r == nil { // there is nothing to keep, and Grad says so
		drop(c.In[:]...)
		c.In, c.Out = [3]*tensor{}, nil
		return n
	}
	keeps := r.keepsOf(n.attr())
	for i, t := range c.In {
		if t == nil || twice(c.In[:], i) {
			continue
		}
		if n.needs(keeps, i, t) {
			follow.Adopt(t)
			for k := i; k < len(c.In); k++ {
				if c.In[k] == t {
					n.kept[k] = t
				}
			}
			continue
		}
		follow.Drop(t)
	}
	if keeps&result != 0 {
		n.kept[3] = follow.Hold(c.Out).(*tensor)
	}
	if n.debug {
		n.made = follow.Hold(c.Out).(*tensor)
	}
	c.In, c.Out = [3]*tensor{}, nil
	return n
}

// needs reports that the rule asks for operand i, at whichever places t stands.
func (n *node) needs(keeps keeps, i int, t *tensor) bool {
	for k := i; k < len(n.call.In); k++ {
		if n.call.In[k] == t && keeps&(operand0<<k) != 0 && n.rule.wanted(n, k) {
			return true
		}
	}
	return false
}

// twice reports that operand i stood before.
func twice(in []*tensor, i int) bool {
	for _, t := range in[:i] {
		if t == in[i] {
			return true
		}
	}
	return false
}

func drop(in ...*tensor) {
	for i, t := range in {
		if t != nil && !twice(in, i) {
			follow.Drop(t)
		}
	}
}

// enter has the node keep what it does until leave; false says that it was given up.
func (n *node) enter() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.gone {
		return false
	}
	n.users++
	return true
}

// stay is enter for who is at the node already.
func (n *node) stay() {
	n.mu.Lock()
	n.users++
	n.mu.Unlock()
}

func (n *node) leave() {
	n.mu.Lock()
	n.users--
	last := n.users == 0 && n.gone
	n.mu.Unlock()
	if last {
		n.letGo()
	}
}

// release gives up what the node keeps, which goes when no walk needs it any more.
func (n *node) release(by *operror.Trail) {
	n.mu.Lock()
	first := !n.gone && !n.leaf()
	if first {
		n.gone, n.by = true, by
	}
	last := first && n.users == 0
	n.mu.Unlock()
	if last {
		n.letGo()
	}
}

// letGo is called once: by the last who might use what the node keeps.
func (n *node) letGo() {
	letGo(n.kept[:]...)
	letGo(n.made)
	n.kept, n.made = [4]*tensor{}, nil
	if n.group != nil {
		n.group.release()
	}
}

// givenUp reports that the node keeps nothing any more.
func (n *node) givenUp() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.gone
}

// leaf reports a watched tensor: it keeps nothing, and is used again.
func (n *node) leaf() bool { return n.call == nil && n.group == nil }

// results is how many the op has.
func (n *node) results() int {
	if n.group != nil {
		return n.group.results
	}
	return 1
}

// letGo ends handles that were adopted or held, of which some may be there twice.
func letGo(ts ...*tensor) {
	for i, t := range ts {
		if t != nil && !twice(ts, i) {
			follow.LetGo(t)
		}
	}
}

// name of the op, for messages.
func (n *node) name() string {
	switch {
	case n.group != nil:
		return n.group.name
	case n.call == nil:
		return "watched tensor"
	}
	return n.call.Name
}

// at is where the op was recorded.
func (n *node) at() string { return n.where.String() }

// attr of the op, never nil.
func (n *node) attr() *ir.Attr {
	if n.call.Attr == nil {
		return &noAttr
	}
	return n.call.Attr
}

var noAttr ir.Attr
