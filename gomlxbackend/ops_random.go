package gomlxbackend

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// Random bits are those of GoMLX's Go backend, so that a seed gives the same
// numbers on both: PCG-DXSM of math/rand/v2, a number of 128 bits that each draw
// multiplies and adds to. Many such steps are one of the same kind, so that the state
// of any draw is found from the first one: by a step to the block it is in, of which
// there is a table, and one within it.

// RNGBitGenerator gives random bits of a shape and the state behind them. The
// state's first two numbers are the high and the low half of the generator's; behind
// a call each has its bytes in the opposite order, as the Go backend leaves them. The
// third is not used. A bool is true but where all bits of its byte are 0.
func (f *Function) RNGBitGenerator(state compute.Value, shape shapes.Shape) (newState, values compute.Value, err error) {
	const op = compute.OpTypeRNGBitGenerator
	shape = shape.Clone()
	list, err := f.addOp(op, 1, []compute.Value{state}, nil, func(in []*Node) ([]*Node, error) {
		shape, err := f.concrete(shape)
		if err != nil {
			return nil, err
		}
		if !in[0].shape.Equal(compute.RNGStateShape) {
			return nil, errors.Errorf("the state must be a %s", compute.RNGStateShape)
		}
		if err := cmp.Or(f.builder.backend.holds("result", shape), unpacked(op, shape), realOnly(op, shape)); err != nil {
			return nil, err
		}
		each := 8 / int(shape.DType.Size()) // elements of a draw
		draws := (shape.Size() + each - 1) / each
		drawn, err := f.drawn(in[0], draws, shape)
		if err != nil {
			return nil, err
		}
		all, err := f.steps(fmt.Sprint(draws, " draws"), one.times(draws), none, 1, 1, 1)
		if err != nil {
			return nil, err
		}
		behind, err := f.add(op, in[0].shape, "state behind", func(r *run, in []*tensor) *tensor {
			end := r.step(stateOf(r, in[0]), in[1:])
			words := r.temp(millrace.Concat(0, r.temp(end.hi.Reshape(1)), r.temp(end.lo.Reshape(1))))
			swapped := r.temp(r.temp(r.temp(words.Bitcast(millrace.Uint8)).Flip(1)).Bitcast(millrace.Uint64))
			return millrace.Concat(0, swapped, r.temp(in[0].Slice(millrace.R(2, 3))))
		}, append([]*Node{in[0]}, all...)...)
		return []*Node{behind, drawn}, err
	})
	if err != nil {
		return nil, nil, errors.WithMessage(err, fmt.Sprintf("result %s", shape))
	}
	return list[0], list[1], nil
}

// drawn are the bits of draws from a state on.
func (f *Function) drawn(state *Node, draws int, shape shapes.Shape) (*Node, error) {
	const op = compute.OpTypeRNGBitGenerator
	if draws == 0 {
		return f.filled(op, shape, shapes.CastAsDType(0, shape.DType), state)
	}
	// Both halves of a draw are drawn anew: that takes less time than to write it and
	// to take it apart, and what uses them is the same kernel.
	half := shape.DType.Size() == 4
	m, each := min(draws, perBlock), 1
	if half {
		each = 2
	}
	within, err := f.stepTables(fmt.Sprint("within a block ", each), one, one, 1, perBlock, each)
	if err != nil {
		return nil, err
	}
	in := append([]*Node{state}, within...)
	blocks := (draws + perBlock - 1) / perBlock
	if blocks > 1 {
		starts, err := f.stepTables("to a block", none, one.times(perBlock), max(blocks, perBlock), 1, 1)
		if err != nil {
			return nil, err
		}
		in = append(in, starts...)
	}
	factor, err := f.makeConstant([]uint64{0xda942042e4dd58b5}, []int{1, 1})
	if err != nil {
		return nil, err
	}
	var shifts *Node
	if half {
		if shifts, err = f.halfShifts(); err != nil {
			return nil, err
		}
		in = append(in, shifts)
	}
	return f.add(op, shape, "bits", func(r *run, in []*tensor) *tensor {
		last := len(in) - 1
		steps := in[1:last]
		if half {
			steps = in[1 : last-1]
		}
		// Tables have a block's draws, and as many blocks: a graph uses the first ones.
		first := func(tables []*tensor, rows, columns int) []*tensor {
			cut := make([]*tensor, len(tables))
			for i, x := range tables {
				cut[i] = r.temp(x.Slice(millrace.R(0, rows), millrace.R(0, columns)))
			}
			return cut
		}
		at := stateOf(r, in[0])
		if len(steps) > 4 {
			at = r.step(at, first(steps[4:], blocks, 1))
		}
		from, bits := dtypes.Uint64, r.dxsm(r.step(at, first(steps[:4], 1, m*each)), in[last])
		if half {
			low := r.temp(r.temp(bits.Shr(first(in[last-1:last], 1, m*each)[0])).BitAndScalar(1<<32 - 1))
			from, bits = dtypes.Uint32, r.temp(low.Cast(millrace.Uint32))
		}
		elements := r.temp(bitsAs(r, bits, from, shape.DType))
		flat := r.temp(elements.Reshape(elements.Len()))
		return r.temp(flat.Slice(millrace.R(0, shape.Size()))).Reshape(shape.Dimensions...)
	}, append(in, factor)...)
}

// halfShifts are what brings the halves of each draw of a block to the low end.
func (f *Function) halfShifts() (*Node, error) {
	return f.table("halves of draws", []int{1, 2 * perBlock}, func() []uint64 { return slices.Repeat([]uint64{0, 32}, perBlock) })
}

// table is a constant that the backend makes once, for all graphs. It takes longer to make and to
// upload than a small draw.
func (f *Function) table(name string, dims []int, values func() []uint64) (*Node, error) {
	key := "table " + name
	if n := f.known[key]; n != nil {
		return n, nil
	}
	b := f.builder.backend
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tables[name]
	if t == nil {
		t = dtypeRows[dtypes.Uint64].upload(b.dev, values(), dims)
		if err := t.Err(); err != nil {
			return nil, err
		}
		if b.tables == nil {
			b.tables = map[string]*millrace.Tensor{}
		}
		b.tables[name] = t
	}
	f.known[key] = f.append(&Node{op: compute.OpTypeConstant, shape: shapes.Make(dtypes.Uint64, dims...), constant: t})
	return f.known[key], nil
}

// perBlock is how many draws a block has.
const perBlock = 1024

// wide is a number of 128 bits.
type wide struct{ hi, lo uint64 }

func (x wide) mul(y wide) wide {
	hi, lo := bits.Mul64(x.lo, y.lo)
	return wide{hi + x.hi*y.lo + x.lo*y.hi, lo}
}

func (x wide) add(y wide) wide {
	lo, carry := bits.Add64(x.lo, y.lo, 0)
	hi, _ := bits.Add64(x.hi, y.hi, carry)
	return wide{hi, lo}
}

// affine is what steps do with a state: it becomes a·state + c.
type affine struct{ a, c wide }

// none leaves a state as it is.
var none = affine{a: wide{0, 1}}

// one is the step of a draw.
var one = affine{wide{2549297995355413924, 4865540595714422341}, wide{6364136223846793005, 1442695040888963407}}

// then is x and behind it y.
func (x affine) then(y affine) affine { return affine{y.a.mul(x.a), y.a.mul(x.c).add(y.c)} }

// times is as many steps x.
func (x affine) times(n int) affine {
	all := none
	for ; n > 0; n /= 2 {
		if n%2 == 1 {
			all = all.then(x)
		}
		x = x.then(x)
	}
	return all
}

// halves are the halves of a and of c of n steps: the first, and each next one behind it, each so
// many times.
func halves(first, next affine, n, times int) (parts [4][]uint64) {
	for range n {
		for i, part := range []uint64{first.a.hi, first.a.lo, first.c.hi, first.c.lo} {
			for range times {
				parts[i] = append(parts[i], part)
			}
		}
		first = first.then(next)
	}
	return parts
}

// stepTables is steps of which all graphs use the same. More than a block of them are a graph's own.
func (f *Function) stepTables(name string, first, next affine, rows, columns, times int) ([]*Node, error) {
	if rows*columns > perBlock {
		return f.steps(name, first, next, rows, columns, times)
	}
	parts := sync.OnceValue(func() [4][]uint64 { return halves(first, next, rows*columns, times) })
	nodes := make([]*Node, 4)
	for i := range nodes {
		var err error
		nodes[i], err = f.table(fmt.Sprint(name, " ", i), []int{rows, columns * times}, func() []uint64 { return parts()[i] })
		if err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// steps are four constants, the halves of steps, as many as these dimensions hold.
func (f *Function) steps(name string, first, next affine, rows, columns, times int) ([]*Node, error) {
	parts := halves(first, next, rows*columns, times)
	columns *= times
	nodes := make([]*Node, 4)
	for i, part := range parts {
		key := fmt.Sprint("steps ", name, rows, columns, i)
		if nodes[i] = f.known[key]; nodes[i] != nil {
			continue
		}
		var err error
		if nodes[i], err = f.makeConstant(part, []int{rows, columns}); err != nil {
			return nil, err
		}
		f.known[key] = nodes[i]
	}
	return nodes, nil
}

// pair128 is a tensor of numbers of 128 bits.
type pair128 struct{ hi, lo *tensor }

// stateOf is a state as one number, along two axes.
func stateOf(r *run, x *tensor) pair128 {
	word := func(i int) *tensor { return r.temp(r.temp(x.Slice(millrace.R(i, i+1))).Reshape(1, 1)) }
	return pair128{word(0), word(1)}
}

// step is a·x + c, whose halves are steps.
func (r *run) step(x pair128, steps []*tensor) pair128 {
	mul := func(x, y *tensor) *tensor { return r.temp(x.Mul(y)) }
	add := func(x, y *tensor) *tensor { return r.temp(x.Add(y)) }
	hi, lo := steps[2], steps[3]
	crossed := add(mul(x.hi, steps[1]), mul(x.lo, steps[0]))
	product := add(r.temp(x.lo.MulHigh(steps[1])), crossed)
	sum := add(mul(x.lo, steps[1]), lo)
	carry := r.temp(r.temp(sum.Lt(lo)).Cast(millrace.Uint64))
	return pair128{add(add(product, hi), carry), sum}
}

// dxsm is what a draw gives of a state: its high half, shifted and multiplied twice.
func (r *run) dxsm(x pair128, factor *tensor) *tensor {
	hi := r.temp(x.hi.BitXor(r.temp(x.hi.ShrScalar(32))))
	hi = r.temp(hi.Mul(factor))
	hi = r.temp(hi.BitXor(r.temp(hi.ShrScalar(48))))
	return r.temp(hi.Mul(r.temp(x.lo.BitOrScalar(1))))
}
