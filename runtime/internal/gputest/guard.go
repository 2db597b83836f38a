package gputest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// padKernel reads an operand where an index is in [4, 4+n) and another value elsewhere; n is a
// scalar.
const padKernel = `
in 0 : int32
index 1
out 2 : int32
scalar 0 : int32
%0 = indexlo 1 : uint32
%1 = convert %0 : int32
%2 = const 4 : int32
%3 = ge %1 %2 : bool
%4 = scalar 0 : int32
%5 = add %4 %2 : int32
%6 = lt %1 %5 : bool
%7 = and %3 %6 : bool
%8 = load 0 %7 : int32
%9 = where %7 %8 %2 : int32
store 2 %9
`

// testGuardedLoads: positions outside the buffer are not read.
func testGuardedLoads(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	cut := openAs(t, tiny)
	for i, dev := range []*device{d, cut} {
		for _, n := range []int64{8, 9, 400} {
			for _, offset := range []int64{-4, -2} {
				t.Run(fmt.Sprintf("%d/%d at %d", i, n, offset), func(t *testing.T) {
					x := newTrial(parse(t, padKernel), 1, n)
					inside := n - 6
					x.args[0].Data = make([]byte, (inside+4)*4)
					x.args[0].Offset = offset
					x.scalars = []uint64{uint64(inside)}
					x.fillInputs(rand.New(rand.NewPCG(uint64(n), 1)))
					x.check(t, dev, ir.Tolerance{})
				})
			}
		}
	}
	x := newTrial(parse(t, padKernel), 1, 9)
	x.args[0].Data, x.scalars = nil, []uint64{0}
	x.check(t, d, ir.Tolerance{})
}
