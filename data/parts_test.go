package data_test

import (
	"slices"
	"testing"

	"github.com/millrace-go/millrace/data"
)

// TestParts: loaders of all parts together return the batches of one loader of the whole, the same
// number each, and a state of some parts continues with others.
func TestParts(t *testing.T) {
	for _, c := range []struct{ n, batch, parts int }{{10, 4, 2}, {10, 4, 3}, {9, 8, 4}, {7, 5, 5}, {5, 100, 2}, {12, 4, 4}, {3, 3, 3}, {11, 5, 4}} {
		for _, drop := range []bool{false, true} {
			if drop && c.n < c.batch {
				continue
			}
			opt := data.Options{Batch: c.batch, Shuffle: true, Seed: 5, DropLast: drop}
			whole := loader(t, &counting{n: c.n}, opt)
			var want [][]int
			var states []data.State
			for range 2 {
				for b, err := range whole.Batches(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					if b.Whole != b.Len() {
						t.Errorf("%+v: a whole batch of %d says %d", c, b.Len(), b.Whole)
					}
					want, states = append(want, b.Records), append(states, whole.State())
					b.Release()
				}
			}
			got, reads := make([][]int, len(want)), int64(0)
			for part := range c.parts {
				src := &counting{n: c.n}
				opt.Part, opt.Parts = part, c.parts
				l := loader(t, src, opt)
				if l.Len() != whole.Len() {
					t.Errorf("%+v: %d batches, want %d", c, l.Len(), whole.Len())
				}
				at := 0
				for range 2 {
					for b, err := range l.Batches(t.Context()) {
						if err != nil {
							t.Fatal(err)
						}
						check(t, b)
						if at >= len(want) || b.Whole != len(want[at]) || l.State() != states[at] {
							t.Fatalf("%+v, part %d: batch %d of %d, state %+v", c, part, at, b.Whole, l.State())
						}
						got[at] = append(got[at], b.Records...)
						at++
						b.Release()
					}
				}
				if at != len(want) {
					t.Errorf("%+v, part %d: %d batches, want %d", c, part, at, len(want))
				}
				reads += src.reads.Load()
			}
			for i := range want {
				if !slices.Equal(got[i], want[i]) {
					t.Errorf("%+v: batch %d is %v, want %v", c, i, got[i], want[i])
				}
			}
			if !drop && reads != int64(2*c.n) || reads > int64(2*c.n) {
				t.Errorf("%+v: %d records read", c, reads)
			}
			// One part goes on where two others ended.
			l := loader(t, &counting{n: c.n}, data.Options{Batch: c.batch, Shuffle: true, Seed: 5, DropLast: drop, Parts: 1})
			if err := l.Restore(states[0]); err != nil {
				t.Fatal(err)
			}
			for b, err := range l.Batches(t.Context()) {
				if err != nil || !slices.Equal(b.Records, want[1]) {
					t.Errorf("%+v: %v after the first batch, want %v; %v", c, b.Records, want[1], err)
				}
				b.Release()
				break
			}
		}
	}
}

// TestPartsNest: the halves of a part are parts of twice as many, so a batch can be divided again.
func TestPartsNest(t *testing.T) {
	for n := 8; n <= 17; n++ {
		records := func(part, parts int) (list []int) {
			l := loader(t, &counting{n: n}, data.Options{Batch: n, Part: part, Parts: parts})
			for b, err := range l.Batches(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, b.Records...)
				b.Release()
			}
			return list
		}
		for _, parts := range []int{1, 2, 3, 4} {
			for part := range parts {
				whole, half := records(part, parts), records(2*part, 2*parts)
				if !slices.Equal(half, whole[:len(whole)/2]) || !slices.Equal(records(2*part+1, 2*parts), whole[len(whole)/2:]) {
					t.Errorf("%d records: part %d of %d is %v, its first half %v", n, part, parts, whole, half)
				}
			}
		}
	}
}
