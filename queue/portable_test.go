package queue

import (
	"bytes"
	"testing"

	"github.com/millrace-go/millrace/ir"
)

// The form of a key is the same on every device, whatever was interned before.
func TestAppendForm(t *testing.T) {
	type shape = ir.Shape
	one, two := fresh(), fresh()
	two.Interner.ID([]byte("something else"))
	sum := func(q *Queue[int], axes ...int) []byte {
		k := node(q, ir.Sum, shape{2}, &ir.Attr{Axes: axes}, shape{2, 3})
		return q.Interner.AppendForm(nil, &k)
	}
	if !bytes.Equal(sum(one, 1), sum(two, 1)) {
		t.Error("numbers of one device are in the form")
	}
	if bytes.Equal(sum(fresh(), 1), sum(fresh(), 0)) {
		t.Error("axes are not in the form")
	}
	seen := map[string]bool{}
	for _, k := range []Key{
		add(shape{4, 3}, shape{1, 3}, shape{4, 3}),
		add(shape{1, 3}, shape{1, 3}, shape{1, 3}),
		add(shape{4, 3}, shape{4, 3}, shape{4, 3}),
		add(shape{4, 3}, shape{3}, shape{4, 3}),
		node(fresh(), ir.Mul, shape{4, 3}, nil, shape{4, 3}, shape{4, 3}),
	} {
		form := string(one.Interner.AppendForm(nil, &k))
		if seen[form] {
			t.Errorf("%+v has the form of another key", k)
		}
		seen[form] = true
	}
	a, b := add(shape{4, 3}, shape{4, 3}, shape{4, 3}), add(shape{7, 2}, shape{7, 2}, shape{7, 2})
	if !bytes.Equal(one.Interner.AppendForm(nil, &a), two.Interner.AppendForm(nil, &b)) {
		t.Error("sizes are in the form")
	}
}

// Loose forms are equal for keys that differ only in their bit sets, and they report dimensions of
// 1. A truncated form is invalid.
func TestAppendLoose(t *testing.T) {
	type shape = ir.Shape
	in := fresh().Interner
	loose := func(keys ...Key) (string, bool) {
		t.Helper()
		var forms []byte
		for i := range keys {
			forms = in.AppendForm(forms, &keys[i])
		}
		b, ones, ok := AppendLoose([]byte("end"), forms)
		if !ok || string(b[:3]) != "end" {
			t.Fatalf("%x is not understood: %x", forms, b)
		}
		return string(b), ones
	}
	batch, one, bias := add(shape{4, 3}, shape{4, 3}, shape{4, 3}), add(shape{1, 3}, shape{1, 3}, shape{1, 3}), add(shape{4, 3}, shape{1, 3}, shape{4, 3})
	want, ones := loose(batch, bias)
	if ones {
		t.Error("a dimension of 1 that is none, or that broadcasts")
	}
	if got, ones := loose(one, one); got != want || !ones {
		t.Errorf("%x, %v, want %x", got, ones, want)
	}
	for _, k := range []Key{
		add(shape{4, 3}, shape{3}, shape{4, 3}),
		node(fresh(), ir.Mul, shape{4, 3}, nil, shape{4, 3}, shape{4, 3}),
	} {
		if got, _ := loose(k, bias); got == want {
			t.Errorf("%+v has the loose form of another key", k)
		}
	}
	form := in.AppendForm(nil, &batch)
	for n := 1; n < len(form); n++ {
		if b, _, ok := AppendLoose(nil, form[:n]); ok {
			t.Errorf("cut to %d: %x", n, b)
		}
	}
}
