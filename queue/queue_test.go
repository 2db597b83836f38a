package queue

import (
	"testing"

	"github.com/millrace-go/millrace/ir"
)

func fresh() *Queue[int] { return &Queue[int]{Interner: new(Interner)} }

// node records an operation on inputs of these shapes.
func node(q *Queue[int], op ir.Op, out ir.Shape, attr *ir.Attr, args ...ir.Shape) Key {
	var in [3]ir.Arg
	for i, s := range args {
		in[i].ID = q.Input(i, ir.Float32, NewForm(s))
	}
	n := ir.Node{Op: op, DT: ir.Float32, Attr: attr, NArgs: uint8(len(args)), Args: in}
	return q.Append(&n, NewForm(out), 0).Key
}

func add(a, b, out ir.Shape) Key { return node(fresh(), ir.Add, out, nil, a, b) }

// A dim of size 1 in operand and result may be taken as broadcast or as equal; any other
// difference needs a plan of its own.
func TestLegal(t *testing.T) {
	type shape = ir.Shape
	equal := add(shape{4, 3}, shape{4, 3}, shape{4, 3})
	row := add(shape{4, 3}, shape{1, 3}, shape{4, 3})
	ones := add(shape{1, 3}, shape{1, 3}, shape{1, 3})
	missing := add(shape{4, 3}, shape{3}, shape{4, 3})
	gather := func(data, indices, out shape) Key { // along axis 1
		return node(fresh(), ir.Gather, out, &ir.Attr{Axes: []int{1}}, data, indices)
	}
	taken := gather(shape{4, 9}, shape{1, 5}, shape{4, 5})
	for _, c := range []struct {
		name    string
		have, k Key
		want    bool
	}{
		{"other sizes", equal, add(shape{7, 2}, shape{7, 2}, shape{7, 2}), true},
		{"batch one of a broadcast", row, ones, true},
		{"batch one of an equal pair", equal, ones, true},
		{"broadcast where it was equal", equal, row, false},
		{"equal where it was broadcast", row, equal, false},
		{"ones do not stand for more", ones, row, false},
		{"ones stand for equal sizes", ones, equal, true},
		{"a batch of one of what is taken", taken, gather(shape{1, 9}, shape{1, 5}, shape{1, 5}), true},
		{"what is taken of one does not stand for more", gather(shape{1, 9}, shape{1, 5}, shape{1, 5}), taken, false},
		{"indices that are equal where they broadcast", taken, gather(shape{4, 9}, shape{4, 5}, shape{4, 5}), false},
		{"fewer dims", row, missing, false},
		{"other op", equal, node(fresh(), ir.Mul, shape{4, 3}, nil, shape{4, 3}, shape{4, 3}), false},
	} {
		if got := Legal(&c.have, &c.k); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// Equal hashes do not make blobs equal.
func TestInternerCollision(t *testing.T) {
	in := new(Interner)
	one := in.ID([]byte("one"))
	for h := range in.byKey { // as if another blob had the same hash
		in.byKey[h] = append(in.byKey[h], interned{[]byte("two"), 99})
		if id := find(in.byKey[h], []byte("two")); id != 99 {
			t.Errorf("the second of two is number %d", id)
		}
		if id := find(in.byKey[h], []byte("three")); id != 0 {
			t.Errorf("a blob that is not there is number %d", id)
		}
	}
	if id := in.ID([]byte("one")); id != one || one == 0 {
		t.Errorf("%d, then %d", one, id)
	}
	if id := in.ID([]byte("four")); id == one || id == 0 {
		t.Errorf("another blob is number %d", id)
	}
}

// Keys include what the axes are for, but not the bounds of slices.
func TestAttrKeys(t *testing.T) {
	q := fresh()
	x := ir.Shape{2, 3}
	key := func(op ir.Op, out ir.Shape, a *ir.Attr) uint32 { return uint32(node(q, op, out, a, x).head >> 32) }
	keep := key(ir.Sum, ir.Shape{2, 1}, &ir.Attr{Axes: []int{1}, Keep: true})
	if other := key(ir.Sum, ir.Shape{2}, &ir.Attr{Axes: []int{1}}); other == keep {
		t.Error("kept axes are not in the key")
	}
	if other := key(ir.Sum, ir.Shape{1, 3}, &ir.Attr{Axes: []int{0}, Keep: true}); other == keep {
		t.Error("axes are not in the key")
	}
	if key(ir.Slice, ir.Shape{1, 3}, &ir.Attr{Start: []int{0, 0}, Step: []int{1, 1}}) !=
		key(ir.Slice, ir.Shape{1, 3}, &ir.Attr{Start: []int{1, 0}, Step: []int{-1, 1}}) {
		t.Error("slice bounds are in the key")
	}
	if key(ir.Reshape, ir.Shape{6}, nil) == key(ir.Reshape, ir.Shape{3, 2}, nil) {
		t.Error("reshape groups are not in the key")
	}
}

// A queue that is used again shows nothing of its earlier contents.
func TestReset(t *testing.T) {
	q := fresh()
	first := node(q, ir.Add, ir.Shape{2, 2}, nil, ir.Shape{2, 2}, ir.Shape{1, 2})
	q.Mark(ir.Release, 0)
	q.Mark(ir.Keep, 2)
	if !q.Slots[0].Released || !q.Slots[2].Keep {
		t.Errorf("slots %+v", q.Slots)
	}
	q.Reset()
	if second := node(q, ir.Add, ir.Shape{2, 2}, nil, ir.Shape{2, 2}, ir.Shape{1, 2}); second != first {
		t.Errorf("%+v, then %+v", first, second)
	}
	for i, s := range q.Slots {
		if s.Released || s.Keep {
			t.Errorf("slot %d: %+v", i, s)
		}
	}
}

// Local is equal for turns of a loop that read other tensors.
func TestLocal(t *testing.T) {
	q := fresh()
	a := node(q, ir.Add, ir.Shape{2}, nil, ir.Shape{2}, ir.Shape{2})
	b := node(q, ir.Add, ir.Shape{2}, nil, ir.Shape{2}, ir.Shape{2})
	if a == b || a.Local() != b.Local() {
		t.Errorf("%+v and %+v", a, b)
	}
}
