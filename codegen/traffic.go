package codegen

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Traffic is the memory a launch of k moves, in bytes: for each operand the
// elements its access reaches, each counted once, times the device's bytes
// per element. It is what Stats and plans count, not what caches do.
func Traffic(k *Kernel, l *runtime.Launch, elemSize *[ir.NumDTypes]int) (read, written int64) {
	whole := k.scattersApart(l)
	for i, o := range k.Operands {
		if o.Kind == Index || i >= len(l.Args) {
			continue
		}
		n := int64(elemSize[o.DT])
		points := int64(1) // at each of which an index may find another element
		for d := range l.Rank {
			if l.Args[i].Stride[d] != 0 || l.Dims[d] == 0 {
				n *= l.Dims[d]
			} else {
				points *= l.Dims[d]
			}
		}
		if size := l.Args[i].IndexSize; size > 0 && l.Args[i].IndexStride != 0 {
			if !whole || !o.Row {
				size = min(size, points)
			}
			n *= size
		}
		if o.Kind == Output {
			written += n
		} else {
			read += n
		}
	}
	return read, written
}

// scattersApart reports a scatter into other memory than its operand's, which
// is copied there whole.
func (k *Kernel) scattersApart(l *runtime.Launch) bool {
	at := k.Scatter()
	return at != ir.None && len(l.Args) == len(k.Operands) && l.Args[slotOf(k.Body[at])].Buf != l.Args[k.Stores[0].Operand].Buf
}
