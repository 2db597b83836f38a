package apitest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// moveTrials calls f for every case with a few dtypes, such that each dtype gets some cases.
func moveTrials[C any](t *testing.T, dev *millrace.Device, cases []C, f func(i int, c C, dt ir.DType) trial) {
	t.Helper()
	for i, c := range cases {
		for j, dt := range every {
			if j == 0 || (i+j)%4 == 0 {
				f(i, c, dt).run(t, dev)
			}
		}
	}
}

// few are values that the dtype can hold.
func few(rng *rand.Rand, dt ir.DType, shape ...int) array {
	if dt == ir.Bool {
		return truths(rng, shape...)
	}
	return natural(rng, 100, shape...)
}

func joined(axis int, xs ...array) array {
	shape := slices.Clone(xs[0].shape)
	shape[axis] = 0
	for _, x := range xs {
		shape[axis] += x.shape[axis]
	}
	return made(shape, func(at []int) float64 {
		j := at[axis]
		for _, x := range xs {
			if j < x.shape[axis] {
				return x.get(with(at, axis, j)...)
			}
			j -= x.shape[axis]
		}
		panic("no such place")
	})
}

func TestConcatAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(4, 1))
		moveTrials(t, dev, []struct {
			axis   int
			shapes [][]int
		}{
			{0, [][]int{{3}}},
			{0, [][]int{{3}, {4}}},
			{-1, [][]int{{2, 3}, {2, 1}, {2, 4}}},
			{0, [][]int{{2, 3}, {1, 3}, {0, 3}, {4, 3}, {2, 3}}},
			{1, [][]int{{2, 0}, {2, 0}}},
			{0, [][]int{{1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}}},
			{-4, [][]int{{1, 2, 1, 2, 1, 2, 1, 2}, {1, 2, 1, 2, 3, 2, 1, 2}}},
		}, func(_ int, c struct {
			axis   int
			shapes [][]int
		}, dt ir.DType) trial {
			var ops []operandOf
			for _, s := range c.shapes {
				ops = append(ops, operandOf{few(rng, dt, s...), dt})
			}
			return trial{name: fmt.Sprint("concat along ", c.axis), operands: ops, dt: dt,
				call: func(x []*tensor) *tensor { return millrace.Concat(c.axis, x...) },
				want: func(a []array) array { return joined((c.axis+len(a[0].shape))%len(a[0].shape), a...) }}
		})
		moveTrials(t, dev, []int{0, 1, 2, -1, -3}, func(i, axis int, dt ir.DType) trial {
			var ops []operandOf
			for range 1 + i {
				ops = append(ops, operandOf{few(rng, dt, 2, 3), dt})
			}
			return trial{name: fmt.Sprint("stack along ", axis), operands: ops, dt: dt,
				call: func(x []*tensor) *tensor { return millrace.Stack(axis, x...) },
				want: func(a []array) array {
					for i := range a {
						a[i].shape = slices.Insert(slices.Clone(a[i].shape), (axis+3)%3, 1)
					}
					return joined((axis+3)%3, a...)
				}}
		})
		// One tensor several times.
		trial{name: "concat of one tensor", operands: []operandOf{{whole(rng, 2, 3), ir.Float32}}, dt: ir.Float32,
			call: func(x []*tensor) *tensor { return millrace.Concat(0, x[0], x[0], x[0]) },
			want: func(a []array) array { return joined(0, a[0], a[0], a[0]) }}.run(t, dev)
	})
}

func TestPadAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(4, 2))
		moveTrials(t, dev, []struct {
			shape []int
			pads  []millrace.Padding
		}{
			{[]int{3}, []millrace.Padding{{Before: 1, After: 2}}},
			{[]int{3}, []millrace.Padding{{Between: 2}}},
			{[]int{2, 3}, []millrace.Padding{{Before: 1}}},
			{[]int{2, 3}, []millrace.Padding{{After: 2, Between: 1}, {Before: 1}}},
			{[]int{5, 6}, []millrace.Padding{{Before: -1, After: -2}, {Before: 1, After: -3}}},
			{[]int{5}, []millrace.Padding{{Before: -2, After: -3}}},
			{[]int{2}, []millrace.Padding{{Before: 5, After: -4}}},
			{[]int{2}, []millrace.Padding{{Before: -4, After: 5, Between: 1}}},
			{[]int{0, 3}, []millrace.Padding{{Before: 2, Between: 3}, {After: 1}}},
			{[]int{}, nil},
			{[]int{2, 3}, nil},
			{[]int{1, 2, 1, 2, 1, 2, 1, 2}, []millrace.Padding{{Before: 1}, {}, {}, {Between: 1}, {After: 1}, {}, {}, {Before: 1}}},
		}, func(_ int, c struct {
			shape []int
			pads  []millrace.Padding
		}, dt ir.DType) trial {
			return trial{name: fmt.Sprintf("pad %+v", c.pads), operands: []operandOf{{few(rng, dt, c.shape...), dt}}, dt: dt,
				call: func(x []*tensor) *tensor { return x[0].Pad(1, c.pads...) },
				want: func(a []array) array {
					pads := append(make([]millrace.Padding, len(c.shape)-len(c.pads)), c.pads...)
					shape := slices.Clone(c.shape)
					for d, p := range pads {
						shape[d] += max(0, shape[d]-1)*p.Between + p.Before + p.After
					}
					return made(shape, func(at []int) float64 {
						p := slices.Clone(at)
						for d := range p {
							p[d] -= pads[d].Before
							if p[d] < 0 || p[d]%(pads[d].Between+1) != 0 || p[d]/(pads[d].Between+1) >= c.shape[d] {
								return 1
							}
							p[d] /= pads[d].Between + 1
						}
						return a[0].get(p...)
					})
				}}
		})
	})
}

// TestStretchedConcatAgainstLoops: a padded concatenation is read from its parts, also by kernels
// with rows.
func TestStretchedConcatAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(4, 5))
		for axis := range 2 {
			stretched := func(a []array) array {
				c := joined(axis, a...)
				return made([]int{2*c.shape[0] - 1, c.shape[1]}, func(at []int) float64 {
					if at[0]%2 != 0 {
						return 3
					}
					return c.get(at[0]/2, at[1])
				})
			}
			trial{name: fmt.Sprintf("maxima of stretched parts along %d", axis), dt: ir.Float32,
				operands: []operandOf{{whole(rng, 5, 7), ir.Float32}, {whole(rng, 5, 7), ir.Float32}},
				call: func(x []*tensor) *tensor {
					return millrace.Concat(axis, x...).Pad(3, millrace.Padding{Between: 1}, millrace.Padding{}).Max(1)
				},
				want: func(a []array) array {
					s := stretched(a)
					return made(s.shape[:1], func(at []int) float64 {
						m := s.get(at[0], 0)
						for j := range s.shape[1] {
							m = max(m, s.get(at[0], j))
						}
						return m
					})
				}}.run(t, dev)
		}
	})
}

func TestAssignAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(4, 3))
		r, at, all := millrace.R, millrace.At, millrace.All
		cases := []struct {
			shape, u []int
			ranges   []millrace.Range
			from     []int // where dimension d of the region starts and steps, and its size
			step     []int
			size     []int
		}{
			{[]int{5}, []int{2}, []millrace.Range{r(1, 3)}, []int{1}, []int{1}, []int{2}},
			{[]int{5}, []int{}, []millrace.Range{r(0, 5, 2)}, []int{0}, []int{2}, []int{3}},
			{[]int{5}, []int{}, []millrace.Range{at(-1)}, []int{4}, []int{1}, []int{1}},
			{[]int{4, 5}, []int{5}, []millrace.Range{at(2)}, []int{2, 0}, []int{1, 1}, []int{1, 5}},
			{[]int{4, 5}, []int{4}, []millrace.Range{all, at(1)}, []int{0, 1}, []int{1, 1}, []int{4, 1}},
			{[]int{4, 5}, []int{2, 1}, []millrace.Range{r(-1, 0, -2), r(1, 4)}, []int{3, 1}, []int{-2, 1}, []int{2, 3}},
			{[]int{4, 5}, []int{4, 5}, nil, []int{0, 0}, []int{1, 1}, []int{4, 5}},
			{[]int{4, 5}, []int{0, 5}, []millrace.Range{r(2, 2)}, []int{0, 0}, []int{1, 1}, []int{0, 5}},
			{[]int{0, 5}, []int{5}, nil, []int{0, 0}, []int{1, 1}, []int{0, 5}},
			{[]int{}, []int{}, nil, nil, nil, nil},
		}
		for i, c := range cases {
			for j, dt := range every {
				if j != 0 && (i+j)%4 != 0 {
					continue
				}
				assigned := func(x array, u func(p []int) float64) array {
					y := array{x.shape, slices.Clone(x.v)}
					each(c.size, func(p []int) {
						q := slices.Clone(p)
						for d := range q {
							q[d] = c.from[d] + c.step[d]*p[d]
						}
						y.set(u(p), q...)
					})
					return y
				}
				tr := trial{name: fmt.Sprint("assign ", c.ranges), operands: []operandOf{{few(rng, dt, c.shape...), dt}, {few(rng, dt, c.u...), dt}}, dt: dt,
					call: func(x []*tensor) *tensor { return x[0].Assign(x[1], c.ranges...) },
					want: func(a []array) array {
						u := a[1]
						return assigned(a[0], func(p []int) float64 {
							var q []int // the dimensions that At removes do not belong to u
							for d, n := range p {
								if d >= len(c.ranges) || c.ranges[d].String() == ":" || slices.Contains([]byte(c.ranges[d].String()), ':') {
									q = append(q, n)
								}
							}
							return u.cast(q)
						})
					}}
				tr.run(t, dev)
				tr.name, tr.operands = "assign a scalar", tr.operands[:1]
				tr.call = func(x []*tensor) *tensor { return x[0].AssignScalar(1, c.ranges...) }
				tr.want = func(a []array) array { return assigned(a[0], func([]int) float64 { return 1 }) }
				tr.run(t, dev)
			}
		}
	})
}

// ofOne are methods with one operand whose elements come from known places.
var ofOne = []struct {
	name  string
	shape []int
	call  func(t *tensor) *tensor
	out   []int
	from  func(at []int) []int // nil: zero
}{
	{"tile", []int{3}, func(t *tensor) *tensor { return t.Tile(2) }, []int{6}, func(at []int) []int { return []int{at[0] % 3} }},
	{"tile more", []int{3}, func(t *tensor) *tensor { return t.Tile(2, 2) }, []int{2, 6}, func(at []int) []int { return []int{at[1] % 3} }},
	{"tile last", []int{2, 3}, func(t *tensor) *tensor { return t.Tile(3) }, []int{2, 9}, func(at []int) []int { return []int{at[0], at[1] % 3} }},
	{"tile by nothing", []int{2, 3}, func(t *tensor) *tensor { return t.Tile() }, []int{2, 3}, slices.Clone[[]int]},
	{"tile 0 times", []int{2, 3}, func(t *tensor) *tensor { return t.Tile(2, 0) }, []int{4, 0}, nil},
	{"tile 0-d", []int{}, func(t *tensor) *tensor { return t.Tile(2, 3) }, []int{2, 3}, func([]int) []int { return nil }},
	{"tile nothing", []int{0, 2}, func(t *tensor) *tensor { return t.Tile(2, 3) }, []int{0, 6}, nil},
	{"tile all of eight", []int{1, 2, 1, 2, 1, 2, 1, 3}, func(t *tensor) *tensor { return t.Tile(2, 2, 1, 2, 2, 2, 1, 2) }, []int{2, 4, 1, 4, 2, 4, 1, 6},
		func(at []int) []int { return []int{0, at[1] % 2, 0, at[3] % 2, 0, at[5] % 2, 0, at[7] % 3} }},
	{"repeat", []int{2, 3}, func(t *tensor) *tensor { return t.Repeat(2, 1) }, []int{2, 6}, func(at []int) []int { return []int{at[0], at[1] / 2} }},
	{"repeat first", []int{2, 3}, func(t *tensor) *tensor { return t.Repeat(3, -2) }, []int{6, 3}, func(at []int) []int { return []int{at[0] / 3, at[1]} }},
	{"repeat 0 times", []int{2, 3}, func(t *tensor) *tensor { return t.Repeat(0, 0) }, []int{0, 3}, nil},
	{"repeat in eight", []int{1, 2, 1, 2, 1, 2, 1, 3}, func(t *tensor) *tensor { return t.Repeat(2, 5) }, []int{1, 2, 1, 2, 1, 4, 1, 3},
		func(at []int) []int { return with(at, 5, at[5]/2) }},
	{"roll", []int{5}, func(t *tensor) *tensor { return t.Roll(2, 0) }, []int{5}, func(at []int) []int { return []int{(at[0] + 3) % 5} }},
	{"roll back", []int{2, 5}, func(t *tensor) *tensor { return t.Roll(-11, -1) }, []int{2, 5}, func(at []int) []int { return []int{at[0], (at[1] + 1) % 5} }},
	{"roll far", []int{5, 2}, func(t *tensor) *tensor { return t.Roll(5, 0) }, []int{5, 2}, slices.Clone[[]int]},
	{"roll least", []int{3}, func(t *tensor) *tensor { return t.Roll(-1<<63, 0) }, []int{3}, func(at []int) []int { return []int{(at[0] + 2) % 3} }},
	{"roll nothing", []int{0, 2}, func(t *tensor) *tensor { return t.Roll(1, 0) }, []int{0, 2}, nil},
	{"triu", []int{3, 4}, func(t *tensor) *tensor { return t.Triu(0) }, []int{3, 4}, where(func(at []int) bool { return at[1] >= at[0] })},
	{"triu above", []int{2, 4, 3}, func(t *tensor) *tensor { return t.Triu(1) }, []int{2, 4, 3}, where(func(at []int) bool { return at[2] > at[1] })},
	{"triu far above", []int{3, 4}, func(t *tensor) *tensor { return t.Triu(1 << 40) }, []int{3, 4}, where(func([]int) bool { return false })},
	{"triu far below", []int{3, 4}, func(t *tensor) *tensor { return t.Triu(-1 << 40) }, []int{3, 4}, slices.Clone[[]int]},
	{"tril", []int{3, 4}, func(t *tensor) *tensor { return t.Tril(0) }, []int{3, 4}, where(func(at []int) bool { return at[1] <= at[0] })},
	{"tril below", []int{4, 3}, func(t *tensor) *tensor { return t.Tril(-2) }, []int{4, 3}, where(func(at []int) bool { return at[1] <= at[0]-2 })},
	{"tril far above", []int{3, 4}, func(t *tensor) *tensor { return t.Tril(1 << 40) }, []int{3, 4}, slices.Clone[[]int]},
	{"tril far below", []int{3, 4}, func(t *tensor) *tensor { return t.Tril(-1 << 63) }, []int{3, 4}, where(func([]int) bool { return false })},
	{"tril of nothing", []int{2, 0, 4}, func(t *tensor) *tensor { return t.Tril(0) }, []int{2, 0, 4}, nil},
}

func where(keep func(at []int) bool) func(at []int) []int {
	return func(at []int) []int {
		if keep(at) {
			return slices.Clone(at)
		}
		return []int{-1}
	}
}

func TestRepeatRollTriangleAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(4, 4))
		for i, c := range ofOne {
			for j, dt := range every {
				if j != 0 && (i+j)%4 != 0 {
					continue
				}
				trial{name: c.name, operands: []operandOf{{few(rng, dt, c.shape...), dt}}, dt: dt,
					call: func(x []*tensor) *tensor { return c.call(x[0]) },
					want: func(a []array) array {
						return made(c.out, func(at []int) float64 {
							from := c.from(at)
							if len(from) > 0 && from[0] < 0 {
								return 0
							}
							return a[0].get(from...)
						})
					}}.run(t, dev)
			}
		}
	})
}

func TestOneHotMaskedFillAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(4, 5))
		for i, dt := range []ir.DType{ir.Int64, ir.Int32, ir.Uint8, ir.Int8, ir.Uint16, ir.Int16, ir.Uint32, ir.Uint64} {
			for _, n := range []int{0, 1, 5, 300} {
				for _, shape := range [][]int{{}, {7}, {2, 3}, {0, 2}} {
					out := every[(i+n)%len(every)]
					x := natural(rng, 7, shape...)
					if dt.IsSigned() && len(x.v) > 1 {
						x.v[1] = -1
					}
					trial{name: fmt.Sprint("onehot ", n), operands: []operandOf{{x, dt}}, dt: out,
						call: func(x []*tensor) *tensor { return x[0].OneHot(out, n) },
						want: func(a []array) array {
							return made(append(slices.Clone(shape), n), func(at []int) float64 {
								if a[0].get(at[:len(at)-1]...) == float64(at[len(at)-1]) {
									return 1
								}
								return 0
							})
						}}.run(t, dev)
				}
			}
		}
		for i, dt := range every {
			mask := [][]int{{3}, {2, 3}, {2, 1}, {}}[i%4]
			trial{name: "maskedfill", operands: []operandOf{{few(rng, dt, 2, 3), dt}, {truths(rng, mask...), ir.Bool}}, dt: dt,
				call: func(x []*tensor) *tensor { return x[0].MaskedFill(x[1], 1) },
				want: func(a []array) array {
					return made([]int{2, 3}, func(at []int) float64 {
						if a[1].cast(at) != 0 {
							return 1
						}
						return a[0].get(at...)
					})
				}}.run(t, dev)
		}
	})
}
