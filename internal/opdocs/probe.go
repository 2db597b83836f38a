package main

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/follow"
)

type tensor = millrace.Tensor

// in has the operands of an example.
type in struct {
	dt     millrace.DType // of the tensors of numbers
	device *millrace.Device

	x, y, p, q, v, a, b                        *tensor
	signal, taps, image, kernel, volume, block *tensor
	m                                          *tensor // bool
	i, at                                      *tensor // int32
}

// operands are the tensors of in by name.
func (o *in) operands() map[string]**tensor {
	return map[string]**tensor{
		"x": &o.x, "y": &o.y, "p": &o.p, "q": &o.q, "v": &o.v, "a": &o.a, "b": &o.b, "m": &o.m, "i": &o.i, "at": &o.at,
		"signal": &o.signal, "taps": &o.taps, "image": &o.image, "kernel": &o.kernel, "volume": &o.volume, "block": &o.block,
	}
}

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
	if hook, ok := follow.Hook.(func(*follow.Call[tensor]) any); ok {
		follow.Hook = func(c *follow.Call[tensor]) any {
			p.told = append(p.told, c.Name)
			return hook(c)
		}
	} else if err == nil {
		err = errors.New("autodiff's hook has another type")
	}
	return p, err
}

// operands of a dtype. Those of bool are true where the numbers are odd.
func (p *probe) operands(dt millrace.DType) in {
	make := func(v []float64, shape ...int) *tensor {
		t := millrace.FromSlice(v, shape...)
		if dt == millrace.Bool {
			return t.RemScalar(2).Cast(dt)
		}
		return t.Cast(dt)
	}
	return in{
		dt: dt, device: p.device,
		x: make([]float64{1, 2, 3, 4, 5, 6}, 2, 3), y: make([]float64{6, 5, 4, 3, 2, 1}, 2, 3), v: make([]float64{3, 1, 3, 0, 2}, 5),
		p: make([]float64{0, 0.25, 0.5}, 3), a: make([]float64{2, 1, 1, 3}, 2, 2), b: make([]float64{4, 7}, 2),
		q:      make([]float64{-2.5, -0.5, 1.25}, 3),
		signal: make([]float64{3, 1, 3, 0, 2}, 1, 1, 5), taps: make([]float64{1, 1}, 1, 1, 2),
		image: make([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, 1, 3, 3), kernel: make([]float64{1, 0, 0, 1}, 1, 1, 2, 2),
		volume: make([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, 1, 1, 3, 3), block: make([]float64{1, 0, 0, 1}, 1, 1, 1, 2, 2),
		m: millrace.FromSlice([]bool{true, false, true, false, true, false}, 2, 3),
		i: millrace.FromSlice([]int32{2, 0}), at: millrace.FromSlice([]int32{0, 1}),
	}
}

// run calls an example, and gives the tensors of its results.
func run(call any, o in) (all []*tensor) {
	for _, r := range reflect.ValueOf(call).Call([]reflect.Value{reflect.ValueOf(o)}) {
		switch t := r.Interface().(type) {
		case *tensor:
			all = append(all, t)
		case []*tensor:
			all = append(all, t...)
		}
	}
	return all
}

// A finding is what a row says of its example.
type finding struct{ dtypes, gradient, example, prints string }

func (p *probe) find(r row, f function, text string) (finding, error) {
	var takes, gives []millrace.DType
	var shown []*tensor
	found := finding{dtypes: r.dtypes}
	for _, dt := range dtypes {
		o := p.operands(dt)
		if r.onMask {
			o.m = o.x
		}
		out := run(r.call, o)
		err := failure(out)
		switch {
		case err == nil:
			if shown == nil {
				shown, found.example = out, exampleOf(text, dt)
			}
			takes, gives = append(takes, dt), append(gives, out[0].DType())
		case !errors.Is(err, millrace.ErrDType):
			return finding{}, errorf("the example of %s, of %v: %w", r.name, dt, err)
		}
	}
	if shown == nil {
		return finding{}, errorf("the example of %s takes no dtype", r.name)
	}
	if r.dtypes == "" {
		found.dtypes = setName(takes) + result(takes, gives, f)
	}
	if !r.quiet {
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
func (p *probe) gradient(r row, f function, text string, dt millrace.DType) (string, error) {
	if !f.takes {
		return "", nil
	}
	kinds := map[string][]string{} // of operands, by name, in the order of the text
	var order []string
	asked := map[string]bool{}
	for _, m := range given.FindAllStringSubmatch(text, -1) {
		o := p.operands(dt)
		t := o.operands()[m[1]]
		if t == nil || asked[m[1]] || !(*t).DType().IsFloat() {
			continue
		}
		asked[m[1]] = true
		kind, err := p.by(r, &o, t)
		if err != nil {
			return "", errorf("the gradient of %s by %s: %w", r.name, m[1], err)
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
func (p *probe) by(r row, o *in, t **tensor) (string, error) {
	w := autodiff.Watch(*t)
	*t, p.told = w, nil
	out := run(r.call, *o)
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
