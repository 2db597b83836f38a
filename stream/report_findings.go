package stream

import (
	"slices"

	"github.com/millrace-go/millrace/internal/report"
	"github.com/millrace-go/millrace/runtime"
)

// interpreter is a device that counts how often its interpreter ran a program.
type interpreter interface {
	Interpreted(runtime.Program) int64
}

// interpreted adds a program to slow if launches of it were interpreted. The finding has the
// first known line of the program's plan.
func (x *reporting) interpreted(prog runtime.Program, lines []string) {
	dev, ok := x.d.Driver.(interpreter)
	if !ok {
		return
	}
	n := dev.Interpreted(prog)
	if n == 0 || x.asked[prog] {
		return
	}
	x.asked[prog] = true
	key := prog.Kernel().Key()
	f := x.slow[key]
	if f.Line == "" {
		if i := slices.IndexFunc(lines, func(l string) bool { return l != "" }); i >= 0 {
			f.Line = lines[i]
		}
	}
	f.What, f.Count = "interpreted", f.Count+n
	if i, ok := x.byKey[key]; ok {
		f.Of = x.r.Kernels[i].Name
	}
	x.slow[key] = f
}

// findings lists the reasons why the program was slower than necessary: the findings of the
// profile and interpreted kernels, the most frequent first.
func (x *reporting) findings() {
	for _, f := range x.state.Found {
		x.r.Findings = append(x.r.Findings, report.Finding{What: f.What, Of: f.Of, Line: f.Line, Count: f.Count})
	}
	for _, f := range x.slow {
		x.r.Findings = append(x.r.Findings, f)
	}
	report.SortFindings(x.r.Findings)
}

// smallWork is the number of bytes, or of operations, up to which the fixed cost of a launch
// dominates.
const smallWork = 4096

// launch estimates the fixed cost of a launch in microseconds: the median time of kernels with at
// most smallWork. It is 0 if there are none.
func (x *reporting) launch() float64 {
	var each []float64
	for i := range x.r.Kernels {
		k := &x.r.Kernels[i]
		if k.Timed > 0 && k.Bytes <= smallWork && k.Flops <= smallWork {
			each = append(each, k.Micros/float64(k.Runs))
		}
	}
	if len(each) == 0 {
		return 0
	}
	slices.Sort(each)
	return each[len(each)/2]
}
