package nn

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/safetensors"
)

// ErrMismatch says that a file and a module hold different parameters. For each kind of difference
// the text gives the number, the first names, and the [LoadOptions] that would help.
var ErrMismatch = errors.New("the file and the model differ")

// differences are those between a file's entries and parameters.
type differences struct {
	opt   LoadOptions
	infos map[string]safetensors.Info // entries without a parameter, by their new names

	shapes  []string
	dtypes  []string // the next field says how many of them Cast would fix
	floats  int
	missing []string
	surplus []string
	matched int // number of entries with a parameter
}

// compare adds the differences between a parameter and the entry of its name.
func (d *differences) compare(n Named, info safetensors.Info) {
	d.matched++
	shape, dt := n.shape(), n.t.DType()
	if !slices.Equal(info.Shape, shape) {
		text := fmt.Sprintf("%s is %v in the file and %v in the model", n.Name, info.Shape, shape)
		if len(shape) == 2 && len(info.Shape) == 2 && shape[0] == info.Shape[1] && shape[1] == info.Shape[0] {
			text += " (its transpose)"
		}
		d.shapes = append(d.shapes, text)
		return
	}
	floats := info.DType.IsFloat() && dt.IsFloat()
	if info.DType == dt || info.DType.IsInt() && dt.IsInt() || floats && d.opt.Cast {
		return
	}
	d.dtypes = append(d.dtypes, fmt.Sprintf("%s is %s in the file and %v in the model", n.Name, info.Stored, dt))
	if floats {
		d.floats++
	}
}

// err is ErrMismatch with the differences that are not allowed; params is the model's number of
// parameters.
func (d *differences) err(params int) error {
	var lines []string
	add := func(what, help string, names []string) {
		if len(names) == 0 {
			return
		}
		line := fmt.Sprintf("%s: %s", what, few(names))
		if help != "" {
			line += "; " + help
		}
		lines = append(lines, line)
	}
	add("of another shape", "", d.shapes)
	help := ""
	if d.floats > 0 {
		help = "nn.LoadOptions{Cast: true}.Load converts floats"
	}
	add("of another dtype", help, d.dtypes)
	if !d.opt.Partial {
		help = d.prefixed()
		if help == "" {
			help = "nn.LoadOptions{Partial: true}.Load leaves them as they are, Rename finds them by other names"
		}
		add("missing in the file", help, d.missing)
		help = "nn.LoadOptions{Partial: true}.Load leaves them out"
		add("missing in the model", help, d.surplus)
	} else if d.matched == 0 && params > 0 {
		help = d.prefixed()
		if help == "" {
			help = "Rename gives entries other names"
		}
		add("no entry has a parameter: the file has", help, d.surplus)
		add("the model has", "", d.missing)
		if len(lines) == 0 {
			lines = append(lines, "the file has no entries")
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n\t%s", ErrMismatch, strings.Join(lines, "\n\t"))
}

// few lists the first names, and the number of the others.
func few(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// prefixed suggests the fix if all missing names occur with one prefix, on either side.
func (d *differences) prefixed() string {
	if len(d.missing) == 0 || len(d.surplus) == 0 {
		return ""
	}
	if p, ok := prefix(d.missing, d.surplus); ok {
		return fmt.Sprintf("the file has them as %s: nn.Under(%q, model) is a part of these names", p+d.missing[0], strings.TrimSuffix(p, "."))
	}
	if p, ok := prefix(d.surplus, d.missing); ok {
		return fmt.Sprintf("the file has them without %q in front: Rename can put it there", p)
	}
	return ""
}

// prefix finds the one prefix with which all names occur in among.
func prefix(names, among []string) (string, bool) {
	for _, other := range among {
		p, ok := strings.CutSuffix(other, names[0])
		if !ok || !strings.HasSuffix(p, ".") {
			continue
		}
		if !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(among, p+n) }) {
			return p, true
		}
	}
	return "", false
}
