package apitest

import (
	"context"
	"fmt"
	"image"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/imagex"
	"github.com/millrace-go/millrace/internal/testing/filetest"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

// optionUse is a struct of options with a use of it.
type optionUse struct {
	zero any                 // the options, with the fields that make them valid
	use  func(opt any) error // panics and hangs are failures
	// The valid numbers of a field; all others are errors, except in the fields below.
	free map[string]string // fields that accept every number, with the reason
	max  map[string]int64  // the largest valid number, for integers; none: any
	neg  map[string]bool   // negative numbers have a meaning
}

// optionUses has every struct of options that users fill in.
func optionUses(t *testing.T) []optionUse {
	x := millrace.Normal(millrace.Float32, 1, 1, 4, 9)
	w := millrace.Normal(millrace.Float32, 1, 4, 4, 3)
	image1 := image.NewGray(image.Rect(0, 0, 3, 2))
	source, err := data.FromColumns(data.ColumnOf(make([]float32, 10)))
	if err != nil {
		t.Fatal(err)
	}
	return []optionUse{
		{zero: data.Options{Batch: 3}, max: map[string]int64{"Workers": 1024, "Prefetch": 1024},
			free: map[string]string{"Seed": "any is a seed", "Batch": "more than there are is all"},
			use: func(opt any) error {
				l, err := data.NewLoader(source, opt.(data.Options))
				if err != nil {
					return err
				}
				n := 0
				for b, err := range l.Batches(nil) { //nolint:staticcheck // nil is allowed
					if err != nil {
						return err
					}
					n += b.Len()
					b.Release()
				}
				if n != 10 {
					t.Errorf("%+v: %d records", opt, n)
				}
				return nil
			}},
		{zero: data.CSVOptions{Label: "1"}, max: map[string]int64{"Missing": 3, "Classes": math.MaxInt32, "Comma": 0x10ffff, "Comment": 0x10ffff},
			use: func(opt any) error {
				_, err := data.ReadCSV(strings.NewReader("1,0\n2,0\n"), "x", opt.(data.CSVOptions))
				return err
			}},
		{zero: data.ImageOptions{}, use: func(opt any) error { return nil }},
		{zero: imagex.Options{}, max: map[string]int64{"Channels": 4, "DType": 0},
			use: func(opt any) error { return imagex.FromImage(image1, opt.(imagex.Options)).Eval() }},
		{zero: millrace.ConvOptions{}, max: map[string]int64{"Groups": 4},
			use: func(opt any) error { return x.Conv(w, opt.(millrace.ConvOptions)).Eval() }},
		{zero: millrace.ResizeOptions{}, max: map[string]int64{"Mode": 2},
			use: func(opt any) error { return millrace.Resize(x, opt.(millrace.ResizeOptions), 4).Eval() }},
		{zero: millrace.PrintOptions{}, neg: map[string]bool{"Threshold": true, "Width": true, "Precision": true, "Edge": true},
			free: map[string]string{"Threshold": "more than there are is all", "Edge": "as Threshold; negative is 1", "Width": "wider than a line is none", "Precision": "more than there are is all"},
			use: func(opt any) error {
				if s := opt.(millrace.PrintOptions).Sprint(x); len(s) < 10 || len(s) > 10000 {
					t.Errorf("%+v: %d bytes", opt, len(s))
				}
				return nil
			}},
		{zero: autodiff.Options{}, use: func(opt any) error { return nil }},
		{zero: nn.CtxOptions{}, max: map[string]int64{"DType": 0}, free: map[string]string{"DType": "checked by the first layer"},
			use: func(opt any) error {
				nn.NewLinear(4, 2).Forward(nn.NewCtx(opt.(nn.CtxOptions)), millrace.Ones(millrace.Float32, 1, 4)).Eval()
				return nil
			}},
		{zero: optim.Ranks{}, max: map[string]int64{"Leaves": 1 << 16, "Wire": 0}, neg: map[string]bool{"SameEvery": true},
			free: map[string]string{"Bucket": "more than there are is all", "SameEvery": "a number of updates"},
			use: func(opt any) error {
				w, err := dist.Open(context.Background(), dist.Options{})
				if err != nil {
					return err
				}
				defer w.Close()
				m := nn.NewLinear(4, 2)
				loss := func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor { return m.Forward(c, in[0]).Mean() }
				s := optim.SGD(nn.Params(m)).Step(loss, optim.Across(w, opt.(optim.Ranks)))
				_, err = s.Run(context.Background(), millrace.Ones(millrace.Float32, 3, 4))
				return err
			}},
		{zero: millrace.PlanFilter{}, use: func(opt any) error { return nil }},
		{zero: millrace.Options{Device: "cpu"}, max: map[string]int64{"Threads": 1024, "QueueCap": 256, "Compile": 5, "Tier": 2, "Explore": 1, "Fusion": 1, "Denormals": 1, "Tune": 3, "Subgroups": 2, "Narrow": 2, "Matrices": 2, "Precision": 3},
			free: map[string]string{"MemoryLimit": "more than there is is no limit", "PinnedLimit": "as MemoryLimit", "CacheLimit": "as MemoryLimit", "TuneBudget": "it is not all spent"},
			use: func(opt any) error {
				d, err := millrace.OpenOptions(opt.(millrace.Options))
				if err != nil {
					return err
				}
				defer d.Close()
				_, err = millrace.Item[float32](millrace.OnesOn(d, millrace.Float32, 3).Sum())
				return err
			}},
	}
}

// TestOptionLimits sets every number of every struct of options to extreme values: the call ends
// soon, takes little memory, and is an error beyond the documented limits.
func TestOptionLimits(t *testing.T) {
	for _, u := range optionUses(t) {
		typ := reflect.TypeOf(u.zero)
		for f := range typ.Fields() {
			for _, v := range extremes(f.Type) {
				o := reflect.New(typ).Elem()
				o.Set(reflect.ValueOf(u.zero))
				o.FieldByIndex(f.Index).Set(v)
				what := fmt.Sprintf("%v.%s = %v", typ, f.Name, v)
				var err error
				done := make(chan uint64, 1)
				go func() {
					defer func() {
						if r := recover(); r != nil {
							err = fmt.Errorf("panic: %v", r)
							t.Errorf("%s: %v", what, err)
							done <- 0
						}
					}()
					done <- filetest.Allocated(func() { err = u.use(o.Interface()) })
				}()
				select {
				case took := <-done:
					if took > 64<<20 {
						t.Errorf("%s: %d bytes allocated", what, took)
					}
				case <-time.After(time.Minute):
					t.Fatalf("%s: it does not end", what)
				}
				if want, known := u.fails(f.Name, v); known && (err != nil) != want {
					t.Errorf("%s: %v, want an error: %v", what, err, want)
				}
			}
		}
	}
	if _, err := millrace.ValuesContext[float32](context.Context(nil), millrace.Ones(millrace.Float32, 1)); err != nil {
		t.Errorf("a nil context: %v", err)
	}
}

// extremes are extreme numbers of a type.
func extremes(t reflect.Type) []reflect.Value {
	var list []reflect.Value
	add := func(v any) { list = append(list, reflect.ValueOf(v).Convert(t)) }
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		for _, v := range []int64{-1, math.MinInt64, 1, 1 << 20, 1 << 40, math.MaxInt64} {
			add(v)
		}
	case reflect.Int32:
		for _, v := range []int32{-1, math.MinInt32, math.MaxInt32} {
			add(v)
		}
	case reflect.Uint8:
		add(uint8(200))
		add(uint8(255))
	case reflect.Uint64:
		add(uint64(math.MaxUint64))
	case reflect.Float64:
		for _, v := range []float64{-1, math.NaN(), math.Inf(1), math.MaxFloat64} {
			add(v)
		}
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Int {
			break
		}
		for _, v := range [][]int{{-1}, {1 << 40}, {math.MaxInt}, {math.MinInt}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}} {
			add(v)
		}
	}
	return list
}

// fails reports whether a number must be an error, if the table knows.
func (u *optionUse) fails(field string, v reflect.Value) (want, known bool) {
	switch {
	case v.CanInt() && v.Int() < 0:
		return !u.neg[field], true
	case u.free[field] != "":
		return false, v.CanInt() && v.Int() > 1
	case v.CanInt():
		max, ok := u.max[field]
		return v.Int() > max, ok
	case v.CanUint():
		max, ok := u.max[field]
		return v.Uint() > uint64(max), ok
	}
	return false, false
}
