package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

type tensor = millrace.Tensor

// dtypes are all there are, in the order in which an example's is chosen.
var dtypes = []millrace.DType{
	millrace.Float32, millrace.Float64, millrace.Float16, millrace.BFloat16, millrace.Int32, millrace.Int64, millrace.Int16, millrace.Int8,
	millrace.Uint32, millrace.Uint64, millrace.Uint16, millrace.Uint8, millrace.Bool,
}

// classes are sets of dtypes that have a name.
var classes = []struct {
	name string
	has  func(millrace.DType) bool
}{
	{"all", func(millrace.DType) bool { return true }},
	{"numbers", func(dt millrace.DType) bool { return dt != millrace.Bool }},
	{"floats", millrace.DType.IsFloat},
	{"integers", millrace.DType.IsInt},
	{"bool, integers", func(dt millrace.DType) bool { return !dt.IsFloat() }},
}

// A probe runs examples.
type probe struct {
	device *millrace.Device
	told   []string // what autodiff was told of since the last call
}

func newProbe() (*probe, error) {
	d, err := millrace.Default()
	p := &probe{device: d}
	adhook.Told = func(name string) { p.told = append(p.told, name) }
	return p, err
}

// A finding is what a row says of its example.
type finding struct{ dtypes, gradient, example, prints string }

func (p *probe) find(r optable.Op, f function, text string) (finding, error) {
	var takes, gives []millrace.DType
	var shown []*tensor
	found := finding{dtypes: r.Documented}
	for _, dt := range dtypes {
		o := optable.NewIn(p.device, dt)
		if r.OnMask {
			o.Masked()
		}
		out := r.Run(o)
		err := failure(out)
		switch {
		case err == nil:
			if shown == nil {
				shown, found.example = out, exampleOf(text, dt)
			}
			takes, gives = append(takes, dt), append(gives, out[0].DType())
		case !errors.Is(err, millrace.ErrDType):
			return finding{}, errorf("the example of %s, of %v: %w", r.Name, dt, err)
		}
	}
	if shown == nil {
		return finding{}, errorf("the example of %s takes no dtype", r.Name)
	}
	if r.Documented == "" {
		found.dtypes = setName(takes) + result(takes, gives, f)
	}
	if !r.Quiet {
		var all []string
		for _, t := range shown {
			all = append(all, compact(t))
		}
		found.prints = strings.Join(all, ", ")
	}
	var err error
	found.gradient, err = p.gradient(r, f, text, takes[0])
	return found, err
}

func failure(ts []*tensor) error {
	for _, t := range ts {
		if err := t.Eval(); err != nil {
			return err
		}
	}
	return nil
}

// setName is the name of a set of dtypes, or a list of them.
func setName(set []millrace.DType) string {
	for _, c := range classes {
		if !slices.ContainsFunc(dtypes, func(dt millrace.DType) bool { return c.has(dt) != slices.Contains(set, dt) }) {
			return c.name
		}
	}
	var names []string
	for _, dt := range set {
		names = append(names, dt.String())
	}
	return strings.Join(names, ", ")
}

// result says which dtype the result has where it is not the operands'.
func result(takes, gives []millrace.DType, f function) string {
	switch {
	case slices.Equal(takes, gives) && (len(takes) > 1 || !f.dt):
		return ""
	case f.dt:
		return " → dt"
	}
	if i := slices.IndexFunc(gives, func(dt millrace.DType) bool { return dt != gives[0] }); i >= 0 {
		return fmt.Sprintf(" → %v or %v", gives[0], gives[i])
	}
	return fmt.Sprintf(" → %v", gives[0])
}

// gradient says how the gradient of an example by its operands is found: by a rule, step
// by step, as 0, or not at all.
func (p *probe) gradient(r optable.Op, f function, text string, dt millrace.DType) (string, error) {
	if !f.takes {
		return "", nil
	}
	kinds := map[string][]string{} // of operands, by name, in the order of the text
	var order []string
	asked := map[string]bool{}
	for _, m := range given.FindAllStringSubmatch(text, -1) {
		o := optable.NewIn(p.device, dt)
		t := o.Operands()[m[1]]
		if t == nil || asked[m[1]] || !(*t).DType().IsFloat() {
			continue
		}
		asked[m[1]] = true
		kind, err := p.by(r, &o, t)
		if err != nil {
			return "", errorf("the gradient of %s by %s: %w", r.Name, m[1], err)
		}
		if kinds[kind] == nil {
			order = append(order, kind)
		}
		kinds[kind] = append(kinds[kind], "`"+m[1]+"`")
	}
	switch {
	case len(order) == 0:
		return "no", nil
	case len(order) == 1:
		return order[0], nil
	case kinds["no"] == nil && kinds["0"] == nil:
		return "steps", nil
	}
	var parts []string
	for _, kind := range order {
		parts = append(parts, kind+" by "+strings.Join(kinds[kind], ", "))
	}
	return strings.Join(parts, ", "), nil
}

// by is how the gradient by one operand, the one of o at t, is found.
func (p *probe) by(r optable.Op, o *optable.In, t **tensor) (string, error) {
	w := autodiff.Watch(*t)
	*t, p.told = w, nil
	out := r.Run(*o)
	told := len(p.told)
	i := slices.IndexFunc(out, autodiff.Watched)
	if i < 0 {
		i = 0
	}
	if !out[i].DType().IsFloat() {
		return "no", nil
	}
	grads, err := autodiff.Grad(out[i].Cast(w.DType()).Sum().Add(w.Sum()), w)
	switch {
	case errors.Is(err, autodiff.ErrGraph):
		return "no", nil
	case err != nil:
		return "", err
	case failure(grads) != nil:
		return "", failure(grads)
	case autodiff.Watched(out[i]) && told > 1:
		return "steps", nil
	case autodiff.Watched(out[i]):
		return "rule", nil
	}
	same, err := millrace.Equal(grads[0], millrace.OnesOn(w.Stream(), w.DType(), w.Shape()...))
	if err == nil && !same {
		err = errors.New("it is not followed, and yet adds to a gradient")
	}
	return "0", err
}

// number is one with a point, and the blanks that follow it in a column.
var number = regexp.MustCompile(`\d+\.\d*( +\])?`)

// compact prints a tensor in one line.
func compact(t *tensor) string {
	s := strings.Join(strings.Fields(millrace.PrintOptions{Threshold: -1, Precision: 4}.Sprint(t)), " ")
	s = strings.ReplaceAll(s, "[ ", "[")
	return number.ReplaceAllStringFunc(s, func(n string) string {
		digits, end := strings.CutSuffix(n, "]")
		digits = strings.TrimSuffix(strings.TrimRight(strings.TrimRight(digits, " "), "0"), ".")
		if end {
			digits += "]"
		}
		return digits
	})
}
