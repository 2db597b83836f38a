package shader

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// SortShader identifies one of the shaders that sort. They belong to no kernel, and are kept for
// later processes like kernels' shaders: see NoteKey.
type SortShader struct {
	Step       SortStep
	DT         ir.DType // of elements
	Descending bool
	Size       uint8 // bytes of an element in memory, if they are narrower than a word
}

// stepNames are the names of steps in keys.
var stepNames = [...]string{SortKeys: "keys", SortLocal: "local", SortWide: "wide", SortTake: "take", SortPlace: "place"}

// String is the step, and the rest on which its text depends: only the step that makes keys depends
// on the elements' type, and only steps that access elements on their size.
func (x SortShader) String() string {
	name := stepNames[x.Step]
	if x.Step == SortKeys {
		name += " " + x.DT.String()
		if x.Descending {
			name += " descending"
		}
	}
	if x.Size > 0 && (x.Step == SortKeys || x.Step == SortTake) {
		name += " size=" + strconv.Itoa(int(x.Size))
	}
	return name
}

// sortWord begins the key of a sort's shader, which is one line.
const sortWord = "sort "

// NoteKey is the key under which the shader is kept.
func (x SortShader) NoteKey() string { return sortWord + x.String() }

// readSort reads the part of a NoteKey behind the word.
func readSort(text string) (x SortShader, err error) {
	words := strings.Split(text, " ")
	at := slices.Index(stepNames[:], words[0])
	if at >= 0 {
		x.Step = SortStep(at)
	}
	for _, w := range words[1:] {
		size, narrow := strings.CutPrefix(w, "size=")
		switch {
		case narrow:
			x.Size = uint8(slices.Index([]string{"", "1", "2"}, size)) // another is found below
		case w == "descending":
			x.Descending = true
		default:
			x.DT, _ = ir.ParseDType(w)
		}
	}
	if at < 0 || int(x.Size) >= ElemSize || x.String() != text {
		return x, errors.New("shader: the key is not that of a step of a sort")
	}
	return x, nil
}
