package millrace

import (
	"math"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// Einsum computes Einstein's summation over tensors, as NumPy's einsum: "ij,jk->ik" is the matrix
// product, "bij,bkj->bik" a batch of products with the second operand transposed, "ii->i" the
// diagonal, "ij->" the sum. Each letter names a dimension, which has one size in all operands (a
// size of 1 broadcasts). An ellipsis stands for any number of dimensions, which broadcast from
// their last. Dimensions that are not named after the arrow are summed over, those of an ellipsis
// too. Without an arrow, the result has the dimensions of the ellipsis, then the letters that
// occur once, in alphabetical order.
//
// A specification that does not parse or does not fit the shapes is ErrShape. Dtypes are as for
// [Tensor.MatMul]. Sums over one operand are those of [Tensor.Sum]; sums over products are
// contractions.
//
// With more than two operands, Einsum contracts two at a time. It chooses the pair whose result
// is smallest compared with its operands. It does not form intermediate results of more than 8
// dimensions; if it cannot avoid them, the error is ErrShape.
func Einsum(spec string, operands ...*Tensor) (r *Tensor) {
	const name = "einsum"
	if len(operands) == 0 {
		return failed(name, shapeErr("no operands were given"))
	}
	operands, c := composeAll(name, operands)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	for _, t := range operands {
		if t.DType() == Bool {
			return failed(name, dtypeErr("%v is not a number dtype", t.DType()), operands...)
		}
	}
	in, out, err := parseEinsum(spec, operands)
	if err != nil {
		return failed(name, err, operands...)
	}
	for _, l := range out {
		if !slices.ContainsFunc(in, func(ls []int) bool { return slices.Contains(ls, l) }) {
			return failed(name, shapeErr("%q: a dimension of the result is in no operand", spec), operands...)
		}
	}
	for i := range operands {
		for {
			d, ls, ok := diagonal(operands[i], in[i])
			if !ok {
				break
			}
			if d == nil {
				return failed(name, shapeErr("%q takes a diagonal of %v, whose dimensions differ", spec, operands[i].shape()), operands...)
			}
			operands[i], in[i] = d, ls
		}
	}
	if len(operands) > 2 {
		return greedySum(name, spec, operands, in, out)
	}
	return labelledSum(name, operands, in, out)
}

// greedySum contracts two operands at a time until two are left.
func greedySum(name, spec string, operands []*Tensor, in [][]int, out []int) *Tensor {
	size := map[int]int{}
	for i, ls := range in {
		for d, l := range ls {
			if n := operands[i].shape()[d]; size[l] < 2 || n == 0 { // a size of 1 broadcasts to the others
				size[l] = n
			}
		}
	}
	elems := func(ls []int) float64 {
		n := 1.0
		for _, l := range ls {
			n *= float64(size[l])
		}
		return n
	}
	for len(operands) > 2 {
		best, from, to := math.Inf(1), 0, 0
		var labels []int
		for i := range in {
			for j := i + 1; j < len(in); j++ {
				ls := keptLabels(in, i, j, out)
				if cost := elems(ls) - elems(in[i]) - elems(in[j]); len(ls) <= ir.MaxRank && cost < best {
					best, from, to, labels = cost, i, j, ls
				}
			}
		}
		if labels == nil && to == 0 {
			return failed(name, shapeErr("%q: an intermediate result has more than %d dimensions", spec, ir.MaxRank), operands...)
		}
		pair := labelledSum(name, []*Tensor{operands[from], operands[to]}, [][]int{in[from], in[to]}, slices.Clone(labels))
		if bad := unusable(name, pair); bad != nil {
			return bad
		}
		operands[from], in[from] = pair, labels
		operands, in = slices.Delete(operands, to, to+1), slices.Delete(in, to, to+1)
	}
	return labelledSum(name, operands, in, out)
}

// keptLabels returns the labels of operands i and j that the result or another operand has.
func keptLabels(in [][]int, i, j int, out []int) []int {
	ls := []int{}
	for _, l := range slices.Concat(in[i], in[j]) {
		needed := slices.Contains(out, l)
		for k, other := range in {
			needed = needed || k != i && k != j && slices.Contains(other, l)
		}
		if needed && !slices.Contains(ls, l) {
			ls = append(ls, l)
		}
	}
	return ls
}

// labelledSum is Einsum on labels: those of each operand's dims, which are distinct, and those of
// the result. The operands are handles that only the caller has. It changes the lists.
func labelledSum(name string, operands []*Tensor, in [][]int, out []int) (r *Tensor) {
	defer within(operands...).end(&r)
	for i := range operands {
		// A label that only this operand has, and not the result, is summed first.
		var other []int
		if len(in) == 2 {
			other = in[1-i]
		}
		var axes []int
		for d, l := range in[i] {
			if !slices.Contains(out, l) && !slices.Contains(other, l) {
				axes = append(axes, d)
			}
		}
		if len(axes) > 0 {
			var left []int
			for d, l := range in[i] {
				if !slices.Contains(axes, d) {
					left = append(left, l)
				}
			}
			operands[i], in[i] = reduce(ir.Sum, operands[i], axes, false), left
		}
	}
	if len(operands) == 1 {
		order := make([]int, len(out))
		for i, l := range out {
			order[i] = slices.Index(in[0], l)
		}
		return operands[0].Permute(order...)
	}
	var sum []int
	for _, l := range in[0] {
		if !slices.Contains(out, l) {
			sum = append(sum, l)
		}
	}
	return contract(name, operands[0], in[0], operands[1], in[1], out, sum)
}

// parseEinsum turns a specification into labels. A letter's label is its code. The dimensions of
// an ellipsis have negative labels, counted from its last.
func parseEinsum(spec string, operands []*Tensor) (in [][]int, out []int, err error) {
	left, right, arrow := strings.Cut(strings.ReplaceAll(spec, " ", ""), "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(operands) {
		return nil, nil, shapeErr("%q names %d operands, %d are given", spec, len(terms), len(operands))
	}
	dots := 0 // dimensions of the widest ellipsis
	for i, term := range terms {
		head, tail, dotted := strings.Cut(term, "...")
		more := operands[i].Rank() - len(head) - len(tail)
		if !dotted && more != 0 || more < 0 {
			return nil, nil, shapeErr("%q does not fit an operand of shape %v", term, operands[i].shape())
		}
		ls, err := letters(head)
		if err != nil {
			return nil, nil, shapeErr("%q: %v", spec, err)
		}
		if dotted {
			ls = append(ls, leading(more)...)
			dots = max(dots, more)
		}
		rest, err := letters(tail)
		if err != nil {
			return nil, nil, shapeErr("%q: %v", spec, err)
		}
		in = append(in, append(ls, rest...))
	}
	if !arrow {
		seen := map[int]int{}
		for _, l := range slices.Concat(in...) {
			seen[l]++
		}
		for l, n := range seen {
			if l >= 0 && n == 1 {
				out = append(out, l)
			}
		}
		slices.Sort(out)
		return in, append(leading(dots), out...), nil
	}
	head, tail, dotted := strings.Cut(right, "...")
	out, err = letters(head)
	if err == nil && dotted {
		out = append(out, leading(dots)...)
	}
	rest, err2 := letters(tail)
	if err != nil || err2 != nil {
		return nil, nil, shapeErr("%q has a character that is not a letter", spec)
	}
	out = append(out, rest...)
	for i, l := range out {
		if slices.Contains(out[:i], l) {
			return nil, nil, shapeErr("%q: a dimension of the result is named twice", spec)
		}
	}
	return in, out, nil
}

func letters(s string) ([]int, error) {
	var ls []int
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return nil, shapeErr("%q is not a letter", c)
		}
		ls = append(ls, int(c))
	}
	return ls, nil
}

// diagonal replaces the first two dimensions of t that have the same label by their diagonal, as
// the last dimension. It returns false if no label occurs twice, and nil if the two sizes differ.
func diagonal(t *Tensor, labels []int) (*Tensor, []int, bool) {
	for i, l := range labels {
		j := slices.Index(labels[:i], l)
		if j < 0 {
			continue
		}
		shape := t.shape()
		var order, outer, left []int
		for d := range labels {
			if d != i && d != j {
				order = append(order, d)
				outer = append(outer, shape[d])
				left = append(left, labels[d])
			}
		}
		n := shape[i]
		if shape[j] != n {
			return nil, nil, true
		}
		flat := t.Permute(append(order, j, i)...).Reshape(append(slices.Clone(outer), n*n)...)
		pick := make([]Range, len(outer)+1)
		pick[len(outer)] = R(0, End, n+1)
		return flat.Slice(pick...), append(left, l), true
	}
	return nil, nil, false
}
