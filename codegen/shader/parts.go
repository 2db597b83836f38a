package shader

import "fmt"

// With Matrix.Parts, a float32 operand is a sum of bfloat16 parts, whose products matrix units add in
// float32: the bfloat16 nearest to x, that nearest to what is left, and so on. Two parts have 16 of
// the 24 bits of x, three parts have all. Products are left out whose size is that of what the parts
// lack: with n parts numbered from 0, part i times part j is one of the products if i + j < n.
//
// Two rules keep what float32 products do with numbers at the ends of the range:
//
//   - A finite number that would be rounded to infinity has a first part that is rounded toward zero.
//   - The first part of an infinity or NaN is 1 with its sign, the last is x, the others are 0. The last
//     part is multiplied by first parts only. So an infinity times a number that is not 0 is an
//     infinity, also if that number's smaller parts are 0 or have the other sign, and an infinity
//     times an infinity is one.
const partsText = `
func rounded(x $F) $F {
	let u $U = $bits($U, x);
	let up $U = (u + $U(0x7fffu) + ((u >> $U(16u)) & $U(1u))) & $U(0xffff0000u);
	return $bits($F, $select(up, u & $U(0xffff0000u), $ge(up & $U(0x7fffffffu), $U(0x7f800000u))));
}

func odd(x $F) $B {
	return $ge($bits($U, x) & $U(0x7fffffffu), $U(0x7f800000u));
}

func part0(x $F) $F {
	let one $F = $bits($F, ($bits($U, x) & $U(0x80000000u)) | $U(0x3f800000u));
	return $select(rounded(x), one, odd(x));
}
`

// laterParts are the functions of the parts behind the first, of two and of three.
var laterParts = map[int]string{2: `
func part1(x $F) $F {
	return $select(rounded(x - rounded(x)), x, odd(x));
}
`, 3: `
func part1(x $F) $F {
	return $select(rounded(x - rounded(x)), $F(0.0), odd(x));
}

func part2(x $F) $F {
	let rest $F = x - rounded(x);
	return $select(rounded(rest - rounded(rest)), x, odd(x));
}
`}

// part names a part of a matrix.
func (t *Tile) part(name string, part int) string {
	if t.Matrix.Parts == 0 {
		return name
	}
	return fmt.Sprintf("%sp%d", name, part)
}

// partSum is the sum of the products of parts, from the smallest on. It starts at zero for each
// matrix, so that a sum over k, which is larger, is rounded once a matrix.
func (t *Tile) partSum(x, y string) string {
	sum := "$matc(0.0)"
	for size := t.Matrix.Parts - 1; size >= 0; size-- {
		for i := size; i >= 0; i-- {
			sum = fmt.Sprintf("matadd(%s, %s, %s)", t.part(x, i), t.part(y, size-i), sum)
		}
	}
	return sum
}

// partStores are the statements that store an element's parts, each in a plane of its own.
func (p *printer) partStores(s tileSide, at, value string) (list []string) {
	t := p.v.Tile
	for part := range t.Matrix.Parts {
		to := at
		if part > 0 {
			to += fmt.Sprintf(" + %du", part*t.vectors(s))
		}
		list = append(list, fmt.Sprintf("t%s[%s%s] = $halves(part%d(%s));", s.name, to, t.inHalf(s), part, value))
	}
	return list
}
