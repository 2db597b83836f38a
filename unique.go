package millrace

import "github.com/millrace-go/millrace/ir"

// Unique returns the distinct values of t, in the order of [Tensor.Sort]: NumPy's and PyTorch's
// unique. All NaN count as one value, and so do -0 and +0. The result is a vector of t's dtype,
// which may be any. Unique reads the number of values, as [NonZero] does. The gradient of a value
// goes to the first element that has it.
func Unique(t *Tensor) *Tensor {
	const name = "unique"
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	x, back := t.sortable()
	sorted := x.Sort(0)
	first := firstOfRun(sorted)
	r := back(MaskedSelect(sorted, first))
	done(x, sorted, first)
	return r
}

// UniqueAll is [Unique] with two more results of dtype dt, Int32 or Int64 (else ErrDType):
// NumPy's unique_all. inverse has t's shape and says which of the values each element is, so
// values.Take(inverse, 0) is t. counts says how often each value occurs.
func UniqueAll(dt DType, t *Tensor) (values, inverse, counts *Tensor) {
	const name = "uniqueall"
	h := hold(name, &t)
	defer h.end()
	if h.bad == nil && !ir.IndexDTypes.Has(dt) {
		h.bad = failed(name, dtypeErr("positions of %v: Int32 or Int64", dt), t)
	}
	if h.bad != nil {
		all := failures(name, 3, h.bad)
		return all[0], all[1], all[2]
	}
	x, back := t.sortable()
	n := x.Len()
	order := x.ArgSortAs(dt, 0, false)
	sorted := x.Take(order, 0, IndexClamp)
	first := firstOfRun(sorted)
	at, err := truePositions(first)
	if n == 1 && err == nil { // with one element, first needs no values, so no error was read yet
		_, err = dense(x)
	}
	if err != nil {
		done(at, x, order, sorted, first)
		all := failures(name, 3, failed(name, err, t))
		return all[0], all[1], all[2]
	}
	values = back(sorted.Take(at, 0, IndexClamp))

	runs := first.Cast(dt)
	number := runs.CumSum(0)
	which := number.SubScalar(1)
	none := ZerosOn(t.Stream(), dt, n)
	flat := none.ScatterSet(order, which, 0, IndexDrop)
	inverse = flat.Reshape(t.shape()...)

	starts := at.Cast(dt)
	end := FullOn(t.Stream(), dt, float64(n), 1)
	ends := Concat(0, starts, end)
	from, to := ends.Slice(R(0, -1)), ends.Slice(R(1, End))
	counts = to.Sub(from)
	done(x, order, sorted, first, at, runs, number, which, none, flat, starts, end, ends, from, to)
	return values, inverse, counts
}

// sortable returns a vector of t's elements that can be sorted. back converts a result to t's
// dtype and ends its operand.
func (t *Tensor) sortable() (x *Tensor, back func(*Tensor) *Tensor) {
	flat := t.Reshape(t.Len())
	if t.DType() != Bool {
		return flat, func(r *Tensor) *Tensor { return r }
	}
	x = flat.Cast(Uint8)
	done(flat)
	return x, func(r *Tensor) *Tensor { return narrowed(r, Bool) }
}

// firstOfRun returns where a sorted vector's element differs from the one before it.
func firstOfRun(x *Tensor) *Tensor {
	n := x.Len()
	head := OnesOn(x.Stream(), Bool, min(n, 1))
	if n < 2 {
		return head
	}
	a, b := x.Slice(R(0, -1)), x.Slice(R(1, End))
	other := a.Ne(b)
	if x.DType().IsFloat() { // NaN is last, so all elements after a NaN are NaN
		nan := a.IsNaN()
		number := nan.Not()
		both := other.And(number)
		done(nan, number, other)
		other = both
	}
	r := Concat(0, head, other)
	done(head, a, b, other)
	return r
}
