package everyday

import (
	"errors"
	"reflect"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/optable"
	"github.com/millrace-go/millrace/nn"
)

// TestErrorsBesideEmptyOperands: an operand's error becomes the result's, even if the other operand
// and the result have no elements. This holds for each method of two tensors, for errors known at
// the call and errors found by running.
func TestErrorsBesideEmptyOperands(t *testing.T) {
	methods := map[string]func(t, u *tensor) *tensor{}
	two := reflect.TypeFor[func(t, u *tensor) *tensor]()
	for m := range reflect.TypeFor[*tensor]().Methods() {
		if m.Func.CanConvert(two) {
			methods[m.Name] = m.Func.Interface().(func(t, u *tensor) *tensor)
		}
	}
	if methods["Atan2"] == nil || methods["And"] == nil || len(methods) < 20 {
		t.Fatalf("%d methods", len(methods))
	}
	for _, spec := range append(specs, "cpu:denormals=flush") {
		t.Run(spec, func(t *testing.T) {
			d := open(t, spec)
			for _, shapes := range [][2][]int{{{1}, {0}}, {{3}, {0, 3}}, {{0}, {0}}, {{0, 3}, {3}}} {
				n := 1
				for _, s := range shapes[0] {
					n *= s
				}
				bad := map[string]func(dt millrace.DType) *tensor{
					"known": func(dt millrace.DType) *tensor { return millrace.OnesOn(d, dt, 3).Reshape(2) },
					"released": func(dt millrace.DType) *tensor {
						r := millrace.OnesOn(d, dt, shapes[0]...)
						r.Release()
						return r
					},
					"found": func(dt millrace.DType) *tensor {
						return millrace.OnesOn(d, dt, 2).Take(millrace.FullOn(d, millrace.Int32, 9, max(n, 1)), 0).Slice(millrace.R(0, n)).Reshape(shapes[0]...)
					},
				}
				bad["found before"] = func(dt millrace.DType) *tensor {
					x := bad["found"](dt)
					x.Eval()
					return x
				}
				for name, f := range methods {
					for _, dt := range []millrace.DType{millrace.Float32, millrace.Int32, millrace.Bool} {
						ones := millrace.OnesOn(d, dt, shapes[0]...)
						empty := millrace.OnesOn(d, dt, shapes[1]...)
						if f(ones, empty).Err() != nil || f(empty, ones).Err() != nil {
							continue // not one of these methods
						}
						for how, make := range bad {
							x, y := make(dt), make(dt)
							for k, r := range []*tensor{f(x, empty), f(empty, y)} {
								x.Release()
								y.Release()
								if err := r.Eval(); err == nil {
									t.Errorf("%s of an error that is %s and nothing (%v, %d, %v): no error", name, how, shapes, k, dt)
								}
							}
						}
					}
				}
			}
		})
	}
}

// TestFailedResultsAreApart: several failed results have separate handles, as successful ones do:
// Set on one does not affect the others.
func TestFailedResultsAreApart(t *testing.T) {
	d := open(t, "cpu")
	x := millrace.OnesOn(d, millrace.Float32, 2, 3, 4)
	broken := x.Reshape(5)
	lstm := nn.NewLSTM(3, 4)
	calls := []optable.Several{{Name: "lstm", Call: func(x *tensor) []*tensor {
		out, h, c := lstm.Run(nn.NewCtx(nn.CtxOptions{}), x.Reshape(3, 8), nil, nil)
		return []*tensor{out, h, c}
	}}}
	for _, o := range optable.All() {
		calls = append(calls, o.Several...)
	}
	for _, c := range calls {
		for how, operand := range map[string]*tensor{"a good operand": x, "a broken one": broken} {
			first := c.Call(operand)
			for i := range first {
				all := c.Call(operand)
				all[i].Set(millrace.OnesOn(d, millrace.Float32, 1))
				for k, r := range all {
					if (r.Err() == nil) != (k == i) {
						t.Errorf("%s of %s, result %d after Set of %d: %v", c.Name, how, k, i, r.Err())
					}
				}
			}
		}
	}
}

// TestErrorsFoundLate: every result carries an error that only running finds. This includes results
// of one element, even if an op's count does not depend on the element.
func TestErrorsFoundLate(t *testing.T) {
	for _, spec := range append(specs, "cpu:denormals=flush", "cpu:explore=background") {
		t.Run(spec, func(t *testing.T) {
			d := open(t, spec)
			for n := 1; n <= 3; n++ {
				operand := func() *tensor {
					return millrace.OnesOn(d, millrace.Float32, 2).Take(millrace.FullOn(d, millrace.Int32, 9, n), 0)
				}
				for _, c := range late() {
					for i, r := range c.Call(operand) {
						if c.Name == "topk" && i == 1 && !d.Supports(millrace.Int64) {
							continue
						}
						if err := r.Eval(); !errors.Is(err, millrace.ErrIndex) {
							t.Errorf("%s of %d, result %d: %v, want ErrIndex", c.Name, n, i, err)
						}
					}
				}
			}
		})
	}
}

func late() (all []optable.Late) {
	for _, o := range optable.All() {
		all = append(all, o.Late...)
	}
	return all
}
