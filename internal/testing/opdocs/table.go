package main

import (
	"slices"

	"github.com/millrace-go/millrace/internal/testing/optable"
)

// A page is a file of docs/operations.
type page struct{ file, title, intro string }

const folder = "docs/operations/"

var pages = []page{
	{"elementwise.md", "Elementwise operations", "Operands are broadcast as in NumPy. A form with `Scalar` takes a number in place of a tensor."},
	{"reductions.md", "Reductions, sorts and rows", "Reductions take any number of axes, none for all of them. A form with `Keep` keeps the axes with size 1."},
	{"shapes.md", "Views, movement and indices", "Views copy nothing."},
	{"contractions.md", "Matmul, convolutions, transforms, linear algebra", ""},
	{"create.md", "Making tensors", "A form with `On` takes a place first: a device, a stream, a scope, or another tensor's `Stream`."},
	{"reading.md", "Reading values, and handles", "These are not recorded: they run what is needed, or ask about a handle."},
}

// intros come before the tables of some groups.
var intros = map[string]string{
	"Arithmetic":        "Integers wrap. Integer division truncates as Go's does; by 0 it gives 0.",
	"Activations":       "Others, such as ELU and Mish, are functions of package nn.",
	"Comparisons":       "Results are bool.",
	"Normalisation":     "Compositions of the above, each one kernel with its neighbours.",
	"Counts and values": "Sizes of some of these results depend on values: what they need runs before they return.",
	"By index":          "Indices out of range are ErrIndex, unless an IndexMode says otherwise.",
	"Matmul":            "One kernel with the bias, activation and residual after it.",
	"Transforms":        "Complex numbers are pairs of tensors.",
	"Linear algebra":    "Package linalg computes these on the host in float64, of one matrix or a stack of them; they do not fuse.",
	"From Go values":    "Packages npy, safetensors, imagex and gonumx make tensors of files, images and matrices.",
	"Random":            "Draws depend on the seed only: a Generator gives seeds.",
}

// groups are the page's part of the table.
func (p page) groups() []optable.Group {
	return slices.DeleteFunc(slices.Clone(optable.Groups), func(g optable.Group) bool { return g.Page != p.file })
}

// complete reports rows without a function, and functions on tensors without a row.
func complete(funcs map[string]function, texts map[string]string) error {
	seen := map[string]bool{}
	for _, p := range pages {
		for _, g := range p.groups() {
			for _, r := range g.Ops {
				switch {
				case seen[r.Name]:
					return errorf("two rows for %s", r.Name)
				case funcs[r.Name].name == "":
					return errorf("a row for %s, which there is not", r.Name)
				case r.Example != nil && texts[r.Name] == "":
					return errorf("the example of %s is not a function with one return statement", r.Name)
				}
				seen[r.Name] = true
			}
		}
	}
	for _, f := range sorted(funcs) {
		if f.tensors && !seen[f.name] && elsewhere[f.name] == "" {
			return errorf("%s has no row: give it one in internal/testing/optable, then go generate ./internal/testing/opdocs", f.name)
		}
		if seen[f.name] && elsewhere[f.name] != "" {
			return errorf("%s has a row and a reason for having none", f.name)
		}
	}
	return nil
}

// elsewhere are functions with tensors in their signature that are no operations, with
// the reason.
var elsewhere = map[string]string{
	"NewRecording": "makes a Recording, of which docs/tutorial.md tells",
}
