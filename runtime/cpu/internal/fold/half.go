package fold

import (
	"github.com/millrace-go/millrace/internal/half"
	"github.com/millrace-go/millrace/ir"
)

// storedFloats fills in the rows and scatters of the floats that are only stored.
func storedFloats(f *Table, j32 func(ir.Op) joins[float32]) {
	storedFloat(f, ir.Float16, half.WidenFloat16, half.NarrowFloat16, j32)
	storedFloat(f, ir.BFloat16, half.WidenBFloat16, half.NarrowBFloat16, j32)
}

func storedFloat[E stored](f *Table, dt ir.DType, widen func(E) float32, narrow func(float32) E, j32 func(ir.Op) joins[float32]) {
	rowsOf(f, dt, widen, narrow)
	scatterBy(f, dt, widen, narrow, j32)
}
