package shader

import (
	"slices"
	"strings"
)

// helper is a function that is printed into the shaders that call it, over their lanes, in the
// notation of [Dialect].
type helper struct {
	name string
	uses []string
	text string
}

// helpers are in an order in which each uses only earlier ones.
var helpers = []helper{
	// Mesa turns sqrt(x) * sqrt(x) into |x|; with a select it keeps the NaN of a negative x.
	{"mr_sqrt", nil, `
func mr_sqrt(x $F) $F {
	return $select($F($bits($f32, 0x7fc00000u)), sqrt(x), $ge(x, $F(0.0)));
}
`},
	{"mr_mulhi", nil, `
func mr_mulhi(x $U, y $U) $U {
	let m $U = $U(0xffffu);
	let s $U = $U(16u);
	let xl $U = x & m;
	let xh $U = x >> s;
	let yl $U = y & m;
	let yh $U = y >> s;
	let a $U = xh * yl + ((xl * yl) >> s);
	let b $U = xl * yh + (a & m);
	return xh * yh + (a >> s) + (b >> s);
}
`},
	{"mr_quotient", []string{"mr_mulhi"}, `
func mr_quotient(x $U, m $U, s $U) $U {
	return mr_mulhi(x << $U(1u), m) >> s;
}
`},
	{"mr_add64", nil, `
func mr_add64(x wide, y wide) wide {
	let l $U = x.l + y.l;
	return wide(l, x.h + y.h + $select($U(0u), $U(1u), $lt(l, x.l)));
}
`},
	{"mr_sub64", nil, `
func mr_sub64(x wide, y wide) wide {
	return wide(x.l - y.l, x.h - y.h - $select($U(0u), $U(1u), $lt(x.l, y.l)));
}
`},
	{"mr_mul64", []string{"mr_mulhi"}, `
func mr_mul64(x wide, y wide) wide {
	return wide(x.l * y.l, mr_mulhi(x.l, y.l) + x.l * y.h + x.h * y.l);
}
`},
	{"mr_shl64", nil, `
func mr_shl64(x wide, n $U) wide {
	let s $U = n & $U(31u);
	let carry $U = (x.l >> $U(1u)) >> ($U(31u) - s);
	let far $B = $ge(n, $U(32u));
	return wide($select(x.l << s, $U(0u), far), $select((x.h << s) | carry, x.l << s, far));
}
`},
	{"mr_shr64", nil, `
func mr_shr64(x wide, n $U) wide {
	let s $U = n & $U(31u);
	let carry $U = (x.h << $U(1u)) << ($U(31u) - s);
	let far $B = $ge(n, $U(32u));
	return wide($select((x.l >> s) | carry, x.h >> s, far), $select(x.h >> s, $U(0u), far));
}
`},
	{"mr_less64", nil, `
func mr_less64(x wide, y wide) $B {
	return $or(($lt(x.h, y.h)), ($and(($eq(x.h, y.h)), ($lt(x.l, y.l)))));
}
`},
	{"mr_float64", nil, `
func mr_float64(x wide) $F {
	return $F(x.h) * $F(4294967296.0) + $F(x.l);
}
`},
	{"mr_float_i64", nil, `
func mr_float_i64(x wide) $F {
	return $F($bits($I, x.h)) * $F(4294967296.0) + $F(x.l);
}
`},
	// Reports an index out of range: see FaultWords.
	{"mr_fault", nil, `
func mr_fault(slot $u32, index $i32) {
	$store(faults[0u], 1u);
	$store(faults[slot * 2u], 1u);
	$most(faults[slot * 2u + 1u], $bits($u32, index) ^ 0x7fffffffu);
}
`},
	{"mr_nan", nil, `
func mr_nan(x $F) $B {
	return $gt(($bits($U, x) & $U(0x7fffffffu)), $U(0x7f800000u));
}
`},
	// Numbers in the order of floats, with -0 before +0 and NaN last; and the same in the reverse
	// order of floats.
	{"mr_order", []string{"mr_nan"}, `
func mr_order(x $F) $U {
	let b $U = $bits($U, x);
	let k $U = $select(b ^ $U(0x80000000u), ~b, $ge(b, $U(0x80000000u)));
	return $select(k, $U(0xffffffffu), mr_nan(x));
}
`},
	{"mr_orderdown", []string{"mr_nan", "mr_order"}, `
func mr_orderdown(x $F) $U {
	return $select(~mr_order(x), $U(0xffffffffu), mr_nan(x));
}
`},
	{"mr_keep", nil, `
func mr_keep(x $F) $F {
	return $bits($F, $bits($U, x) ^ $U($Z));
}
`},
	{"mr_fma", []string{"mr_keep", "mr_nan"}, `
func mr_fma(x $F, y $F, z $F) $F {
	let m $U = $U(0xfffff000u);
	let xh $F = $bits($F, $bits($U, x) & m);
	let xl $F = mr_keep(x - xh);
	let yh $F = $bits($F, $bits($U, y) & m);
	let yl $F = mr_keep(y - yh);
	let p $F = mr_keep(x * y);
	let e $F = mr_keep(mr_keep(mr_keep(xh * yh - p) + mr_keep(xh * yl)) + mr_keep(xl * yh)) + xl * yl;
	let s $F = mr_keep(p + z);
	let t $F = mr_keep(s - p);
	let d $F = mr_keep(p - mr_keep(s - t)) + mr_keep(z - t);
	let f $F = mr_keep(d + e);
	return $select(s + f, s, mr_nan(f));
}
`},
	{"mr_self", nil, `
func mr_self(x $F) $F {
	return $select($F(0.0), $bits($F, $U(0x7fc00000u)), $ge(($bits($U, x) & $U(0x7fffffffu)), $U(0x7f800000u)));
}
`},
	{"mr_unit", nil, `
func mr_unit(x $F) $F {
	let least $U = ($bits($U, x) & $U(0x7fffffffu)) - $U(1u);
	return $select($F(1.0), $bits($F, $U(0x7fc00000u)), $ge(least, $U(0x7f7fffffu)));
}
`},
	{"mr_erf", nil, `
func mr_erf(x $F) $F {
	let far $B = $ge(abs(x), $F(3.84));
	let t $F = x * x;
	let n $F = ((((t * $F(2.1167416e-06) + $F(0.00028582627)) * t + $F(0.0036618095)) * t + $F(0.052444655)) * t + $F(0.18756057)) * t + $F(1.1283791);
	let d $F = ((((t * $F(3.8826645e-05) + $F(0.0011433263)) * t + $F(0.014760618)) * t + $F(0.11299823)) * t + $F(0.49955413)) * t + $F(1.0);
	return $select(x * n / d, sign(x), far);
}
`},
	// max(x, 0) - |x|/2*erfc(|x|/sqrt 2): erf + 1 would cancel for negative x. erfc by Abramowitz
	// and Stegun 7.1.26.
	{"mr_gelu", nil, `
func mr_gelu(x $F) $F {
	let z $F = abs(x) * $F(0.70710677);
	let t $F = $F(1.0) / (z * $F(0.3275911) + $F(1.0));
	let p $F = ((((t * $F(1.0614054) + $F(-1.4531521)) * t + $F(1.4214138)) * t + $F(-0.28449672)) * t + $F(0.2548296)) * t;
	let up $F = max(x, $F(0.0));
	return $select(up - abs(x) * $F(0.5) * p * exp(-(z * z)), up, $gt(z, $F(9.0)));
}
`},
	{"mr_gelutanh", nil, `
func mr_gelutanh(x $F) $F {
	let y $F = x / ($F(1.0) + exp(x * (x * x * $F(-0.071354814) + $F(-1.5957691))));
	return $select(y, $F(-0.0), $lt(x, $F(-13.0)));
}
`},
	// The float of a number of mr_order.
	{"mr_unorder", []string{"mr_nan", "mr_order"}, `
func mr_unorder(k $U) $F {
	return $bits($F, $select(~k, k ^ $U(0x80000000u), $ge(k, $U(0x80000000u))));
}
`},
	{"mr_max", []string{"mr_nan"}, `
func mr_max(x $F, y $F) $F {
	return $select($select(max(x, y), y, mr_nan(y)), x, mr_nan(x));
}
`},
	{"mr_min", []string{"mr_nan"}, `
func mr_min(x $F, y $F) $F {
	return $select($select(min(x, y), y, mr_nan(y)), x, mr_nan(x));
}
`},
}

// withHelpers lists the functions that names need, each after those that it uses.
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
