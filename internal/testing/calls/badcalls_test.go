package calls_test

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

// TestBadCalls makes the bad calls of optable. Each returns a tensor that carries the error, with
// the cause, the name of the called function and the caller's line. Nothing panics; Shape, DType
// and String are defined; every later op passes the error on.
func TestBadCalls(t *testing.T) {
	o := optable.NewGiven()
	f := millrace.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	i := millrace.FromSlice([]int32{1, 2, 3}, 3)
	b := millrace.FromSlice([]bool{true, false, true}, 3)
	calls, passes := optable.BadCalls(), optable.PassCalls()
	if len(calls) < 250 || len(passes) < 240 {
		t.Errorf("%d bad calls and %d that pass errors on", len(calls), len(passes))
	}
	for _, c := range calls {
		r, at := c.Call(o)
		wantErrorAt(t, c.Op, r.Err(), c.Cause, at)
		var op *millrace.OpError
		if !errors.As(r.Err(), &op) {
			continue
		}
		if op.Op != c.Op {
			t.Errorf("%s: names %s, want %s: %v", at, op.Op, c.Op, r.Err())
		}
		if s := r.String(); !strings.HasPrefix(s, "<") || !strings.Contains(s, at) {
			t.Errorf("%s: prints %q", at, s)
		}
		_ = r.DType().String()
		if n := r.Rank(); n != len(r.Shape()) || r.Dim(n) != 0 || r.Dim(-1-n) != 0 {
			t.Errorf("%s: shape %v, rank %d", at, r.Shape(), n)
		}
		same := func(next *tensor) {
			var a *millrace.OpError
			if !errors.As(next.Err(), &a) || a.Caller != op.Caller || a.Op != op.Op {
				t.Errorf("%s: a later op says %v, want %v", at, next.Err(), r.Err())
			}
		}
		for _, next := range []*tensor{r.Add(f), f.Mul(r), r.Exp().AddScalar(0.5).Sum(), r.Reshape(7, -1).T().Slice(millrace.At(3)), r.Cast(millrace.Bool).And(b), millrace.Where(b, r, i), r.PowInt(3), r.Squeeze(4)} {
			same(next)
		}
		for _, p := range passes {
			same(p.Call(o, r))
		}
		if v, err := millrace.Values[float32](r); v != nil || !sameError(err, r.Err()) {
			t.Errorf("%s: Values gives %v, %v", at, v, err)
		}
		if err := r.Eval(); !sameError(err, r.Err()) {
			t.Errorf("%s: Eval gives %v", at, err)
		}
		if s := r.Explain(); !strings.Contains(s, at) {
			t.Errorf("%s: Explain gives %q", at, s)
		}
		r.Release()
	}
	if v, err := millrace.Values[float32](f.AddScalar(1)); err != nil || v[5] != 7 {
		t.Errorf("the stream is no longer usable: %v, %v", v, err)
	}
}

// TestErrorsPassOn calls ops with an operand that carries an error, with a released one, with nil
// and with the zero Tensor. Results carry the error, before any other that the call has. If the
// call is the first to find the error, it names the call's line.
func TestErrorsPassOn(t *testing.T) {
	o := optable.NewGiven()
	bad := millrace.Ones(millrace.Float32, 3).Reshape(2)
	gone, row := millrace.Ones(millrace.Float32, 2, 2), millrace.Ones(millrace.Float32, 3)
	gone.Release()
	row.Release()
	for k, c := range optable.PassCalls() {
		name := fmt.Sprint(k, " ", c.Op)
		var a, b *millrace.OpError
		if r := c.Call(o, bad); !errors.As(r.Err(), &a) || !errors.As(bad.Err(), &b) || a.Caller != b.Caller || a.Op != b.Op {
			t.Errorf("%s of an error: %v", name, r.Err())
		}
		for _, x := range []*tensor{gone, row} {
			err := c.Call(o, x).Err()
			if !errors.Is(err, millrace.ErrReleased) || !strings.Contains(err.Error(), "optable/") || !errors.As(err, &a) || c.Op != "" && a.Op != c.Op {
				t.Errorf("%s of a released tensor: %v", name, err)
			}
		}
		for _, x := range []*tensor{nil, new(tensor)} {
			if x == nil && c.NilOK {
				continue
			}
			if err := c.Call(o, x).Err(); err == nil || !strings.Contains(err.Error(), "ensor") || !errors.As(err, &a) || !strings.Contains(a.Caller, "optable/") {
				t.Errorf("%s of no tensor: %v", name, err)
			}
		}
	}
}

// TestStreamReportsReleased: a stream reports the use of a released tensor, even if the op has
// other errors too.
func TestStreamReportsReleased(t *testing.T) {
	f := millrace.Ones(millrace.Float32, 2, 2)
	d, err := millrace.Default()
	if err != nil {
		t.Fatal(err)
	}
	s := d.NewStream()
	x := millrace.OnesOn(s, millrace.Float32, 2)
	x.Release()
	x.Sum(9)
	x.MatMul(f)
	if err := s.Err(); !errors.Is(err, millrace.ErrReleased) {
		t.Errorf("the stream says %v", err)
	}
}

// TestErrorsOfElements: ops whose results depend on elements report errors that only running finds.
func TestErrorsOfElements(t *testing.T) {
	i32 := millrace.Int32
	v := millrace.Ones(millrace.Float32, 3)
	first := func(a, _ *tensor) *tensor { return a }
	late := millrace.Ones(millrace.Float32, 2, 3).Take(millrace.Full(i32, 7, 3), 0) // the error is only known when the result is computed
	for name, f := range map[string]func() *tensor{
		"nonzero": func() *tensor { return millrace.NonZero(i32, late) },
		"unique":  func() *tensor { return millrace.Unique(late) },
		"hist":    func() *tensor { return first(millrace.Histogram(i32, late, 3, 0, 0)) },
	} {
		if r := f(); !errors.Is(r.Err(), millrace.ErrIndex) {
			t.Errorf("%s of an error that is found late: %v", name, r.Err())
		}
	}
	at := v.Take(millrace.FromSlice([]int32{0, -4}), 0, millrace.IndexFromEnd)
	if err := at.Eval(); !errors.Is(err, millrace.ErrIndex) || !strings.Contains(err.Error(), "-4") {
		t.Errorf("index -4 of 3 from the end: %v", err)
	}
}

// TestAllIntegers: the range of Integers may be all numbers of 64 bits but one.
func TestAllIntegers(t *testing.T) {
	if v, err := millrace.Values[int64](millrace.Integers(millrace.Int64, 1, math.MinInt64, math.MaxInt64, 4)); err != nil || v[0] == v[1] {
		t.Errorf("%v, %v", v, err)
	}
}

// TestReducedFromNothing: an empty tensor may have dimensions whose product, without the empty
// one, exceeds any memory. Ops that reduce or multiply the empty dimension away are then errors.
func TestReducedFromNothing(t *testing.T) {
	const m, n = 1 << (strconv.IntSize - 24), 1 << 21
	x := millrace.Zeros(millrace.Float64, m, n, 0)
	if err := x.Err(); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*tensor{
		"sum": x.Sum(2), "prod": x.ProdKeep(2), "mean": x.Mean(2), "norm2": x.Norm2(2), "all": x.Cast(millrace.Bool).All(2), "einsum": millrace.Einsum("ijk->ij", x),
		"matmul": millrace.Zeros(millrace.Float32, m, 0).MatMul(millrace.Zeros(millrace.Float32, 0, n)),
	} {
		if err := r.Err(); !errors.Is(err, millrace.ErrShape) || !strings.Contains(err.Error(), "badcalls_test.go") {
			t.Errorf("%s: %v%v, %v", name, r.DType(), r.Shape(), err)
		}
	}
	if err := x.Sum(0, 1).Err(); err != nil {
		t.Error(err)
	}
}
