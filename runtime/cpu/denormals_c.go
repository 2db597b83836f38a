//go:build cgo && unix && amd64

package cpu

/*
#include "fpenv.h"

// What a processor, or what plays one, gives where rules of flushing differ. All is
// volatile: it is the machine's arithmetic that counts.
static int mr_flush_probe(void)
{
	const mr_fpenv saved = mr_fpenv_set(1);
	volatile float least = 0x1p-126f, half = 0.5f, below = 0x1.fffffep-1f, denormal = 0x1p-130f, huge = 0x1p+127f;
	volatile float up = 0x1.ffffp-1f, down = 0x1.00008p-126f, minus = -0x1p-130f, two = 2;
	volatile double dleast = 0x1p-1022, dhalf = 0.5, dbelow = 0x1.fffffffffffffp-1, tie = 0x1.ffffffp-127, under = 0x1.fffffep-127;
	volatile float r, s;
	volatile double d;
	int bad = 0;
	r = least * half, bad |= r != 0;                     // a denormal
	r = least * below, bad |= (r * huge != 0) << 1;      // denormals would round it up to the least normal number
	r = up * down, bad |= (r * huge != 0x1p+1f) << 2;    // exact below that number, rounded not
	r = denormal * huge, bad |= (r != 0) << 3;           // operands
	r = minus + minus, s = two / r, bad |= !(s < 0) << 4;
	r = least / two, bad |= (r * huge != 0) << 5;
	r = (float)tie, bad |= (r * huge != 0x1p+1f) << 6;
	r = (float)under, bad |= (r * huge != 0) << 7;
	bad |= (denormal != 0 || minus < 0) << 8;
	d = dleast * dhalf, bad |= (d != 0) << 9;
	d = dleast * dbelow, bad |= (d * 0x1p+1000 != 0) << 10;
	d = denormal, bad |= (d != 0) << 11;
	mr_fpenv_restore(saved);
	return bad;
}
*/
import "C"

import "sync"

// flushesNatively reports C that can be run by a processor which flushes as
// ir.Denormals says: with its own fused multiply-add, since one that C emulates
// makes denormals on its way.
var flushesNatively = sync.OnceValue(func() bool {
	blocks, _ := nativeLevel()
	dots, _ := contractLevel()
	return blocks > 0 && dots > 0 && C.mr_flush_probe() == 0
})
