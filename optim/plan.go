package optim

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace"
)

// plan has a line for each option that all ranks must have in common. Learning rates are found by the
// comparison of parameters.
func (j *joint) plan() []string {
	o, s := j.s.o, j.s
	lines := []string{
		"rule " + o.rule.name,
		fmt.Sprintf("step %d of the optimiser", s.number),
		fmt.Sprintf("%d leaves", j.opt.Leaves),
		fmt.Sprintf("SameEvery %d", j.opt.SameEvery),
		fmt.Sprintf("Accumulate(%d)", s.steps),
	}
	is := func(on bool, name, value string) {
		if !on {
			name, value = "no "+name, ""
		}
		lines = append(lines, name+value)
	}
	is(j.opt.Wire != millrace.Invalid, "Wire", fmt.Sprintf(" %v", j.opt.Wire))
	is(j.opt.Sharded, "Sharded", "")
	is(s.dt != millrace.Invalid, "Compute", fmt.Sprintf("(%v)", s.dt))
	is(s.random != nil, "Random", "")
	is(s.finite, "CheckFinite", "")
	is(o.clipNorm > 0, "ClipNorm", fmt.Sprintf("(%v)", o.clipNorm))
	is(o.clipValue > 0, "ClipValue", fmt.Sprintf("(%v)", o.clipValue))
	var scale Scaling
	if o.scaling != nil {
		scale = o.scaling.Scaling
	}
	is(o.scaling != nil, "LossScale", fmt.Sprintf("(%+v)", scale))
	for i, g := range o.groups {
		h := g.settings
		h.rate = nil
		options := strings.Replace(fmt.Sprintf("%+v", h), "rate:<nil> ", "", 1)
		lines = append(lines, fmt.Sprintf("group %d of %d parameters: %s", i, len(g.params), options))
	}
	return lines
}
