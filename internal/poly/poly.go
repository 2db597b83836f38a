package poly

import "math/bits"

// Poly is a polynomial with whole coefficients in several variables.
type Poly []Term

// Term is a coefficient and the exponent of each variable.
type Term struct {
	Coef int64
	Exp  []uint8
}

// At is the value for these variables; false if a step overflows int64.
func (p Poly) At(x []int) (int64, bool) {
	sum := int64(0)
	for _, t := range p {
		v := t.Coef
		for i, e := range t.Exp {
			for ; e > 0; e-- {
				var ok bool
				if v, ok = mul(v, int64(x[i])); !ok {
					return 0, false
				}
			}
		}
		next := sum + v
		if (next > sum) != (v > 0) && v != 0 {
			return 0, false
		}
		sum = next
	}
	return sum, true
}

func mul(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	c := a * b
	return c, c/b == a && (a != -1 || b != -1<<63) && (b != -1 || a != -1<<63)
}

// Fitter finds polynomials up to a degree through points.
type Fitter struct {
	points  [][]int
	terms   [][]uint8
	inverse [][]uint64 // of the terms' values at the first points, modulo prime
}

// prime is the modulus of the field in which coefficients are computed. A whole coefficient is
// found as itself; a fractional one becomes a number that fits no other point.
const prime = 1<<61 - 1

// Needs is the number of points that a Fitter needs to distinguish the polynomials up to this
// degree in so many variables.
func Needs(variables, degree int) int { return len(monomials(variables, degree)) }

// NewFitter makes a Fitter of points. There must be at least as many as Needs says; additional ones
// are checks. It returns nil if the points do not determine the polynomial.
func NewFitter(points [][]int, degree int) *Fitter {
	f := &Fitter{points: points, terms: monomials(len(points[0]), degree)}
	n := len(f.terms)
	if len(points) < n {
		return nil
	}
	// Gauss-Jordan on the square of the first points, with a unit matrix beside it.
	rows := make([][]uint64, n)
	for i := range rows {
		rows[i] = make([]uint64, 2*n)
		for j, exp := range f.terms {
			rows[i][j] = monomial(points[i], exp)
		}
		rows[i][n+i] = 1
	}
	for c := range n {
		pivot := c
		for pivot < n && rows[pivot][c] == 0 {
			pivot++
		}
		if pivot == n {
			return nil
		}
		rows[c], rows[pivot] = rows[pivot], rows[c]
		scale := invert(rows[c][c])
		for j := range rows[c] {
			rows[c][j] = mulMod(rows[c][j], scale)
		}
		for i := range rows {
			if factor := rows[i][c]; i != c && factor != 0 {
				for j := range rows[i] {
					rows[i][j] = subMod(rows[i][j], mulMod(factor, rows[c][j]))
				}
			}
		}
	}
	for _, r := range rows {
		f.inverse = append(f.inverse, r[n:])
	}
	return f
}

// Fit is the polynomial with these values at the points.
func (f *Fitter) Fit(values []int64) (p Poly, ok bool) {
	for i, row := range f.inverse {
		coef := uint64(0)
		for j := range row {
			coef = addMod(coef, mulMod(row[j], fromInt(values[j])))
		}
		if coef != 0 {
			p = append(p, Term{toInt(coef), f.terms[i]})
		}
	}
	for i, x := range f.points {
		if got, ok := p.At(x); !ok || got != values[i] {
			return nil, false
		}
	}
	return p, true
}

// monomials are the exponents of all terms up to a degree, from the constant.
func monomials(variables, degree int) (list [][]uint8) {
	exp := make([]uint8, variables)
	var fill func(i, left int)
	fill = func(i, left int) {
		if i == variables {
			list = append(list, append([]uint8(nil), exp...))
			return
		}
		for e := 0; e <= left; e++ {
			exp[i] = uint8(e)
			fill(i+1, left-e)
		}
		exp[i] = 0
	}
	fill(0, degree)
	return list
}

func monomial(x []int, exp []uint8) uint64 {
	v := uint64(1)
	for i, e := range exp {
		for ; e > 0; e-- {
			v = mulMod(v, fromInt(int64(x[i])))
		}
	}
	return v
}

func fromInt(v int64) uint64 {
	if v %= prime; v < 0 {
		v += prime
	}
	return uint64(v)
}

func toInt(v uint64) int64 {
	if v > prime/2 {
		return int64(v) - prime
	}
	return int64(v)
}

func addMod(a, b uint64) uint64 {
	if a += b; a >= prime {
		a -= prime
	}
	return a
}

func subMod(a, b uint64) uint64 {
	if a < b {
		a += prime
	}
	return a - b
}

func mulMod(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	_, rem := bits.Div64(hi, lo, prime)
	return rem
}

// invert is 1/a, by Fermat.
func invert(a uint64) uint64 {
	r := uint64(1)
	for e := uint64(prime - 2); e > 0; e >>= 1 {
		if e&1 == 1 {
			r = mulMod(r, a)
		}
		a = mulMod(a, a)
	}
	return r
}
