package shader

import (
	"errors"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// SortShader identifies one of the shaders that sort. They belong to no kernel, and are kept for
// later processes like kernels' shaders: see NoteKey.
type SortShader struct {
	Step       SortStep
	DT         ir.DType // of elements
	Descending bool
}

// stepNames are the names of steps in keys.
var stepNames = [...]string{SortKeys: "keys", SortLocal: "local", SortWide: "wide", SortTake: "take", SortPlace: "place"}

// String is the step, and the rest on which its text depends: only the step that makes keys depends
// on the elements' type.
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

// Print calls Sort.
func (x SortShader) Print(d *Dialect) (source string, bindings []Binding, err error) {
	return Sort(d, x.Step, x.DT, x.Descending)
}

// sortWord begins the key of a sort's shader, which is one line.
const sortWord = "sort "

// NoteKey is the key under which the shader is kept.
func (x SortShader) NoteKey() string { return sortWord + x.String() }

// readSort reads the part of a NoteKey behind the word.
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
		return x, errors.New("shader: the key is not that of a step of a sort")
	}
	return x, nil
}
