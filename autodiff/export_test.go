package autodiff

import (
	"slices"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// RuleNames are the names of all rules with a derivative.
func RuleNames() []string {
	var names []string
	for _, r := range composites {
		names = append(names, nameOf(r))
	}
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
			names = append(names, nameOf(n.rule))
		}
	}
	return names
}

// nameOf is the name of a composite that has a rule.
func nameOf(r *rule) string {
	name, _, _ := strings.Cut(r.of.Name(), "[")
	return strings.ToLower(name)
}
