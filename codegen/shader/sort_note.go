package shader

import "github.com/millrace-go/millrace/ir"

// SortShader says which of the shaders that sort one is. They are no kernel's.
type SortShader struct {
	Step       SortStep
	DT         ir.DType // of elements
	Descending bool
}

// stepNames are those of steps.
var stepNames = [...]string{SortKeys: "keys", SortLocal: "local", SortWide: "wide", SortTake: "take", SortPlace: "place"}

// String is the step, and what else its text depends on: only making keys knows what
// elements are.
func (x SortShader) String() string {
	name := stepNames[x.Step]
	if x.Step == SortKeys {
		name += " " + x.DT.String()
		if x.Descending {
			name += " descending"
		}
	}
	return name
}

// Print is Sort of it.
func (x SortShader) Print(d *Dialect) (source string, bindings []Binding, err error) {
	return Sort(d, x.Step, x.DT, x.Descending)
}
