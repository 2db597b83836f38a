package stream

import (
	"testing"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/ir"
)

// Several launches write a tensor in pieces. If any of them fails, the tensor is computed op by
// op, from operands that still exist. An op that overwrites one of these operands elsewhere runs
// op by op too.
func TestFaultOfAPiece(t *testing.T) {
	testhook.SetPieces(true)
	defer testhook.SetPieces(false)
	for n := range 3 {
		e := open(t)
		x, y := e.host(e.place(), ir.Shape{2}, 1, 2), e.host(e.place(), ir.Shape{3}, 3, 4, 5)
		double, more := mul(e, x, 2), add(e, y, 1)
		axis := &ir.Attr{Axes: []int{0}}
		some := e.record(ir.Concat, nil, axis, t1(x), t1(y))
		all := e.record(ir.Concat, nil, axis, t1(some), t1(double))
		Release(x)
		Release(y)
		Release(some)
		fault.SetAfter(fault.Launch, n, 1)
		e.want(all, 1, 2, 3, 4, 5, 2, 4)
		fault.Reset()
		e.want(double, 2, 4)
		e.want(more, 4, 5, 6)
		if st := e.d.Stats(); n < 2 && st.Fallbacks == 0 {
			t.Errorf("no launch behind %d failed", n)
		}
	}
}

// Ops recorded as one op are planned together, even if they repeat earlier ops.
func TestWholeIsNotCut(t *testing.T) {
	e := open(t)
	run := func(whole bool) int64 {
		before := e.d.Stats().Segments
		x := e.host(e.place(), ir.Shape{2}, 1, 2)
		end := func() {}
		if whole {
			end = Whole(x)
		}
		y := x
		for range 200 {
			y = e.op(ir.Neg, t1(y))
		}
		end()
		e.want(y, 1, 2)
		return e.d.Stats().Segments - before
	}
	if n := run(true); n != 1 {
		t.Errorf("%d segments", n)
	}
	if n := run(false); n < 2 {
		t.Errorf("%d segments of 200 ops that nobody holds together", n)
	}
}
