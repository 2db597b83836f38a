package stream

import (
	"math/bits"
	"testing"
	"unsafe"
)

// A Value has the size of a cache line. The marks of package autodiff use bytes that were spare.
func TestValueSize(t *testing.T) {
	if n := unsafe.Sizeof(Value{}); bits.UintSize == 64 && n != 64 {
		t.Errorf("a Value has %d bytes", n)
	}
}
