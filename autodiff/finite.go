package autodiff

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
)

// firstNotFinite checks results for NaN and infinities. If it finds one, the error names the first
// op that made one.
func firstNotFinite(outs []*tensor) error {
	for i, t := range outs {
		fine, err := finite(t)
		if err != nil {
			return err
		}
		if fine {
			continue
		}
		for _, n := range nodesOf(t) {
			if !n.enter() {
				continue
			}
			fine, err := true, error(nil)
			if n.made != nil {
				fine, err = finite(n.made)
			}
			if n.leave(); err != nil {
				return err
			} else if !fine {
				return fmt.Errorf("%w: result %d is not finite; the first op that made NaN or an infinity is %s at %s", ErrGraph, i, n.name(), n.at())
			}
		}
		return fmt.Errorf("%w: result %d is not finite; watch tensors with CheckFinite to find the op", ErrGraph, i)
	}
	return nil
}

// finite reads from the device whether all elements of t are finite.
func finite(t *tensor) (bool, error) {
	p := root.Plain(t)
	is := p.IsFinite()
	all := is.All()
	defer func() {
		root.Drop(p)
		letGo(is, all)
	}()
	return millrace.Item[bool](all)
}

// nodesOf are the nodes that a tensor was computed from, in the order of recording.
func nodesOf(t *tensor) (nodes []*node) {
	seen := map[*node]bool{}
	stack := []link{linkOf(t)}
	for len(stack) > 0 {
		l := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if l.node == nil || seen[l.node] {
			continue
		}
		seen[l.node] = true
		nodes = append(nodes, l.node)
		stack = l.operands(stack)
	}
	slices.SortFunc(nodes, func(a, b *node) int {
		if a.seq < b.seq {
			return -1
		}
		return 1
	})
	return nodes
}
