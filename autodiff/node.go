package autodiff

import (
	"slices"
	"sync"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
)

type tensor = millrace.Tensor

// node is an op that was followed, or a watched tensor. A node points to the nodes of its operands
// only, so the garbage collector frees nodes that no tensor leads to.
type node struct {
	seq   uint64 // number in the order of recording
	call  *adhook.Call[tensor]
	rule  *rule // nil: a leaf, or an op without a rule
	where operror.Trail
	in    [3]link    // links of the operands; a group has its own list
	kinds [3]kind    // dtypes and shapes of the operands
	kept  [4]*tensor // operands and, last, the result, if the rule needs them
	group *group     // Custom and Checkpoint
	made  *tensor    // the result, with CheckFinite

	mu    sync.Mutex     // guards the fields below, and the links once other goroutines can reach the node
	debug bool           // CheckFinite: made is kept; never changes
	gone  bool           // the node gave up what it kept
	users int32          // number of walks at the node; the last one releases what it kept
	by    *operror.Trail // where the call was that gave it up
	ended bool           // given up by the end of the function that recorded it, not by a Grad
}

// link says where an operand comes from: result out of a node, or nowhere if node is nil.
type link struct {
	*node
	out int
}

// output is the mark on a result of a group: which of the results it is.
type output struct{ link }

// kind is an operand's dtype and shape. The shape is shared with the operand: read only.
type kind struct {
	dt    millrace.DType
	shape []int
}

func kindOf(t *tensor) kind { return kind{t.DType(), root.Shape(t)} }

// root has the functions of package millrace that only this package calls.
var root = adhook.Of[tensor, millrace.Place]()

// mark is what a tensor carries: a *node or an *output.
type mark = adhook.Node[tensor]

// linkOf is the link of a tensor's node.
func linkOf(t *tensor) link { return asLink(root.Node(t)) }

func asLink(carried mark) link {
	switch n := carried.(type) {
	case *node:
		return link{n, 0}
	case *output:
		return n.link
	}
	return link{}
}

// operands are the links of all operands, in buf if it is large enough. It locks the node, because
// one walk may read links while another cuts them.
func (n *node) operands(buf []link) []link {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.group != nil {
		return append(buf, n.group.in...)
	}
	return append(buf, n.in[:]...)
}

// cut removes the node's links, unless a walk is at the node.
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

// Follow makes the node of an op, nil if no derivative goes through the op.
func (*node) Follow(c *adhook.Call[tensor]) mark {
	r := ruleOf(c)
	if !c.Out.DType().IsFloat() || r != nil && r.none != "" {
		drop(c.In[:]...)
		return nil
	}
	n := &node{seq: adhook.Count.Add(1), call: c, rule: r, where: operror.TrailHere()}
	for i, t := range c.In {
		if t == nil {
			continue
		}
		n.in[i], n.kinds[i] = linkOf(t), kindOf(t)
		n.debug = n.debug || n.in[i].node != nil && n.in[i].debug
	}
	if r == nil { // nothing to keep; Grad reports the missing rule
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
			root.Adopt(t)
			for k := i; k < len(c.In); k++ {
				if c.In[k] == t {
					n.kept[k] = t
				}
			}
			continue
		}
		root.Drop(t)
	}
	if keeps&result != 0 {
		n.kept[3] = root.Hold(c.Out)
	}
	if n.debug {
		n.made = root.Hold(c.Out)
	}
	c.In, c.Out = [3]*tensor{}, nil
	return n
}

// needs reports that the rule needs operand t, which is operand i and may be a later one, too.
func (n *node) needs(keeps keeps, i int, t *tensor) bool {
	for k := i; k < len(n.call.In); k++ {
		if n.call.In[k] == t && keeps&(operand0<<k) != 0 && n.rule.wanted(n, k) {
			return true
		}
	}
	return false
}

// twice reports that operand i is also an earlier operand.
func twice(in []*tensor, i int) bool {
	return slices.Contains(in[:i], in[i])
}

func drop(in ...*tensor) {
	for i, t := range in {
		if t != nil && !twice(in, i) {
			root.Drop(t)
		}
	}
}

// enter makes the node keep its values until leave; false if it has given them up.
func (n *node) enter() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.gone {
		return false
	}
	n.users++
	return true
}

// stay is enter for a caller that is at the node already.
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

// release gives up what the node keeps. It is freed when no walk is at the node.
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

// letGo is called once, when no walk needs the kept values any more.
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

// leaf reports a watched tensor. It keeps nothing and can always be used again.
func (n *node) leaf() bool { return n.call == nil && n.group == nil }

// results is the number of results of the op.
func (n *node) results() int {
	if n.group != nil {
		return n.group.results
	}
	return 1
}

// letGo releases handles that were adopted or held. The list may have duplicates.
func letGo(ts ...*tensor) {
	for i, t := range ts {
		if t != nil && !twice(ts, i) {
			root.LetGo(t)
		}
	}
}

// name is the op's name, for messages.
func (n *node) name() string {
	switch {
	case n.group != nil:
		return n.group.name
	case n.call == nil:
		return "watched tensor"
	}
	return n.call.Name
}

// at is the place where the op was recorded.
func (n *node) at() string { return n.where.String() }

// attr is the op's attributes, never nil.
func (n *node) attr() *ir.Attr {
	if n.call.Attr == nil {
		return &noAttr
	}
	return n.call.Attr
}

var noAttr ir.Attr
