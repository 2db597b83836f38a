package native_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/codegen/native/amd64"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
)

// BenchmarkTile runs the largest tile on panels of a strip that the second-level cache holds, in
// turns with a measurement of the core's limit.
func BenchmarkTile(b *testing.B) {
	for i, isa := range []*native.ISA{amd64.AVX2, amd64.AVX512} {
		if !machine.Level().Has(machine.ISA(i + 1)) {
			continue
		}
		b.Run(isa.Name, func(b *testing.B) {
			d := mapDot(b, isa, ir.Float32)
			roof, err := native.NewRoof(isa)
			if err != nil {
				b.Fatal(err)
			}
			top, err := machine.Map(roof.Code)
			if err != nil {
				b.Fatal(err)
			}
			const k, panels = 256, 16
			wide := 2 * d.Lanes
			x, y, c := make([]float32, d.Rows*k), make([]float32, panels*k*wide+16), make([]float32, d.Rows*panels*wide)
			skip := int(-uintptr(unsafe.Pointer(&y[0]))&63) / 4
			f := &native.TileFrame{X: unsafe.Pointer(&x[0]), Y: unsafe.Pointer(&y[skip]), C: unsafe.Pointer(&c[0]), LdX: 4 * k, LdY: int64(4 * wide), LdC: int64(4 * panels * wide),
				StepY: int64(4 * k * wide), StepC: int64(4 * wide), K: k, Panels: panels, Tail: int64(d.Lanes), Flags: native.TileOpen | native.TileClose}
			r := &native.RoofFrame{Count: int64(2 * d.Rows * panels * wide * k / roof.Flops)}
			var tile, most time.Duration
			for b.Loop() {
				t0 := time.Now()
				d.call(d.Tile(d.Rows, 2), unsafe.Pointer(f))
				t1 := time.Now()
				machine.Call(top.Addr(roof.FMA), unsafe.Pointer(r), machine.KeepMXCSR)
				tile, most = tile+t1.Sub(t0), most+time.Since(t1)
			}
			flops := float64(2*d.Rows*panels*wide*k) * float64(b.N)
			b.ReportMetric(flops/float64(tile.Nanoseconds()), "gflops")
			b.ReportMetric(float64(roof.Flops)*float64(r.Count)*float64(b.N)/float64(most.Nanoseconds()), "roof")
			b.ReportMetric(0, "ns/op")
		})
	}
}
