package planstore

import (
	"sync"
	"testing"

	"github.com/millrace-go/millrace/ir"
)

func geometry(n int) *Geometry { return &Geometry{Shapes: []ir.Shape{{n}}} }

// look finds the layout for a size, or makes it. looks is how many layouts were compared.
func look(m *Memo, n int) (made bool, looks int) {
	if m.Find(func(g *Geometry) bool { looks++; return g.Shapes[0][0] == n }) != nil {
		return false, looks
	}
	m.Add(geometry(n))
	return true, looks
}

// Sizes that a program repeats in turn are found at once.
func TestMemoInTurn(t *testing.T) {
	var m Memo
	for turn := range 5 {
		for n := range MaxGeometries {
			made, looks := look(&m, n)
			if made != (turn == 0) {
				t.Errorf("turn %d, size %d: made %v", turn, n, made)
			}
			if turn > 1 && looks > 2 {
				t.Errorf("turn %d, size %d: %d layouts were looked at", turn, n, looks)
			}
			for range 3 { // a repeated size is found by the first comparison
				if made, looks := look(&m, n); made || looks != 1 {
					t.Errorf("turn %d, size %d again: made %v, %d looks", turn, n, made, looks)
				}
			}
		}
	}
}

// The layout unused for longest is dropped, and a size that returns stays.
func TestMemoForgets(t *testing.T) {
	var m Memo
	look(&m, -1)
	for n := range 10 * MaxGeometries {
		if made, _ := look(&m, n); !made {
			t.Errorf("size %d was known", n)
		}
		if n%(MaxGeometries-2) == 0 {
			if made, _ := look(&m, -1); made {
				t.Errorf("the size that comes back was forgotten at %d", n)
			}
		}
	}
	if got := len(*m.all.Load()); got != MaxGeometries {
		t.Errorf("%d layouts are kept", got)
	}
	reach := map[*Geometry]bool{}
	for _, g := range *m.all.Load() {
		for ; g != nil && !reach[g]; g = g.next.Load() {
			reach[g] = true
		}
	}
	if len(reach) != MaxGeometries {
		t.Errorf("%d layouts are held", len(reach))
	}
}

// A recipe or a Bound may hold a layout that the plan has dropped. That must not keep alive all
// layouts that the plan has used since.
func TestMemoLetsGo(t *testing.T) {
	var m Memo
	look(&m, -1)
	held := m.Last()
	for n := range 10 * MaxGeometries {
		look(&m, n)
	}
	behind := 0
	for g := held.next.Load(); g != nil; g = g.next.Load() {
		behind++
	}
	if behind > 0 {
		t.Errorf("%d layouts are held by one", behind)
	}
}

// Several streams use the same plan at once. Each finds a layout of its own size.
func TestMemoAtOnce(t *testing.T) {
	var m Memo
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				n := (i*(k+1) + k) % 11
				g := m.Find(func(g *Geometry) bool { return g.Shapes[0][0] == n })
				if g == nil {
					m.Add(geometry(n))
				} else if g.Shapes[0][0] != n {
					t.Errorf("size %d is %v", n, g.Shapes)
				}
			}
		})
	}
	wg.Wait()
	if got := len(*m.all.Load()); got > MaxGeometries {
		t.Errorf("%d layouts are kept", got)
	}
}
