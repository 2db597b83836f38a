package cpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
)

// ShipFlags are the flags with which generated packages are compiled: those that cgo accepts
// without permission. The C text itself sets the other options.
const ShipFlags = "-O3 -g1 -std=c11 -fno-strict-aliasing"

// objectKernels is the most kernels in one object: more would only need more compiler memory at
// once.
const objectKernels = 32

// ShipSource is the C of a generated package.
type ShipSource struct {
	Objects []ShipObject
	Kernels []ShippedKernel
	// Left are the notes without code, unchanged, with the reason.
	Left []LeftNote
}

// ShipObject is a file of C for each ISA level. If Condition is true, each file defines a table
// named after the object and the level, which goes into [Library.Objects].
type ShipObject struct {
	Name  string
	Files [ShipLevels]ShipFile
}

// ShipFile is the file for one level.
type ShipFile struct {
	Level     string // for example "avx2"
	Table     string // the C name
	Condition string // for the preprocessor; "" if always true
	Text      string
}

// LeftNote is a kernel without code, and the reason.
type LeftNote struct {
	Note string
	Err  error
}

// PrintShipped prints kernels that ran, given by the keys of cache entries of [KindKernel]. C
// names begin with prefix. The result depends only on the set of arguments, not on the order or
// number of notes.
func PrintShipped(prefix string, notes []string) (*ShipSource, error) {
	notes = slices.Compact(slices.Sorted(slices.Values(notes)))
	src := &ShipSource{}
	groups := map[int][]shipUnit{} // by width
	for _, text := range notes {
		u, err := unitOf(text)
		if err != nil {
			src.Left = append(src.Left, LeftNote{text, err})
			continue
		}
		groups[u.width] = append(groups[u.width], u)
	}
	for _, width := range []int{4, 8} {
		for list := range slices.Chunk(groups[width], objectKernels) {
			if err := src.object(prefix, list); err != nil {
				return nil, err
			}
		}
	}
	return src, nil
}

// shipUnit is a note to be printed as C.
type shipUnit struct {
	*Note
	width  int
	phases *codegen.Schedule
	form   string
}

// unitOf checks everything that can go wrong: a unit that it returns can be printed.
func unitOf(text string) (u shipUnit, err error) {
	if u.Note, err = ParseNote(text); err != nil {
		return u, err
	}
	if u.phases, err = lowerForC(u.Kernel, codegen.PhaseOptions{Recompute: u.thin}); err != nil {
		return u, err
	}
	if _, err = planPhases(u.phases); err != nil {
		return u, err
	}
	units := unitsOf(u.phases, &u.key, kernelSymbol)
	u.form = formOf(u.phases, units)
	for _, isa := range levelISAs {
		if _, err = cgo.PrintUnits(units, isa); err != nil {
			return u, err
		}
	}
	u.width, err = cgo.Width(units)
	return u, err
}

// object prints kernels of one width.
func (s *ShipSource) object(prefix string, list []shipUnit) error {
	n := len(s.Objects)
	o := ShipObject{Name: fmt.Sprintf("%s_%d", prefix, n)}
	for level, isa := range levelISAs {
		f := &o.Files[level]
		f.Level, f.Table = levelNames[level], fmt.Sprintf("%s_%s", o.Name, levelNames[level])
		if isa.Target != "" {
			f.Condition = cgo.X86
		}
		var units []cgo.Unit
		for i := range list {
			units = append(units, unitsOf(list[i].phases, &list[i].key, fmt.Sprintf("%s_k%d", f.Table, i))...)
		}
		var err error
		if f.Text, err = cgo.PrintStatic(units, isa, tableText(f.Table, units)); err != nil {
			return err
		}
	}
	first := 1
	for i := range list {
		u := &list[i]
		s.Kernels = append(s.Kernels, ShippedKernel{Kernel: u.Kernel.String(), Layout: u.Layout, Form: u.form, Object: n, First: first, Phases: len(u.phases.Phases)})
		first += len(u.phases.Phases)
	}
	s.Objects = append(s.Objects, o)
	return nil
}

// tableText returns the C of an object's probe and of the table of its functions.
func tableText(name string, units []cgo.Unit) string {
	var b strings.Builder
	b.WriteString(cgo.Probe(name + "_probe"))
	fmt.Fprintf(&b, "\nvoid (*const %s[])(void) = {\n\t(void (*)(void))%s_probe,\n", name, name)
	for i := range units {
		fmt.Fprintf(&b, "\t(void (*)(void))%s,\n", units[i].Name)
	}
	b.WriteString("};\n")
	return b.String()
}
