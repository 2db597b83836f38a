package stream

import (
	"math/bits"
	"testing"
	"unsafe"
)

// A tensor is as large as a line of the cache: marks of package autodiff lie where there
// was a byte to spare.
func TestValueSize(t *testing.T) {
	if n := unsafe.Sizeof(Value{}); bits.UintSize == 64 && n != 64 {
		t.Errorf("a Value has %d bytes", n)
	}
}
