package autodiff

import (
	"maps"
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// RuleNames are the names of all rules with a derivative.
func RuleNames() []string {
	names := slices.Collect(maps.Keys(composites))
	for op, r := range rules {
		if r.back != nil {
			names = append(names, op.Info().Name)
		}
	}
	slices.Sort(names)
	return names
}

// RulesOf are the names of the rules that derivatives of t use.
func RulesOf(t *tensor) (names []string) {
	for _, n := range nodesOf(t) {
		switch {
		case n.call == nil || n.rule == nil:
		case n.call.Op != ir.OpInvalid:
			names = append(names, n.call.Op.Info().Name)
		default:
			names = append(names, n.call.Rule)
		}
	}
	return names
}
