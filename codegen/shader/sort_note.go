package shader

import (
	"errors"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// SortShader says which of the shaders that sort one is. They are no kernel's, and
// are kept from one process to the next as kernels' are: see NoteKey.
type SortShader struct {
	Step       SortStep
	DT         ir.DType // of elements
	Descending bool
}

// stepNames are those of steps in keys.
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

// sortWord begins the key of a sort's shader, which is one line.
const sortWord = "sort "

// NoteKey is the key that it is kept under.
func (x SortShader) NoteKey() string { return sortWord + x.String() }

// readSort reads what NoteKey has behind the word.
func readSort(text string) (x SortShader, err error) {
	step, rest, _ := strings.Cut(text, " ")
	at := slices.Index(stepNames[:], step)
	if at >= 0 {
		x.Step = SortStep(at)
	}
	if x.Step == SortKeys {
		name, order, _ := strings.Cut(rest, " ")
		x.DT, _ = ir.ParseDType(name)
		x.Descending = order != ""
	}
	if at < 0 || x.String() != text {
		return x, errors.New("shader: a key of no step of a sort")
	}
	return x, nil
}
