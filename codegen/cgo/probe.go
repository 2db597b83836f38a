package cgo

import "strings"

// Probe is a function int name(void) that returns 0 if compiled code follows IEEE 754. It returns
// another number if flags, the environment or the compiler contract products into sums, flush
// denormals, or round in another way. Every compiled object contains it.
func Probe(name string) string {
	return strings.ReplaceAll(`
int NAME(void)
{
	/* volatile: what is probed is the machine's arithmetic, not the compiler's */
	volatile float a = 0x1.000002p+00f, b = 0x1.fffffep-1f, c = -0x1p+00f;
	volatile float tiny = 0x1p-126f, half = 0x1p-1f, least = 0x1p-149f, one = 0x1p+00f, three = 0x3p+00f;
	volatile double da = 0x1.0000000000001p+00, db = 0x1.fffffffffffffp-1, dc = -0x1p+00;
	volatile double dtiny = 0x1p-1022, dhalf = 0x1p-1;
	const float x = a, y = b, z = c;
	const double u = da, v = db, w = dc;
	volatile float prod = x * y;
	volatile double dprod = u * v;
	if (x * y + z != prod + z)
		return 1; /* contracted: the exact product differs from the rounded one */
	if (u * v + w != dprod + w)
		return 2;
	if (tiny * half != 0x1p-127f || tiny * half == 0 || least + least != 0x1p-148f)
		return 3; /* denormals flushed */
	if (dtiny * dhalf != 0x1p-1023 || dtiny * dhalf == 0)
		return 4;
	if (one / three != 0x1.555556p-2f)
		return 5; /* quotients by reciprocals, or another rounding */
	const float nan = (z + one) / (z + one);
	if (nan == nan)
		return 6; /* told that there are no NaN */
	return 0;
}
`, "NAME", name)
}
