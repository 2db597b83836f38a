package gputest

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// testDivision tests quotients at and near integers, which are rare among the random values of
// testOps. Values near denormals are left out on a device that flushes them.
func testDivision(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	// Below 2^-78 remainders of products are denormals, above 2^126 reciprocals are.
	least, most := uint64(0x18800000), uint64(0x7e800000)
	if strings.Contains(d.Caps().Description, "CPU") && !flushes(t, d) {
		least, most = 0, 0x7fffffff
	}
	for _, op := range []ir.Op{ir.FloorDiv, ir.Rem} {
		var xs, ys []byte
		for _, p := range kernels.Divisions(ir.Float32, 20000) {
			if p.X&0x7fffffff >= least && p.Y&0x7fffffff <= most && normal(p.X) && normal(p.Y) && normal(p.Floor) && normal(p.Rem) {
				xs = binary.LittleEndian.AppendUint32(xs, uint32(p.X))
				ys = binary.LittleEndian.AppendUint32(ys, uint32(p.Y))
			}
		}
		x := newTrial(opKernel(op, ir.Float32, []ir.DType{ir.Float32, ir.Float32}), 1, int64(len(xs)/4))
		copy(x.args[0].Data, xs)
		copy(x.args[1].Data, ys)
		x.check(t, d, op.Info().Tol)
	}
}

// flushes reports whether a denormal product is zero on the device.
func flushes(t *testing.T, d *device) bool {
	x := newTrial(opKernel(ir.Mul, ir.Float32, []ir.DType{ir.Float32, ir.Float32}), 1, 1)
	for i := range 2 {
		binary.LittleEndian.PutUint32(x.args[i].Data, 0x1f000000) // 2^-65
	}
	l := x.launch(t, d)
	got := make([]byte, 4)
	must(t, d.Run([]runtime.Launch{*l}))
	must(t, d.Read(got, ir.Float32, l.Args[2].Buf, 0))
	return binary.LittleEndian.Uint32(got) == 0
}

func normal(bits uint64) bool {
	return bits&0x7fffffff == 0 || bits&0x7f800000 != 0
}
