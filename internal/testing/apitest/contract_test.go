package apitest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// summed is Einstein's summation by loops over all labels. Labels are runes; spec has no ellipsis.
func summed(spec string, xs ...array) array {
	left, out, _ := strings.Cut(spec, "->")
	size := map[rune]int{}
	var labels []rune
	terms := strings.Split(left, ",")
	for i, term := range terms {
		for d, l := range []rune(term) {
			_, known := size[l]
			if !known {
				labels = append(labels, l)
			}
			if n := xs[i].shape[d]; !known || n != 1 {
				size[l] = n
			}
		}
	}
	var shape, all []int
	for _, l := range out {
		shape = append(shape, size[l])
	}
	for _, l := range labels {
		all = append(all, size[l])
	}
	r := newArray(shape...)
	each(all, func(at []int) {
		p := 1.0
		for i, term := range terms {
			var own []int
			for d, l := range []rune(term) {
				j := at[slices.Index(labels, l)]
				if xs[i].shape[d] == 1 {
					j = 0
				}
				own = append(own, j)
			}
			p *= xs[i].get(own...)
		}
		var o []int
		for _, l := range out {
			o = append(o, at[slices.Index(labels, l)])
		}
		r.set(r.get(o...)+p, o...)
	})
	return r
}

// valuesFor returns whole numbers for which a dtype can hold the numbers and the sums of their
// products.
func valuesFor(rng *rand.Rand, dt ir.DType, shape ...int) array {
	if dt.IsInt() && !dt.IsSigned() || dt.Bits() < 32 {
		return natural(rng, 3, shape...)
	}
	return whole(rng, shape...)
}

func TestEinsumAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(2, 1))
		for i, c := range []struct {
			spec   string
			shapes [][]int
			plain  string // the same without ellipsis and with an arrow, if different
		}{
			{"ij,jk->ik", [][]int{{3, 4}, {4, 5}}, ""},
			{"ij,kj->ki", [][]int{{3, 4}, {5, 4}}, ""},
			{"ji, jk", [][]int{{4, 3}, {4, 5}}, "ji,jk->ik"},
			{"bij,bkj->bik", [][]int{{2, 3, 4}, {2, 5, 4}}, ""},
			{"bij,bkj->ikb", [][]int{{2, 3, 4}, {1, 5, 4}}, ""},
			{"i,i->", [][]int{{300}, {300}}, ""},
			{"i,j->ij", [][]int{{3}, {4}}, ""},
			{"i,j->ji", [][]int{{3}, {4}}, ""},
			{"i,j->", [][]int{{3}, {4}}, ""},
			{"ij->ji", [][]int{{3, 4}}, ""},
			{"ba", [][]int{{3, 4}}, "ba->ab"},
			{"ij->", [][]int{{3, 4}}, ""},
			{"ij->j", [][]int{{3, 4}}, ""},
			{"ii->i", [][]int{{4, 4}}, ""},
			{"ii", [][]int{{4, 4}}, "ii->"},
			{"iji->j", [][]int{{3, 2, 3}}, ""},
			{"iii->i", [][]int{{3, 3, 3}}, ""},
			{"iijj->ij", [][]int{{3, 3, 2, 2}}, ""},
			{"ii->i", [][]int{{0, 0}}, ""},
			{"ii,ij->j", [][]int{{3, 3}, {3, 4}}, ""},
			{"ij,kl->", [][]int{{3, 4}, {2, 5}}, ""},
			{"ij,jk->k", [][]int{{3, 4}, {4, 5}}, ""},
			{"ij,jk->ik", [][]int{{3, 1}, {4, 5}}, ""},
			{"...ij,...jk->...ik", [][]int{{2, 3, 4}, {4, 5}}, "bij,jk->bik"},
			{"...ij,...jk", [][]int{{2, 1, 3, 4}, {6, 4, 5}}, "abij,bjk->abik"},
			{"i...->...i", [][]int{{2, 3, 4}}, "iab->abi"},
			{"...->", [][]int{{2, 3}}, "ab->"},
			{"...i->...", [][]int{{2, 3}}, "ai->a"},
			{"->", [][]int{{}}, ""},
			{",->", [][]int{{}, {}}, ""},
			{",i->i", [][]int{{}, {3}}, ""},
			{"ij,jk->ik", [][]int{{3, 0}, {0, 5}}, ""},
			{"ij,jk->ik", [][]int{{0, 4}, {4, 5}}, ""},
			{"abcdefgh,h->abcdefg", [][]int{{2, 1, 2, 1, 2, 1, 2, 5}, {5}}, ""},
			{"abcdefgh,hi->abcdefgi", [][]int{{2, 1, 2, 1, 2, 1, 2, 5}, {5, 3}}, ""},
			{"abcdefgh,gibhc->ifda", [][]int{{2, 3, 2, 1, 2, 1, 2, 5}, {2, 2, 3, 5, 1}}, ""},
			{"abcdxyzw,efghxyzw->hagbfced", [][]int{{2, 1, 2, 1, 2, 1, 2, 3}, {1, 2, 1, 3, 2, 1, 2, 3}}, ""},
			{"abcdxyzw,efbhxwzy->haefbcd", [][]int{{2, 1, 3, 1, 2, 2, 2, 3}, {1, 2, 1, 3, 2, 3, 1, 2}}, ""},
		} {
			for j, dt := range numbers {
				if j > 0 && (i+j)%6 != 0 {
					continue
				}
				plain := c.plain
				if plain == "" {
					plain = c.spec
				}
				var ops []operandOf
				for _, s := range c.shapes {
					ops = append(ops, operandOf{valuesFor(rng, dt, s...), dt})
				}
				tol := 0.0
				if dt.Storage() {
					tol = tolerance(dt) // sums of many are rounded once
				}
				trial{name: fmt.Sprintf("einsum %q", c.spec), operands: ops, dt: dt, tol: tol,
					call: func(x []*tensor) *tensor { return millrace.Einsum(c.spec, x...) },
					want: func(a []array) array { return summed(plain, a...) }}.run(t, dev)
			}
		}
	})
}

func TestMatMulAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(2, 2))
		for i, c := range []struct {
			a, b []int
			spec string
		}{
			{[]int{3, 4}, []int{4, 5}, "ij,jk->ik"},
			{[]int{1, 4}, []int{4, 1}, "ij,jk->ik"},
			{[]int{4}, []int{4, 5}, "j,jk->k"},
			{[]int{3, 4}, []int{4}, "ij,j->i"},
			{[]int{4}, []int{4}, "j,j->"},
			{[]int{1}, []int{1}, "j,j->"},
			{[]int{17, 300}, []int{300, 9}, "ij,jk->ik"},
			{[]int{2, 3, 4}, []int{4, 5}, "aij,jk->aik"},
			{[]int{3, 4}, []int{2, 4, 5}, "ij,ajk->aik"},
			{[]int{4}, []int{2, 4, 5}, "j,ajk->ak"},
			{[]int{2, 3, 4}, []int{4}, "aij,j->ai"},
			{[]int{2, 3, 4}, []int{2, 4, 5}, "aij,ajk->aik"},
			{[]int{2, 1, 3, 4}, []int{6, 4, 5}, "abij,bjk->abik"},
			{[]int{1, 3, 4}, []int{6, 4, 5}, "bij,bjk->bik"},
			{[]int{2, 1, 2, 1, 1, 2, 3, 4}, []int{4, 5}, "abcdefij,jk->abcdefik"},
			{[]int{2, 1, 2, 1, 1, 2, 3, 4}, []int{2, 3, 1, 2, 1, 1, 4, 5}, "abcdefij,abcdefjk->abcdefik"},
			{[]int{2, 1, 2, 1, 1, 2, 3, 4}, []int{4}, "abcdefij,j->abcdefi"},
			{[]int{3, 0}, []int{0, 5}, "ij,jk->ik"},
			{[]int{0, 4}, []int{4, 5}, "ij,jk->ik"},
			{[]int{3, 4}, []int{4, 0}, "ij,jk->ik"},
			{[]int{0, 3, 4}, []int{1, 4, 5}, "aij,ajk->aik"},
			{[]int{0}, []int{0}, "j,j->"},
		} {
			for j, dt := range numbers {
				if j > 0 && (i+j)%5 != 0 || dt.Bits() == 8 && c.a[len(c.a)-1] > 20 {
					continue
				}
				tol := 0.0
				if dt.Storage() {
					tol = tolerance(dt)
				}
				tr := trial{name: "matmul", operands: []operandOf{{valuesFor(rng, dt, c.a...), dt}, {valuesFor(rng, dt, c.b...), dt}}, dt: dt, tol: tol,
					call: func(x []*tensor) *tensor { return x[0].MatMul(x[1]) },
					want: func(a []array) array { return summed(c.spec, a...) }}
				tr.run(t, dev)
				if len(c.a) == 2 && len(c.b) == 2 {
					tr.name = "matmul of transposed operands"
					tr.operands = []operandOf{{valuesFor(rng, dt, c.a[1], c.a[0]), dt}, {valuesFor(rng, dt, c.b[1], c.b[0]), dt}}
					tr.call = func(x []*tensor) *tensor {
						p, q := x[0].T(), x[1].T()
						r := p.MatMul(q)
						p.Release()
						q.Release()
						return r
					}
					tr.want = func(a []array) array { return summed("ji,kj->ik", a...) }
					tr.run(t, dev)
				}
			}
		}
		// An operand with itself.
		trial{name: "matmul with itself", operands: []operandOf{{whole(rng, 4, 4), ir.Float32}}, dt: ir.Float32,
			call: func(x []*tensor) *tensor { return x[0].MatMul(x[0]) },
			want: func(a []array) array { return summed("ij,jk->ik", a[0], a[0]) }}.run(t, dev)
	})
}

func TestDotGeneralAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(2, 3))
		for _, c := range []struct {
			a, b           []int
			bt, bu, ct, cu []int
			spec           string
		}{
			{[]int{3, 4}, []int{4, 5}, nil, nil, []int{1}, []int{0}, "ij,jk->ik"},
			{[]int{3, 4}, []int{5, 4}, nil, nil, []int{-1}, []int{-1}, "ij,kj->ik"},
			{[]int{3, 4, 2}, []int{2, 4, 5}, []int{2}, []int{0}, []int{1}, []int{1}, "ijb,bjk->bik"},
			{[]int{3, 4, 2}, []int{2, 4, 5}, nil, nil, []int{2, 1}, []int{0, 1}, "ijb,bjk->ik"},
			{[]int{3, 4}, []int{3, 4}, []int{1, 0}, []int{1, 0}, nil, nil, "ij,ij->ji"},
			{[]int{3, 4}, []int{2}, nil, nil, nil, nil, "ij,k->ijk"},
			{[]int{3, 4}, []int{3, 4}, nil, nil, []int{0, 1}, []int{0, 1}, "ij,ij->"},
			{[]int{}, []int{}, nil, nil, nil, nil, ",->"},
			{[]int{2, 2, 3, 1, 2, 2, 1, 2}, []int{2, 3, 2, 1, 2, 2, 1, 2}, []int{0}, []int{0}, []int{7, 6, 5, 4}, []int{7, 6, 5, 4}, "abcdwxyz,aefgwxyz->abcdefg"},
		} {
			trial{name: fmt.Sprint("dotgeneral ", c.bt, c.bu, c.ct, c.cu), dt: ir.Float32,
				operands: []operandOf{{whole(rng, c.a...), ir.Float32}, {whole(rng, c.b...), ir.Float32}},
				call:     func(x []*tensor) *tensor { return x[0].DotGeneral(x[1], c.bt, c.bu, c.ct, c.cu) },
				want:     func(a []array) array { return summed(c.spec, a...) }}.run(t, dev)
		}
	})
}
