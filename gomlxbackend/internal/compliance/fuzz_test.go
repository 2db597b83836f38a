package compliance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// TestArbitraryArguments calls every op with arguments of all kinds, most of
// which are wrong. Whatever they are, the op takes them or returns an error, and
// what it takes can be executed.
func TestArbitraryArguments(t *testing.T) {
	for config, rounds := range map[string]int{"millrace:cpu,compile=off": 100, "millrace:webgpu": 10} {
		t.Run(config, func(t *testing.T) {
			b := openIfThere(t, config)
			anyArguments(t, b, rounds)
		})
	}
}

func anyArguments(t *testing.T, b compute.Backend, rounds int) {
	// Those that are no ops, and those that take functions.
	others := []string{"Builder", "Call", "Closure", "Constant", "If", "Name", "Parameter", "Parent", "Return", "Shape", "Sort", "While"}
	r := rand.New(rand.NewPCG(21, 22))
	typ := reflect.TypeFor[compute.Function]()
	for i := range typ.NumMethod() {
		m := typ.Method(i)
		if slices.Contains(others, m.Name) {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			ran := 0
			for range rounds {
				c := &chance{Rand: r}
				what, executed, err := c.call(b, m)
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if executed {
					ran++
				}
			}
			t.Logf("%d of %d executed", ran, rounds)
		})
	}
}

// chance makes arguments.
type chance struct {
	*rand.Rand
	f      compute.Function
	params []compute.Value
	bufs   []compute.Buffer
	rank   int
}

// value is a new parameter, which fits others more often than not, or one that
// is there.
func (c *chance) value(b compute.Backend) compute.Value {
	dts := []dtypes.DType{dtypes.Float32, dtypes.Float32, dtypes.Float32, dtypes.Int32, dtypes.Int32, dtypes.Bool, dtypes.Uint64, dtypes.Int8, dtypes.Float16, dtypes.Int4, dtypes.Uint2, dtypes.Complex64, dtypes.Complex64, dtypes.Complex128}
	if len(c.params) > 0 && c.IntN(3) == 0 {
		return c.params[c.IntN(len(c.params))]
	}
	dt := dts[c.IntN(len(dts))]
	var dims []int
	if len(c.params) > 0 && c.IntN(3) > 0 {
		s, _ := c.f.Shape(c.params[0])
		if dims = s.Dimensions; c.IntN(4) > 0 {
			dt = s.DType
		}
	} else {
		for range c.IntN(5) {
			dims = append(dims, []int{0, 1, 2, 2, 3, 3, 4}[c.IntN(7)])
		}
	}
	if !b.Capabilities().DTypes[dt] {
		dt = dtypes.Float32
	}
	s := shapes.Make(dt, dims...)
	v := must(c.f.Parameter(fmt.Sprint("p", len(c.params)), s, nil))
	flat := random(c.Rand, dtypes.Uint8, (product(dims)*dt.Bits()+7)/8)
	if !dt.IsPacked() {
		flat = random(c.Rand, dt, product(dims))
	}
	c.params, c.bufs = append(c.params, v), append(c.bufs, must(b.BufferFromFlatData(0, flat, s)))
	c.rank = len(dims)
	return v
}

// int is a small number or an absurd one.
func (c *chance) int() int {
	if c.IntN(8) == 0 {
		return []int{math.MinInt, math.MinInt32, -3, -2, 5, 100, math.MaxInt32, 1 << 40, math.MaxInt}[c.IntN(9)]
	}
	return []int{-1, 0, 0, 1, 1, 1, 2, 2, 3}[c.IntN(9)]
}

// length of a list: as many as there are axes, as a rule.
func (c *chance) length() int {
	if c.IntN(4) > 0 {
		return c.rank
	}
	return c.IntN(5)
}

// arg is an argument of a type.
func (c *chance) arg(b compute.Backend, t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch x := v.Addr().Interface().(type) {
	case *compute.Value:
		*x = c.value(b)
		return v
	case *shapes.Shape:
		x.DType = []dtypes.DType{dtypes.Float32, dtypes.Float32, dtypes.Float32, dtypes.Complex64}[c.IntN(4)]
		for range c.length() {
			x.Dimensions = append(x.Dimensions, min(c.int(), 100))
		}
		return v
	case *dtypes.DType:
		*x = []dtypes.DType{dtypes.Float32, dtypes.Int32, dtypes.Bool, dtypes.Uint8, dtypes.Float16, dtypes.Complex64, dtypes.Int4, dtypes.Uint2, dtypes.InvalidDType, 999}[c.IntN(10)]
		return v
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64, reflect.Uint8, reflect.Uint:
		v.Set(reflect.ValueOf(c.int()).Convert(t))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(c.Float64())
	case reflect.String:
		v.SetString("name")
	case reflect.Bool:
		v.SetBool(c.IntN(2) == 0)
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).Set(c.arg(b, t.Elem()))
		}
	case reflect.Slice:
		n := c.length()
		if t.Elem() == reflect.TypeFor[compute.Value]() {
			n = c.IntN(3)
		}
		for range n {
			v = reflect.Append(v, c.arg(b, t.Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			v.Field(i).Set(c.arg(b, t.Field(i).Type))
		}
	case reflect.Pointer:
		if c.IntN(3) > 0 {
			v.Set(reflect.New(t.Elem()))
			v.Elem().Set(c.arg(b, t.Elem()))
		}
	default:
		panic("a " + t.String())
	}
	return v
}

// call calls an op and executes what it gave. The error is a fault of the
// backend, and none that says what is wrong with the arguments.
func (c *chance) call(b compute.Backend, m reflect.Method) (what string, executed bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	bd := b.Builder("any")
	c.f = bd.Main()
	var args []reflect.Value
	for k := range m.Type.NumIn() {
		args = append(args, c.arg(b, m.Type.In(k)))
	}
	what = m.Name + "("
	for i, a := range args {
		if i > 0 {
			what += ", "
		}
		if m.Type.In(i) == reflect.TypeFor[compute.Value]() {
			s, _ := c.f.Shape(a.Interface())
			what += s.String()
		} else if vs, ok := a.Interface().([]compute.Value); ok {
			for _, v := range vs {
				s, _ := c.f.Shape(v)
				what += s.String() + ";"
			}
		} else {
			what += fmt.Sprintf("%+v", a.Interface())
		}
	}
	what += ")"
	f := reflect.ValueOf(c.f).MethodByName(m.Name)
	var out []reflect.Value
	if m.Type.IsVariadic() {
		out = f.CallSlice(args)
	} else {
		out = f.Call(args)
	}
	if e, _ := out[len(out)-1].Interface().(error); e != nil {
		if !strings.Contains(e.Error(), m.Name) && !compute.IsNotImplemented(e) {
			return what, false, fmt.Errorf("%q does not name the op", e)
		}
		return what, false, nil
	}
	var results []compute.Value
	for _, o := range out[:len(out)-1] {
		switch v := o.Interface().(type) {
		case []compute.Value:
			results = append(results, v...)
		case compute.Value:
			results = append(results, v)
		}
	}
	for _, v := range results {
		s := must(c.f.Shape(v))
		if s.IsDynamic() { // as large as some random number
			return what, false, nil
		}
		size := 1.0
		for _, d := range s.Dimensions {
			size *= float64(d)
		}
		if size > 1e6 {
			return what, false, nil
		}
	}
	if err := c.f.Return(results, nil); err != nil {
		return what, false, err
	}
	e, err := bd.Compile()
	if err != nil {
		return what, false, err
	}
	bufs, err := e.Execute(c.bufs, nil, 0)
	if err != nil {
		return what, false, err
	}
	for _, buf := range bufs {
		s := must(buf.Shape())
		flat := dtypes.MakeAnySlice(s.DType, s.Size())
		if s.DType.IsPacked() {
			flat = make([]uint8, (s.Size()*s.DType.Bits()+7)/8)
		}
		if err := buf.ToFlatData(flat); err != nil {
			return what, false, err
		}
	}
	return what, true, nil
}
