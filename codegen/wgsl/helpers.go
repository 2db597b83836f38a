package wgsl

import (
	"slices"
	"strings"
)

// helper is a function printed into the shaders that call it, over their
// lanes: $F, $U, $I and $B as in spelling.
type helper struct {
	name string
	uses []string
	text string
}

// wideType is printed where 64-bit values occur: the low and high words.
const wideType = "struct wide { l : $U, h : $U }\n"

// helpers in an order in which each uses only earlier ones.
var helpers = []helper{
	// Mesa turns sqrt(x) * sqrt(x) into |x|; behind a select it keeps the NaN
	// of a negative x.
	{"mr_sqrt", nil, `
fn mr_sqrt(x : $F) -> $F {
	return select($F(bitcast<f32>(0x7fc00000u)), sqrt(x), x >= $F(0.0));
}
`},
	{"mr_mulhi", nil, `
fn mr_mulhi(x : $U, y : $U) -> $U {
	let m = $U(0xffffu);
	let s = $U(16u);
	let xl = x & m;
	let xh = x >> s;
	let yl = y & m;
	let yh = y >> s;
	let a = xh * yl + ((xl * yl) >> s);
	let b = xl * yh + (a & m);
	return xh * yh + (a >> s) + (b >> s);
}
`},
	{"mr_quotient", []string{"mr_mulhi"}, `
fn mr_quotient(x : $U, m : $U, s : $U) -> $U {
	return mr_mulhi(x << $U(1u), m) >> s;
}
`},
	{"mr_add64", nil, `
fn mr_add64(x : wide, y : wide) -> wide {
	let l = x.l + y.l;
	return wide(l, x.h + y.h + select($U(0u), $U(1u), l < x.l));
}
`},
	{"mr_sub64", nil, `
fn mr_sub64(x : wide, y : wide) -> wide {
	return wide(x.l - y.l, x.h - y.h - select($U(0u), $U(1u), x.l < y.l));
}
`},
	{"mr_mul64", []string{"mr_mulhi"}, `
fn mr_mul64(x : wide, y : wide) -> wide {
	return wide(x.l * y.l, mr_mulhi(x.l, y.l) + x.l * y.h + x.h * y.l);
}
`},
	{"mr_shl64", nil, `
fn mr_shl64(x : wide, n : $U) -> wide {
	let s = n & $U(31u);
	let carry = (x.l >> $U(1u)) >> ($U(31u) - s);
	let far = n >= $U(32u);
	return wide(select(x.l << s, $U(0u), far), select((x.h << s) | carry, x.l << s, far));
}
`},
	{"mr_shr64", nil, `
fn mr_shr64(x : wide, n : $U) -> wide {
	let s = n & $U(31u);
	let carry = (x.h << $U(1u)) << ($U(31u) - s);
	let far = n >= $U(32u);
	return wide(select((x.l >> s) | carry, x.h >> s, far), select(x.h >> s, $U(0u), far));
}
`},
	{"mr_less64", nil, `
fn mr_less64(x : wide, y : wide) -> $B {
	return (x.h < y.h) | ((x.h == y.h) & (x.l < y.l));
}
`},
	{"mr_float64", nil, `
fn mr_float64(x : wide) -> $F {
	return $F(x.h) * $F(4294967296.0) + $F(x.l);
}
`},
	{"mr_float_i64", nil, `
fn mr_float_i64(x : wide) -> $F {
	return $F(bitcast<$I>(x.h)) * $F(4294967296.0) + $F(x.l);
}
`},
	// Tells of an index out of range: see FaultWords.
	{"mr_fault", nil, `
fn mr_fault(slot : u32, index : i32) {
	atomicStore(&faults[slot * 2u], 1u);
	atomicMax(&faults[slot * 2u + 1u], bitcast<u32>(index) ^ 0x7fffffffu);
}
`},
	{"mr_nan", nil, `
fn mr_nan(x : $F) -> $B {
	return (bitcast<$U>(x) & $U(0x7fffffffu)) > $U(0x7f800000u);
}
`},
	// Numbers whose order is that of floats, -0 before +0 and NaN last; and the
	// same with the floats' order turned around.
	{"mr_order", []string{"mr_nan"}, `
fn mr_order(x : $F) -> $U {
	let b = bitcast<$U>(x);
	let k = select(b ^ $U(0x80000000u), ~b, b >= $U(0x80000000u));
	return select(k, $U(0xffffffffu), mr_nan(x));
}
`},
	{"mr_orderdown", []string{"mr_nan", "mr_order"}, `
fn mr_orderdown(x : $F) -> $U {
	return select(~mr_order(x), $U(0xffffffffu), mr_nan(x));
}
`},
	{"mr_keep", nil, `
fn mr_keep(x : $F) -> $F {
	return bitcast<$F>(bitcast<$U>(x) ^ $U($Z));
}
`},
	{"mr_fma", []string{"mr_keep", "mr_nan"}, `
fn mr_fma(x : $F, y : $F, z : $F) -> $F {
	let m = $U(0xfffff000u);
	let xh = bitcast<$F>(bitcast<$U>(x) & m);
	let xl = mr_keep(x - xh);
	let yh = bitcast<$F>(bitcast<$U>(y) & m);
	let yl = mr_keep(y - yh);
	let p = mr_keep(x * y);
	let e = mr_keep(mr_keep(mr_keep(xh * yh - p) + mr_keep(xh * yl)) + mr_keep(xl * yh)) + xl * yl;
	let s = mr_keep(p + z);
	let t = mr_keep(s - p);
	let d = mr_keep(p - mr_keep(s - t)) + mr_keep(z - t);
	let f = mr_keep(d + e);
	return select(s + f, s, mr_nan(f));
}
`},
	{"mr_self", nil, `
fn mr_self(x : $F) -> $F {
	return select($F(0.0), bitcast<$F>($U(0x7fc00000u)), (bitcast<$U>(x) & $U(0x7fffffffu)) >= $U(0x7f800000u));
}
`},
	{"mr_erf", nil, `
fn mr_erf(x : $F) -> $F {
	let far = abs(x) >= $F(3.84);
	let t = x * x;
	let n = ((((t * $F(2.1167416e-06) + $F(0.00028582627)) * t + $F(0.0036618095)) * t + $F(0.052444655)) * t + $F(0.18756057)) * t + $F(1.1283791);
	let d = ((((t * $F(3.8826645e-05) + $F(0.0011433263)) * t + $F(0.014760618)) * t + $F(0.11299823)) * t + $F(0.49955413)) * t + $F(1.0);
	return select(x * n / d, sign(x), far);
}
`},
	// max(x, 0) - |x|/2*erfc(|x|/sqrt 2): erf + 1 would cancel for negative x.
	// erfc by Abramowitz and Stegun 7.1.26.
	{"mr_gelu", nil, `
fn mr_gelu(x : $F) -> $F {
	let z = abs(x) * $F(0.70710677);
	let t = $F(1.0) / (z * $F(0.3275911) + $F(1.0));
	let p = ((((t * $F(1.0614054) + $F(-1.4531521)) * t + $F(1.4214138)) * t + $F(-0.28449672)) * t + $F(0.2548296)) * t;
	let up = max(x, $F(0.0));
	return select(up - abs(x) * $F(0.5) * p * exp(-(z * z)), up, z > $F(9.0));
}
`},
	{"mr_gelutanh", nil, `
fn mr_gelutanh(x : $F) -> $F {
	let y = x / ($F(1.0) + exp(x * (x * x * $F(-0.071354814) + $F(-1.5957691))));
	return select(y, $F(-0.0), x < $F(-13.0));
}
`},
	{"mr_max", []string{"mr_nan"}, `
fn mr_max(x : $F, y : $F) -> $F {
	return select(max(x, y), x + y, mr_nan(x) | mr_nan(y));
}
`},
	{"mr_min", []string{"mr_nan"}, `
fn mr_min(x : $F, y : $F) -> $F {
	return select(min(x, y), x + y, mr_nan(x) | mr_nan(y));
}
`},
}

// withHelpers lists the functions that names need, users after used.
func withHelpers(names map[string]bool) []helper {
	for i := len(helpers) - 1; i >= 0; i-- {
		if names[helpers[i].name] {
			for _, u := range helpers[i].uses {
				names[u] = true
			}
		}
	}
	var list []helper
	for _, h := range helpers {
		if names[h.name] {
			list = append(list, h)
		}
	}
	return list
}

func usesWide(list []helper) bool {
	return slices.ContainsFunc(list, func(h helper) bool { return strings.Contains(h.text, "wide") })
}
