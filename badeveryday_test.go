package millrace_test

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

// badCall is a call whose result carries an error: of the op, with the cause.
type badCall struct {
	op    string
	call  func() (*tensor, int)
	cause error
}

// checkBad holds results of bad calls to the name, the cause and the line of the call in
// the caller's file, and what is computed from them to the same error.
func checkBad(t *testing.T, calls []badCall) {
	t.Helper()
	for _, c := range calls {
		r, at := c.call()
		wantError(t, c.op, r.Err(), c.cause, at)
		var op, next *millrace.OpError
		if errors.As(r.Err(), &op) && op.Op != c.op {
			t.Errorf("line %d: names %s, want %s: %v", at, op.Op, c.op, r.Err())
		}
		if !errors.As(r.Exp().Err(), &next) || op == nil || next.Caller != op.Caller {
			t.Errorf("line %d: what follows says %v", at, r.Exp().Err())
		}
		r.Release()
	}
	if err := wantOnes(millrace.Full(millrace.Float32, 2, 3).SubScalar(1)); err != nil {
		t.Errorf("the stream is no longer usable: %v", err)
	}
}

// checkHandsOn calls ops with an operand that carries an error, with one that was
// released and with none: their results carry the error, and name the line of the
// call where it is the first to find it.
func checkHandsOn(t *testing.T, ops map[string]func(x *tensor) *tensor) {
	t.Helper()
	bad := millrace.Ones(millrace.Float32, 3).Reshape(2)
	gone := millrace.Ones(millrace.Float32, 3)
	gone.Release()
	for name, f := range ops {
		r := f(bad)
		var a, b *millrace.OpError
		if !errors.As(r.Err(), &a) || !errors.As(bad.Err(), &b) || a.Caller != b.Caller || a.Op != b.Op {
			t.Errorf("%s of an error: %v", name, r.Err())
		}
		if r = f(gone); !errors.Is(r.Err(), millrace.ErrReleased) {
			t.Errorf("%s of what was released: %v", name, r.Err())
		}
		_, file, _, _ := runtime.Caller(0)
		if r = f(nil); !errors.As(r.Err(), &a) || !strings.HasPrefix(a.Caller, strings.TrimSuffix(file, ".go")) {
			t.Errorf("%s of nil: %v", name, r.Err())
		}
	}
}

func TestBadShapes(t *testing.T) {
	f32, shape, dtype := millrace.Float32, millrace.ErrShape, millrace.ErrDType
	m, v, zero := millrace.Ones(f32, 2, 3), millrace.Ones(f32, 3), millrace.Ones(f32)
	b := millrace.Ones(millrace.Bool, 3, 3)
	first := func(ts []*tensor) *tensor { return ts[0] }
	last := func(ts []*tensor) *tensor { return ts[len(ts)-1] }
	checkBad(t, []badCall{
		{"eye", func() (*tensor, int) { return millrace.Eye(f32, -1), line() }, shape},
		{"eye", func() (*tensor, int) { return millrace.Eye(f32, 1, 2, 3), line() }, shape},
		{"eye", func() (*tensor, int) { return millrace.Eye(f32, 1<<40), line() }, shape},
		{"eye", func() (*tensor, int) { return millrace.Eye(millrace.Invalid, 2), line() }, dtype},
		{"eye", func() (*tensor, int) { return millrace.EyeOn(nil, f32, 2), line() }, nil},
		{"linspace", func() (*tensor, int) { return millrace.Linspace(millrace.Int32, 0, 1, 3), line() }, dtype},
		{"linspace", func() (*tensor, int) { return millrace.Linspace(f32, 0, 1e300, 3), line() }, dtype},
		{"linspace", func() (*tensor, int) { return millrace.Linspace(f32, 0, 1, -1), line() }, shape},
		{"linspace", func() (*tensor, int) { return millrace.Linspace(f32, 0, math.NaN(), 3), line() }, shape},
		{"linspace", func() (*tensor, int) { return millrace.Linspace(f32, math.Inf(1), 0, 3), line() }, shape},
		{"linspace", func() (*tensor, int) { return millrace.LinspaceOn(nil, f32, 0, 1, 3), line() }, nil},
		{"split", func() (*tensor, int) { return last(millrace.Split(m, 1, 1, 1)), line() }, shape},
		{"split", func() (*tensor, int) { return first(millrace.Split(m, 1, 4, -1)), line() }, shape},
		{"split", func() (*tensor, int) { return first(millrace.Split(m, 1)), line() }, shape},
		{"split", func() (*tensor, int) { return first(millrace.Split(m, 1, math.MaxInt, math.MaxInt, 5)), line() }, shape},
		{"split", func() (*tensor, int) { return first(millrace.Split(m, 2, 3)), line() }, shape},
		{"chunk", func() (*tensor, int) { return first(millrace.Chunk(m, 0, 1)), line() }, shape},
		{"chunk", func() (*tensor, int) { return first(millrace.Chunk(m, 2, -3)), line() }, shape},
		{"transpose", func() (*tensor, int) { return m.Transpose(0, 2), line() }, shape},
		{"transpose", func() (*tensor, int) { return m.Transpose(-3, 0), line() }, shape},
		{"moveaxis", func() (*tensor, int) { return m.MoveAxis(2, 0), line() }, shape},
		{"moveaxis", func() (*tensor, int) { return zero.MoveAxis(0, 0), line() }, shape},
		{"flatten", func() (*tensor, int) { return m.Flatten(1, 0), line() }, shape},
		{"flatten", func() (*tensor, int) { return m.Flatten(0, 2), line() }, shape},
		{"diag", func() (*tensor, int) { return zero.Diag(0), line() }, shape},
		{"diag", func() (*tensor, int) { return v.Diag(math.MinInt), line() }, shape},
		{"diag", func() (*tensor, int) { return v.Diag(1 << 40), line() }, shape},
		{"trace", func() (*tensor, int) { return v.Trace(), line() }, shape},
		{"trace", func() (*tensor, int) { return b.Trace(), line() }, dtype},
		{"outer", func() (*tensor, int) { return millrace.Outer(v, m), line() }, shape},
		{"outer", func() (*tensor, int) { return millrace.Outer(v, v.Cast(millrace.Int32)), line() }, dtype},
		{"outer", func() (*tensor, int) { return millrace.Outer(b.Diag(0), b.Diag(0)), line() }, dtype},
	})
	checkHandsOn(t, map[string]func(x *tensor) *tensor{
		"split":     func(x *tensor) *tensor { return last(millrace.Split(x, 9, 1, 2)) },
		"chunk":     func(x *tensor) *tensor { return last(millrace.Chunk(x, 0, 9)) },
		"transpose": func(x *tensor) *tensor { return x.Transpose(0, 9) },
		"moveaxis":  func(x *tensor) *tensor { return x.MoveAxis(0, 9) },
		"flatten":   func(x *tensor) *tensor { return x.Flatten(0, 9) },
		"diag":      func(x *tensor) *tensor { return x.Diag(0) },
		"trace":     (*tensor).Trace,
		"outer":     func(x *tensor) *tensor { return millrace.Outer(v, x) },
		"of outer":  func(x *tensor) *tensor { return millrace.Outer(x, v) },
	})
}

func TestBadFunctions(t *testing.T) {
	i, dtype := millrace.Ones(millrace.Int32, 3), millrace.ErrDType
	checkBad(t, []badCall{
		{"log10", func() (*tensor, int) { return i.Log10(), line() }, dtype},
		{"asinh", func() (*tensor, int) { return i.Asinh(), line() }, dtype},
		{"acosh", func() (*tensor, int) { return i.Acosh(), line() }, dtype},
		{"atanh", func() (*tensor, int) { return i.Cast(millrace.Bool).Atanh(), line() }, dtype},
	})
	checkHandsOn(t, map[string]func(x *tensor) *tensor{
		"log10": (*tensor).Log10, "asinh": (*tensor).Asinh, "acosh": (*tensor).Acosh, "atanh": (*tensor).Atanh,
	})
}
