package millrace

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// TopK returns the k largest elements along an axis, largest first, and their positions, Int64:
// PyTorch's topk. Numbers only, else ErrDType. NaN counts as the smallest, as in
// [Tensor.SortDescending], and equal elements keep their order. A k below 0 or above the size of
// the axis is ErrShape. A few elements of a long axis are selected in about the time that reading
// the axis takes; otherwise the axis is sorted.
func TopK(t *Tensor, k, axis int) (values, positions *Tensor) {
	const name = "topk"
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return twoFailures(name, h.bad)
	}
	list, err := axesOf([]int{axis}, t.Rank())
	switch {
	case err != nil:
	case k < 0 || k > t.shape()[list[0]]:
		err = shapeErr("%d of the %d elements along axis %d", k, t.shape()[list[0]], list[0])
	case t.DType() == Bool:
		err = dtypeErr("%v tensor: numbers only", t.DType())
	}
	if err != nil {
		return twoFailures(name, failed(name, err, t))
	}
	if s, ok := t.selection(k, list[0]); ok {
		return t.selected(s, list[0])
	}
	head := slices.Repeat([]Range{All}, list[0]+1)
	head[list[0]] = R(0, k)
	sorted, order := t.SortDescending(list[0]), t.ArgSortDescending(list[0])
	values, positions = sorted.Slice(head...), order.Slice(head...)
	done(sorted, order)
	return values, positions
}

// selection is a plan to select k of n elements. Each row is cut into chunks of equal length and
// a rest. Each of the k largest elements is in the rest or in one of k chunks: those with the
// largest maxima, earlier ones first if equal. For every other chunk there are k elements outside
// of it that are larger than all of its own, or equal and before them.
type selection struct{ k, n, chunk, chunks int }

// leastSelected is the least length of an axis for which elements are selected.
const leastSelected = 1 << 12

// selection reports whether selecting k elements along an axis is worthwhile. It sorts the maxima
// and the elements of k chunks; their number is least for chunks of √(n/k) elements.
func (t *Tensor) selection(k, axis int) (s selection, ok bool) {
	n := t.shape()[axis]
	if k == 0 || n < leastSelected || n > math.MaxInt32 || t.shape().Elems() == 0 {
		return s, false
	}
	s = selection{k: k, n: n, chunk: (int(math.Sqrt(float64(n/k))) + 15) &^ 15}
	if s.chunk > n {
		return s, false
	}
	s.chunks = n / s.chunk
	dev := t.Stream().Device()
	return s, s.chunks > 2*k && s.chunks+k*s.chunk < n/8 && dev.Supports(Int32) && dev.Supports(Int64) &&
		(!t.DType().IsFloat() || dev.Supports(signedOf[t.DType().Bits()]))
}

// signedOf maps a width to its signed integer dtype.
var signedOf = map[int]DType{8: Int8, 16: Int16, 32: Int32, 64: Int64}

// selected is TopK by selection.
func (t *Tensor) selected(s selection, axis int) (values, positions *Tensor) {
	var temporary []*Tensor
	of := func(x *Tensor) *Tensor {
		temporary = append(temporary, x)
		return x
	}
	defer func() { done(temporary...) }()
	lead := slices.Delete(slices.Clone(t.shape()), axis, axis+1)
	n, b, whole := s.n, lead.Elems(), s.chunks*s.chunk
	rows := of(of(t.rowsOf([]int{axis})).Reshape(b, n))

	// Find the k chunks with the largest maxima, and sort them by position.
	chunks := of(of(rows.Slice(All, R(0, whole))).Reshape(b, s.chunks, s.chunk))
	most := of(of(chunks.orderKeys(of)).Max(2))
	best := of(of(of(most.ArgSortAs(Int32, 1, true)).Slice(All, R(0, s.k))).Sort(1))

	// Take their elements and the rest, with their positions, in order.
	within := of(ArangeOn(t.Stream(), Int32, 0, float64(s.chunk), 1))
	at := of(of(of(of(best.MulScalar(float64(s.chunk))).Unsqueeze(2)).Add(within)).Reshape(b, s.k*s.chunk))
	if whole < n {
		rest := of(of(ArangeOn(t.Stream(), Int32, float64(whole), float64(n), 1)).Expand(b, n-whole))
		at = of(Concat(1, at, rest))
	}
	from := of(rows.TakeAlong(at, 1, IndexClamp))
	order := of(of(from.ArgSortAs(Int32, 1, true)).Slice(All, R(0, s.k)))
	place := of(at.TakeAlong(order, 1, IndexClamp))

	back := func(x *Tensor) *Tensor {
		return of(x.Reshape(slices.Concat(lead, ir.Shape{s.k})...)).MoveAxis(-1, axis)
	}
	return back(of(rows.TakeAlong(place, 1, IndexClamp))), back(of(place.Cast(Int64)))
}

// orderKeys returns integers with the order of a descending sort: for floats, -0 is less than 0,
// and NaN less than all others. of registers a tensor to release.
func (t *Tensor) orderKeys(of func(*Tensor) *Tensor) *Tensor {
	if !t.DType().IsFloat() {
		return t.same()
	}
	n := t.DType().Bits()
	bits := of(t.reinterpret(signedOf[n]))
	least := -math.Ldexp(1, n-1)
	// The bits of a negative float are larger the smaller the float is, so all bits but the sign
	// are inverted.
	turned := of(of(bits.BitNot()).AddScalar(least))
	keys := of(Where(of(bits.LtScalar(0)), turned, bits))
	infinity := of(FullOn(t.Stream(), t.DType(), math.Inf(1)))
	nan := of(keys.Gt(of(infinity.reinterpret(signedOf[n]))))
	return Where(nan, of(FullOn(t.Stream(), signedOf[n], least)), keys)
}
