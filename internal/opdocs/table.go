package main

// A page is a file of docs/operations.
type page struct {
	file, title, intro string
	groups             []group
}

// A group is a table of a page.
type group struct {
	title, intro string
	rows         []row
}

// A row is one operation: its name as package documentation has it, and an example, a
// func(o in) of one return statement. The example's text is printed in the row.
type row struct {
	name string
	call any

	dtypes string // where probing cannot tell: an operation whose dtype is a type parameter, say
	quiet  bool   // the result is not printed: it is long
	onMask bool   // it is the mask m that is tried with every dtype
}

// op is a row with an example.
func op(name string, call any) row { return row{name: name, call: call} }

// plain is a row without one.
func plain(name string) row { return row{name: name} }

func (r row) silent() row { r.quiet = true; return r }

func (r row) mask() row { r.onMask = true; return r }

func (r row) of(dtypes string) row { r.dtypes = dtypes; return r }

const folder = "docs/operations/"

var pages = []page{
	{"elementwise.md", "Elementwise operations", "Operands are broadcast as in NumPy. A form with `Scalar` takes a number in place of a tensor.", elementwise},
	{"reductions.md", "Reductions, sorts and rows", "Reductions take any number of axes, none for all of them. A form with `Keep` keeps the axes with size 1.", reductions},
	{"shapes.md", "Views, movement and indices", "Views copy nothing.", shapes},
	{"contractions.md", "Matmul, convolutions, transforms, linear algebra", "", contractions},
	{"create.md", "Making tensors", "A form with `On` takes a place first: a device, a stream, a scope, or another tensor's `Stream`.", creation},
	{"reading.md", "Reading values, and handles", "These are not recorded: they run what is needed, or ask about a handle.", reading},
}

// complete reports rows without a function, and functions on tensors without a row.
func complete(funcs map[string]function, texts map[string]string) error {
	seen := map[string]bool{}
	for _, p := range pages {
		for _, g := range p.groups {
			for _, r := range g.rows {
				switch {
				case seen[r.name]:
					return errorf("two rows for %s", r.name)
				case funcs[r.name].name == "":
					return errorf("a row for %s, which there is not", r.name)
				case r.call != nil && texts[r.name] == "":
					return errorf("the example of %s is no function with one return statement", r.name)
				}
				seen[r.name] = true
			}
		}
	}
	for _, f := range sorted(funcs) {
		if f.tensors && !seen[f.name] && elsewhere[f.name] == "" {
			return errorf("%s has no row: give it one in internal/opdocs/rows_*.go, then go generate ./internal/opdocs", f.name)
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
