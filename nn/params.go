package nn

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unsafe"

	"github.com/millrace-go/millrace"
)

// Named is a parameter with its name in a module.
type Named struct {
	Name string
	*Param
}

// Stateful names its parameters itself, without [Params]' reflection. Examples are an optimiser's
// moments, and a layer whose names differ from its fields.
type Stateful interface {
	State() []Named
}

// Params lists the weights and buffers of a module, in the order of its fields. It looks into
// structs, pointers, slices, arrays, maps with string keys, and interfaces, also in unexported
// fields; there, however, only into interfaces with a method Forward.
//
// Names are those of PyTorch's state_dict: fields in snake case, positions in a slice as numbers,
// keys of a map in order, joined by points, as in "layers.0.weight". The fields of an embedded
// struct count as fields of the outer one. A tag gives a field another name, as in `nn:"wte"`, and
// `nn:"-"` leaves it out. A parameter that occurs several times, such as a tied weight, is listed
// once, under its first name.
func Params(module any) []Named {
	w := walk(module)
	return w.found
}

// walker collects parameters.
type walker struct {
	found   []Named
	first   map[*Param]int    // index in found
	aliases map[string]string // other names of parameters in found, and their first names
	open    map[unsafe.Pointer]bool
}

func walk(module any) *walker {
	w := &walker{first: map[*Param]int{}, aliases: map[string]string{}, open: map[unsafe.Pointer]bool{}}
	w.part("", module)
	return w
}

// part looks into a module.
func (w *walker) part(name string, module any) {
	if module != nil {
		w.value(name, reflect.ValueOf(module), false)
	}
}

func (w *walker) add(name string, p *Param) {
	if p == nil {
		return
	}
	if i, ok := w.first[p]; ok {
		if first := w.found[i].Name; first != name {
			w.aliases[name] = first
		}
		return
	}
	w.first[p] = len(w.found)
	w.found = append(w.found, Named{name, p})
}

var (
	paramType    = reflect.TypeFor[*Param]()
	deviceType   = reflect.TypeFor[millrace.Device]()
	statefulType = reflect.TypeFor[Stateful]()
)

// value looks into v, whose parameters' names begin with name. v must be readable in full; inner
// says that it belongs to an unexported field.
func (w *walker) value(name string, v reflect.Value, inner bool) {
	t := v.Type()
	if t == paramType {
		w.add(name, v.Interface().(*Param))
		return
	}
	if !holds(t, inner) {
		return
	}
	if t.Kind() == reflect.Struct {
		v = addressable(v)
		if v.Addr().Type().Implements(statefulType) {
			v, t = v.Addr(), v.Addr().Type()
		}
	}
	if t.Implements(statefulType) {
		if (t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface) && v.IsNil() {
			return
		}
		for _, n := range v.Interface().(Stateful).State() {
			w.add(join(name, n.Name), n.Param)
		}
		return
	}
	switch t.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			w.value(name, v.Elem(), inner)
		}
	case reflect.Pointer:
		at := v.UnsafePointer()
		if at == nil || w.open[at] { // the module refers back to itself
			return
		}
		w.open[at] = true
		w.value(name, v.Elem(), inner)
		delete(w.open, at)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			w.value(join(name, strconv.Itoa(i)), v.Index(i), inner)
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			w.value(join(name, k.String()), v.MapIndex(k), inner)
		}
	case reflect.Struct:
		w.fields(name, v, inner)
	}
}

// addressable returns v, or an addressable copy whose unexported fields can be read.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	own := reflect.New(v.Type()).Elem()
	own.Set(v)
	return own
}

func (w *walker) fields(name string, v reflect.Value, inner bool) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		own, tagged := f.Tag.Lookup("nn")
		within := inner || !f.IsExported()
		if own == "-" || !holds(f.Type, within) {
			continue
		}
		x := v.Field(i)
		if !f.IsExported() {
			x = reflect.NewAt(f.Type, unsafe.Pointer(x.UnsafeAddr())).Elem()
		}
		switch {
		case tagged && own != "":
			w.value(join(name, own), x, within)
		case f.Anonymous && f.Type != paramType:
			w.value(name, x, within)
		default:
			w.value(join(name, snake(f.Name)), x, within)
		}
	}
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "." + b
}

// snake converts a Go name to snake case: InProjWeight to in_proj_weight, HTTPPort to http_port,
// Conv1 to conv1.
func snake(name string) string {
	var b strings.Builder
	rs := []rune(name)
	for i, r := range rs {
		if unicode.IsUpper(r) && i > 0 && rs[i-1] != '_' {
			after := i+1 < len(rs) && unicode.IsLower(rs[i+1])
			if !unicode.IsUpper(rs[i-1]) || after {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// place is a type, and whether it occurs in an unexported field.
type place struct {
	t     reflect.Type
	inner bool
}

// holding caches which types can hold parameters.
var holding sync.Map // from place to bool

// holds reports whether values of a type may contain parameters; value looks into no others. An
// interface may if it has a module's method, or is any. In unexported fields any does not count: it
// would expose private data of other packages.
func holds(t reflect.Type, inner bool) bool {
	at := place{t, inner}
	if known, ok := holding.Load(at); ok {
		return known.(bool)
	}
	r := at.reaches(map[place]bool{})
	holding.Store(at, r)
	return r
}

func (p place) reaches(seen map[place]bool) bool {
	t := p.t
	if t == paramType || t.Implements(statefulType) || reflect.PointerTo(t).Implements(statefulType) {
		return true
	}
	if seen[p] || t.PkgPath() == deviceType.PkgPath() { // a device's internals change concurrently
		return false
	}
	seen[p] = true
	switch t.Kind() {
	case reflect.Interface:
		_, forward := t.MethodByName("Forward")
		return forward || t.NumMethod() == 0 && !p.inner
	case reflect.Map:
		return t.Key().Kind() == reflect.String && place{t.Elem(), p.inner}.reaches(seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return place{t.Elem(), p.inner}.reaches(seen)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Tag.Get("nn") != "-" && (place{f.Type, p.inner || !f.IsExported()}).reaches(seen) {
				return true
			}
		}
	}
	return false
}
