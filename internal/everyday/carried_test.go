package everyday

import (
	"errors"
	"reflect"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/linalg"
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
	two := func(a, b *tensor) []*tensor { return []*tensor{a, b} }
	three := func(a, b, c *tensor) []*tensor { return []*tensor{a, b, c} }
	for name, call := range map[string]func(x *tensor) []*tensor{
		"split":     func(x *tensor) []*tensor { return millrace.Split(x, 7, 1, 1, 1) },
		"topk":      func(x *tensor) []*tensor { return two(millrace.TopK(x, 9, 7)) },
		"uniqueall": func(x *tensor) []*tensor { return three(millrace.UniqueAll(millrace.Int8, x)) },
		"histogram": func(x *tensor) []*tensor { return two(millrace.Histogram(millrace.Int32, x, 0, 0, 1)) },
		"edges":     func(x *tensor) []*tensor { return two(millrace.Histogram(millrace.Int32, x, 3, 1, 0)) },
		"counts": func(x *tensor) []*tensor {
			return two(millrace.Histogram(millrace.Int8, x.Expand(200, 2, 3, 4), 1, 0, 2))
		},
		"fft":     func(x *tensor) []*tensor { return two(millrace.FFT(x, x, 7)) },
		"ifft":    func(x *tensor) []*tensor { return two(millrace.IFFT(x, nil, 7)) },
		"rfft":    func(x *tensor) []*tensor { return two(millrace.RFFT(x, 7)) },
		"fftn":    func(x *tensor) []*tensor { return two(millrace.FFTN(x, x, 7)) },
		"ifftn":   func(x *tensor) []*tensor { return two(millrace.IFFTN(x, x, 7)) },
		"rfftn":   func(x *tensor) []*tensor { return two(millrace.RFFTN(x, 7)) },
		"qr":      func(x *tensor) []*tensor { return two(linalg.QR(x.Cast(millrace.Int32))) },
		"eigh":    func(x *tensor) []*tensor { return two(linalg.Eigh(x)) },
		"svd":     func(x *tensor) []*tensor { return three(linalg.SVD(x.Cast(millrace.Int32))) },
		"slogdet": func(x *tensor) []*tensor { return two(linalg.SlogDet(x)) },
		"lstm": func(x *tensor) []*tensor {
			return three(lstm.Run(nn.NewCtx(nn.CtxOptions{}), x.Reshape(3, 8), nil, nil))
		},
	} {
		for how, operand := range map[string]*tensor{"a good operand": x, "a broken one": broken} {
			first := call(operand)
			for i := range first {
				all := call(operand)
				all[i].Set(millrace.OnesOn(d, millrace.Float32, 1))
				for k, r := range all {
					if (r.Err() == nil) != (k == i) {
						t.Errorf("%s of %s, result %d after Set of %d: %v", name, how, k, i, r.Err())
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
				late := func() *tensor {
					return millrace.OnesOn(d, millrace.Float32, 2).Take(millrace.FullOn(d, millrace.Int32, 9, n), 0)
				}
				none := millrace.ZerosOn(d, millrace.Float32, 0)
				for name, call := range map[string]func() []*tensor{
					"uniqueall": func() []*tensor {
						v, i, c := millrace.UniqueAll(millrace.Int32, late())
						return []*tensor{v, i, c}
					},
					"uniqueall of bools": func() []*tensor {
						v, i, c := millrace.UniqueAll(millrace.Int32, late().GtScalar(0))
						return []*tensor{v, i, c}
					},
					"unique":       func() []*tensor { return []*tensor{millrace.Unique(late())} },
					"nonzero":      func() []*tensor { return []*tensor{millrace.NonZero(millrace.Int32, late())} },
					"maskedselect": func() []*tensor { return []*tensor{millrace.MaskedSelect(late(), late().GtScalar(0))} },
					"bincount": func() []*tensor {
						return []*tensor{millrace.BinCount(millrace.Int32, late().Cast(millrace.Int32), 0)}
					},
					"histogram": func() []*tensor {
						c, e := millrace.Histogram(millrace.Int32, late(), 2, 0, 0)
						return []*tensor{c, e}
					},
					"counts": func() []*tensor {
						c, _ := millrace.Histogram(millrace.Int32, late(), 2, 0, 9)
						return []*tensor{c}
					},
					"searchsorted": func() []*tensor {
						return []*tensor{millrace.SearchSorted(millrace.Int32, none, late(), millrace.SideRight)}
					},
					"topk": func() []*tensor {
						v, at := millrace.TopK(late().Reshape(n, 1), 1, 1)
						return []*tensor{v, at.Cast(millrace.Int32)}
					},
					"argmax": func() []*tensor {
						x := late().Reshape(n, 1)
						return []*tensor{x.ArgMaxAs(millrace.Int32, 1), x.ArgSortAs(millrace.Int32, 1, false)}
					},
					"powers": func() []*tensor {
						x := late()
						return []*tensor{x.PowScalar(0), x.PowInt(0), x.MulScalar(0), x.ClampScalar(1, 1), x.Eq(x)}
					},
					"multinomial": func() []*tensor {
						return []*tensor{millrace.Multinomial(millrace.Int32, 1, late(), 1, true), millrace.Multinomial(millrace.Int32, 1, late(), 1, false)}
					},
				} {
					for i, r := range call() {
						if name == "topk" && i == 1 && !d.Supports(millrace.Int64) {
							continue
						}
						if err := r.Eval(); !errors.Is(err, millrace.ErrIndex) {
							t.Errorf("%s of %d, result %d: %v, want ErrIndex", name, n, i, err)
						}
					}
				}
			}
		})
	}
}
